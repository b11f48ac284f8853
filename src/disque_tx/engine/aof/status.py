"""The state of the log: the Persistence section of INFO (client protocol, section 10)."""

from __future__ import annotations

from disque_tx.engine.aof.loader import Loader
from disque_tx.engine.aof.rewrites import Rewrites
from disque_tx.engine.aof.writer import LogWriter, Syncs

Fields = list[tuple[str, str]]


def state_fields(state: str, loading: bool) -> Fields:
    """State of the log."""
    return [
        ("loading", flag(loading)),
        ("aof_enabled", flag(state != "off")),
        ("aof_state", state),
    ]


def rewrite_fields(rewrites: Rewrites, write_error: str) -> Fields:
    """About the rewrite under way, and the last one; whether the last write worked."""
    return [
        ("aof_rewrite_in_progress", flag(rewrites.current is not None)),
        ("aof_rewrite_scheduled", flag(rewrites.scheduled)),
        ("aof_last_rewrite_time_sec", str(rewrites.took_s)),
        ("aof_current_rewrite_time_sec", str(rewrites.running_s)),
        ("aof_last_bgrewrite_status", "ok" if rewrites.ok else "err"),
        ("aof_last_write_status", "err" if write_error else "ok"),
    ]


def log_fields(writer: LogWriter | None, rewrites: Rewrites, syncs: Syncs) -> Fields:
    """About the log, which may still be without a file."""
    return [
        ("aof_current_size", str(writer.size if writer else 0)),
        ("aof_base_size", str(writer.base_size if writer else 0)),
        ("aof_pending_rewrite", flag(rewrites.scheduled)),
        ("aof_buffer_length", str(writer.buffered if writer else 0)),
        ("aof_rewrite_buffer_length", str(rewrites.current.buffered if rewrites.current else 0)),
        ("aof_pending_bio_fsync", flag(writer is not None and writer.syncing)),
        ("aof_delayed_fsync", str(syncs.delayed)),
        ("aof_syncs", str(syncs.count)),
        ("aof_sync_seconds", f"{syncs.seconds:.6f}"),
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
    """A boolean as INFO shows it."""
    return "1" if value else "0"
