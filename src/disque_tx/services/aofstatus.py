"""What is known about the log: the Persistence section of INFO (client protocol, section 10)."""

from __future__ import annotations

from disque_tx.services.aofload import Loader
from disque_tx.services.aofrewrite import Rewrite
from disque_tx.services.aofwriter import LogWriter

Fields = list[tuple[str, str]]


class RewriteStatus:
    """How rewrites go. ``scheduled``: one was interrupted and must be done again. ``began_ms``: of
    the one under way, ``took_s``: the last one, -1 for none. ``ok``: the last one succeeded."""

    def __init__(self) -> None:
        self.scheduled = False
        self.began_ms = 0
        self.took_s = -1
        self.ok = True

    def begin(self, now_ms: int) -> None:
        """One begins."""
        self.scheduled = False
        self.began_ms = now_ms

    def end(self, now_ms: int, ok: bool) -> None:
        """It is over."""
        self.ok = ok
        self.took_s = self.running_s(now_ms)

    def running_s(self, now_ms: int) -> int:
        """Seconds since it began."""
        return (now_ms - self.began_ms) // 1000


def state_fields(state: str, loading: bool) -> Fields:
    """What there is."""
    return [
        ("loading", flag(loading)),
        ("aof_enabled", flag(state != "off")),
        ("aof_state", state),
    ]


def rewrite_fields(rewrite: Rewrite | None, status: RewriteStatus, now_ms: int) -> Fields:
    """About the rewrite under way, and the last one."""
    running_s = -1 if rewrite is None else status.running_s(now_ms)
    return [
        ("aof_rewrite_in_progress", flag(rewrite is not None)),
        ("aof_rewrite_scheduled", flag(status.scheduled)),
        ("aof_last_rewrite_time_sec", str(status.took_s)),
        ("aof_current_rewrite_time_sec", str(running_s)),
        ("aof_last_bgrewrite_status", "ok" if status.ok else "err"),
    ]


def log_fields(writer: LogWriter | None, rewrite: Rewrite | None, scheduled: bool) -> Fields:
    """About the log, which may still be without a file."""
    return [
        ("aof_current_size", str(writer.size if writer else 0)),
        ("aof_base_size", str(writer.base_size if writer else 0)),
        ("aof_pending_rewrite", flag(scheduled)),
        ("aof_buffer_length", str(writer.buffered if writer else 0)),
        ("aof_rewrite_buffer_length", str(rewrite.buffered if rewrite else 0)),
        ("aof_pending_bio_fsync", flag(writer is not None and writer.syncing)),
        ("aof_delayed_fsync", str(writer.delayed_syncs if writer else 0)),
    ]


def loading_fields(loader: Loader) -> Fields:
    """About a load under way."""
    percentage = loader.loaded_bytes * 100 / max(loader.total_bytes, 1)
    return [
        ("loading_start_time", str(loader.start_s)),
        ("loading_total_bytes", str(loader.total_bytes)),
        ("loading_loaded_bytes", str(loader.loaded_bytes)),
        ("loading_loaded_perc", f"{percentage:.2f}"),
        ("loading_eta_seconds", str(loader.eta_s)),
    ]


def flag(value: bool) -> str:
    """A truth as INFO shows it."""
    return "1" if value else "0"
