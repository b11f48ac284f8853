"""The append only file of a simulated process, by the rules of the daemon's (cluster protocol, 14).

1. ``always``: written and synced before anybody hears of it; an error ends the process.
2. ``everysec``, ``no``: written before anybody hears of it, synced once a second or never. A write
   that failed is tried again every second; after a sync that failed, all that is in memory is
   written to a new file. Clients are refused until then.
3. At the start, a record cut short at the end is cut off; any other damage is refused.
"""

from __future__ import annotations

from typing import Final

from disque_tx.core import recovery
from disque_tx.core.job import Job
from disque_tx.core.node import Node
from disque_tx.errors import LocalError, PeerError
from disque_tx.messages import ACTIVE, QUEUED, JobRecord
from disque_tx.sim.disk import Disk
from disque_tx.wire.aoflog import LogDecoder, LogEncoder, load_record
from disque_tx.wire.aofrecords import holds_records, understand

LOG: Final = "disque.aof"
_TEMPORARY: Final = "rewrite.aof"
_SYNC_EVERY_MS: Final = 1_000
_RETRY_MS: Final = 1_000
_REWRITE_RETRY_MS: Final = 2_000


class DiskFailedError(LocalError):
    """The process must end: with ``appendfsync always`` nothing may be answered any more."""


class DamagedError(Exception):
    """The process cannot start: the log holds what no log holds."""


class Log:
    """``records``: what the node recorded in this turn. ``write_error``: why clients are refused,
    empty while they are not. ``policy``: ``always``, ``everysec`` or ``no``. ``expired``: jobs in
    the file whose life was over, by the clock of the start."""

    def __init__(self, node: Node, disk: Disk, policy: str) -> None:
        self.records = LogEncoder()
        self.policy = policy
        self.expired: set[bytes] = set()
        self._node = node
        self._disk = disk
        self._pending = b""
        self._size = 0
        self._error = ""
        self._sync_error = ""
        self._dirty = False
        self._synced_ms = 0
        self._retry_ms = 0

    @property
    def write_error(self) -> str:
        """The error of the last write, or that of a sync."""
        return self._error or self._sync_error

    # -- start -------------------------------------------------------------------------------

    def load(self, enqueue: bool) -> None:
        """Take in what the file holds; ``DamagedError`` if it is damaged, ``OSError`` if the disk
        is.

        ``enqueue``: jobs that were queued go to their queues at once.
        """
        disk = self._disk
        if not disk.exists(LOG):
            disk.create(LOG)
            disk.sync_folder()
        data = disk.read(LOG)
        decoder = LogDecoder()
        decoder.feed(data)
        try:
            while (words := decoder.next()) is not None:
                self._apply(understand(words), enqueue)
        except PeerError as error:
            raise DamagedError(str(error)) from error
        self._size = int(decoder.offset)
        if self._size < len(data):
            self._cut(data[self._size :])
        self._node.outbox.log = self.records

    def _apply(self, record: JobRecord | bytes, enqueue: bool) -> None:
        if isinstance(record, JobRecord):
            recovery.load(self._node, record, enqueue)
            if self._node.jobs.get(record.id) is None:
                self.expired.add(record.id)
            return
        job = self._node.jobs.get(record)
        if job is not None:
            self._node.delivery.remove(job)

    def _cut(self, tail: bytes) -> None:
        if holds_records(tail):
            raise DamagedError("a record is incomplete, but others follow it")
        self._disk.truncate(LOG, self._size)
        self._disk.sync(LOG)

    # -- every turn --------------------------------------------------------------------------

    def commit(self) -> None:
        """Write what the turn recorded; ``DiskFailedError`` when the process must end."""
        if self.records.size:
            self._pending += self.records.take()
        if self._pending and not self._error:
            self._write()

    def _write(self) -> None:
        try:
            self._disk.append(LOG, self._pending)
        except OSError as error:
            self._disk.truncate(LOG, self._size)
            self._failed(error)
            self._error = str(error)
            self._retry_ms = int(self._node.now_ms) + _RETRY_MS
            return
        self._size += len(self._pending)
        self._pending = b""
        self._error = ""
        self._dirty = True
        if self.policy == "always":
            self._sync()

    def _sync(self) -> None:
        self._dirty = False
        self._synced_ms = int(self._node.now_ms)
        try:
            self._disk.sync(LOG)
        except OSError as error:
            self._failed(error)
            self._sync_error = str(error)

    def _failed(self, error: OSError) -> None:
        if self.policy == "always":
            raise DiskFailedError(str(error)) from error

    def tick(self) -> None:
        """Ten times a second: sync what is due, try again what failed."""
        now_ms = self._node.now_ms
        if self._error and now_ms >= self._retry_ms:
            self._write()
        if self._sync_error and now_ms >= self._retry_ms:
            self._retry_ms = int(now_ms) + _REWRITE_RETRY_MS
            try:
                self.rewrite()
            except OSError as error:
                self._sync_error = str(error)
        if self._dirty and self.policy == "everysec":
            if now_ms - self._synced_ms >= _SYNC_EVERY_MS:
                self._sync()

    def flush_and_sync(self) -> None:
        """Everything is on the disk afterwards; ``OSError`` when it cannot be."""
        self.commit()
        if self.write_error:
            self.rewrite()
        elif self._dirty:
            self._disk.sync(LOG)

    # -- rewrite -----------------------------------------------------------------------------

    def rewrite(self) -> None:
        """A new log of what is in memory; ``OSError`` when that fails."""
        jobs: list[Job] = sorted(
            (job for job in self._node.jobs.table.values() if is_logged(job)),
            key=lambda job: job.id,
        )
        data = b"".join([load_record(job) for job in jobs])
        disk = self._disk
        try:
            disk.create(_TEMPORARY)
            disk.append(_TEMPORARY, data)
            disk.sync(_TEMPORARY)
            disk.rename(_TEMPORARY, LOG)
        except OSError:
            disk.remove(_TEMPORARY)
            raise
        if self.records.size:
            self.records.take()
        self._pending = b""
        self._size = len(data)
        self._dirty = False
        self._error = ""
        disk.sync_folder()
        self._sync_error = ""

    # -- for checkers ------------------------------------------------------------------------

    def replayed(self) -> dict[bytes, JobRecord]:
        """The jobs that a restart would find, if all that was recorded reached the disk."""
        decoder = LogDecoder()
        decoder.feed(self._disk.read(LOG) + self._pending)
        jobs: dict[bytes, JobRecord] = {}
        while (words := decoder.next()) is not None:
            record = understand(words)
            if isinstance(record, JobRecord):
                jobs[record.id] = record
            else:
                jobs.pop(record, None)
        return jobs


def is_logged(job: Job) -> bool:
    """Whether the log must hold the job."""
    return not job.dummy and job.state in (ACTIVE, QUEUED)
