"""What the parts of the log work with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from disque_tx.commands.base.latency import LatencyMonitor
from disque_tx.core.node import Node
from disque_tx.engine.interfaces import IFile, IFiles, OperatorLog, Scheduler


class LogSettings(Protocol):
    """The settings of the log (cluster protocol, section 14.1)."""

    dir: str
    appendonly: bool
    appendfilename: str
    appendfsync: str
    no_appendfsync_on_rewrite: bool
    auto_aof_rewrite_percentage: int
    auto_aof_rewrite_min_size: int
    aof_rewrite_incremental_fsync: bool
    aof_load_truncated: bool
    aof_enqueue_jobs_once: bool


@attrs.frozen
class Environment:
    """``monotonic``: seconds, for measuring. ``latency``: gets a sample for each access to the
    disk. ``fatal``: called with the reason why the process must end. ``process_id``: makes the
    names of temporary files unique.
    """

    node: Node
    files: IFiles
    scheduler: Scheduler
    settings: LogSettings
    fatal: Callable[[str], object]
    reports: OperatorLog
    process_id: int
    monotonic: Callable[[], float]
    latency: LatencyMonitor = attrs.Factory(LatencyMonitor)

    def measured(self, since_s: float, *events: bytes) -> None:
        """Give the latency monitor, if it is on, a sample of what began at ``since_s`` and is
        done."""
        if self.latency.threshold_ms:
            duration_ms = int((self.monotonic() - since_s) * 1000)
            for event in events:
                self.latency.sample(event, self.node.wall_us // 1_000_000, duration_ms)

    def close_in_background(self, file: IFile, name: str) -> None:
        """Close a file, which may take long; ``name``: what the log line calls it if that fails."""

        def closed(error: Exception | None) -> None:
            if error is not None:
                self.reports.warning(f"Closing {name} failed: {error}")

        self.scheduler.in_background(file.close, closed)
