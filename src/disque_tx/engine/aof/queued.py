"""What was queued at a clean stop is queued again at the next start (cluster protocol, section
14.7).

The log does not record what is in queues, for that would cost a write for every delivery. So a node
that stops in an orderly way writes a file beside its log, once nothing can be delivered any more.
The next start reads it, and removes it before any of its jobs is queued: after a crash there is
none, and a job with RETRY 0 is never delivered twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.config.paths import os_error_text
from disque_tx.core import recovery
from disque_tx.core.node import Node
from disque_tx.engine.aof.environment import Environment
from disque_tx.engine.aof.loader import SLICE_S
from disque_tx.engine.interfaces import IFile
from disque_tx.engine.ownership import queued_path, read_whole, set_aside
from disque_tx.errors import PeerError
from disque_tx.text.counts import counted
from disque_tx.wire.files.queued import TAIL_BYTES, QueuedJobs, digest, parse, render

#: More than the largest node holds.
_BYTES_MAX: Final = 16 * 1024 * 1024 * 1024
#: Jobs between two looks at the clock.
_PIECE: Final = 200
_NOT_QUEUED: Final = (
    " Jobs that were queued wait for their RETRY after the start, and those with RETRY 0 stay out"
    " of their queues."
)


class QueuedFile:
    """The file of one log. ``log_path``: where the log is that was written to the end at a stop;
    empty without one."""

    def __init__(self, environment: Environment) -> None:
        self.log_path = ""
        self._path = ""
        self._environment = environment
        self._files = environment.files
        self._reports = environment.reports
        self._found: QueuedJobs | None = None
        self._listed: list[bytes] = []
        self._done = self._resumed = 0
        self._away_ms = 0

    # -- start -------------------------------------------------------------------------------

    def read(self, log: IFile, log_path: str) -> None:
        """Read the file, if there is one, and see whether it belongs to the loaded ``log``; one
        that is of no use is set aside."""
        self._path = queued_path(log_path)
        self._found = None
        try:
            data = read_whole(self._files, self._path, _BYTES_MAX)
            tail = _tail(log)
        except OSError as error:
            self._reports.warning(
                f"{self._path} can't be read: {os_error_text(error)}.{_NOT_QUEUED}"
            )
            return
        if data is None:
            return
        try:
            found = parse(data)
        except PeerError as error:
            self._set_aside(f"it is damaged: {error}")
            return
        if (int(found.log_bytes), found.log_digest) != (log.size(), tail):
            self._set_aside("it belongs to another log, or this one was changed since")
            return
        self._found = found

    def _set_aside(self, why: str) -> None:
        kept = f"{self._path}.unused-{int(self._environment.node.wall_us // 1_000_000)}"
        text = f"The list of queued jobs {self._path} can't be used: {why}."
        try:
            set_aside(self._files, self._path, kept)
        except OSError as error:
            kept = f"{self._path}, for it can't be renamed: {os_error_text(error)}"
        self._reports.warning(f"{text} It is kept as {kept}.{_NOT_QUEUED}")

    def resume(self) -> bool:
        """The node is about to serve: remove the file, then queue what it lists, some of it in each
        call; whether there is more."""
        if self._found is not None:
            self._take(self._found)
            self._found = None
        node, monotonic = self._environment.node, self._environment.monotonic
        end_s = monotonic() + SLICE_S
        while self._done < len(self._listed):
            piece = self._listed[self._done : self._done + _PIECE]
            self._done += len(piece)
            self._resumed += sum([recovery.resume(node, job_id, self._away_ms) for job_id in piece])
            if monotonic() >= end_s:
                return True
        if self._listed:
            self._reports.notice(
                f"Queued again: {self._resumed} of {counted(self._done, 'job')} that waited when"
                " the node stopped"
            )
        self._listed, self._done = [], 0
        return False

    def later(self, work: Callable[[], object]) -> None:
        """Call this in another turn."""
        self._environment.scheduler.soon(work)

    def _take(self, found: QueuedJobs) -> None:
        """Remove the file; only then its jobs may be queued."""
        try:
            self._files.remove(self._path)
            self._files.sync_folder(self._path)
        except OSError as error:
            self._reports.warning(
                f"{self._path} can't be removed: {os_error_text(error)}. Its jobs are not queued,"
                f" for they might be delivered twice.{_NOT_QUEUED}"
            )
            return
        self._away_ms = int(self._environment.node.wall_us // 1000 - found.unix_ms)
        self._listed, self._done = found.ids, 0

    # -- stop --------------------------------------------------------------------------------

    def save(self) -> None:
        """The log is written, and nothing is delivered any more: write what is queued."""
        if not self.log_path:
            return
        path = queued_path(self.log_path)
        node = self._environment.node
        ids = [*_queued(node), *self._listed[self._done :]]
        try:
            if not ids:
                self._files.remove(path)
                return
            file = self._files.open(self.log_path)
            try:
                log = (file.size(), _tail(file))
            finally:
                file.close()
            queued = QueuedJobs(*log, node.wall_us // 1000, ids)
            self._files.replace(path, render(queued))
        except OSError as error:
            self._reports.warning(
                f"{path} can't be written at shutdown: {os_error_text(error)}.{_NOT_QUEUED}"
            )


def _tail(log: IFile) -> bytes:
    size = log.size()
    return digest(log.read(max(0, size - TAIL_BYTES), TAIL_BYTES))


def _queued(node: Node) -> list[bytes]:
    """The jobs in queues, queue by queue, in order."""
    ids: list[bytes] = []
    for queue in node.queues.table.values():
        ids += [job.id for job in queue.jobs.oldest(queue.jobs.size)]
    return ids
