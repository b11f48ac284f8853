"""Rewriting the log: a new, shorter file with the jobs that exist (cluster protocol, 14.5).

The original forks, and the child writes what memory held at that moment. Here the table of jobs is
scanned in slices between turns, and every record of ordinary operation goes to the new file as
well. Why that is right: the scan returns every job that exists all the time at least once, in its
state at that moment; a job that came or went meanwhile has a record of its own, behind everything
written before it; a second LOADJOB of a job and a DELJOB of an unknown one change nothing when the
file is loaded.

Keys of jobs follow behind the jobs: those that exist when the scan of these is done, each in its
state when it is written.

1. Scan. What was written is synced in a thread every 32 MiB, and nothing is written meanwhile,
   because a write could block behind it.
2. Settle: sync in a thread, write what came meanwhile, and again while that was much.
3. Switch, within one step: write and sync the little that is left, rename. No record can come
   between.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.notes import checked
from disque_tx.core.keys.reservation import Reservations
from disque_tx.core.node import Node
from disque_tx.engine.aof.environment import Environment
from disque_tx.engine.aof.writer import as_os_error
from disque_tx.engine.interfaces import IFile
from disque_tx.engine.ownership import claim_empty
from disque_tx.messages.keys import RESERVED
from disque_tx.messages.records import ACTIVE, QUEUED
from disque_tx.wire.files.aof import key_record, load_record, note_record

SLICE_S: Final = 0.002
SYNC_BYTES: Final = 32 * 1024 * 1024
#: What a slice, or the last step, writes at most, plus jobs of one bucket of the table.
_PIECE_BYTES: Final = 1024 * 1024
_KEYS_PER_PIECE: Final = 100
_LEFT_BYTES_MAX: Final = 64 * 1024
_ROUNDS_MAX: Final = 8


def temporary_path(path: str, process_id: int) -> str:
    """Where the new file lies until it is complete."""
    return os.path.join(os.path.dirname(path), f"temp-rewriteaof-{process_id}.aof")


class Snapshot:
    """Records of the jobs of a node and of their keys, a piece at a time."""

    def __init__(self, node: Node) -> None:
        self.complete = False
        self._table = node.jobs.table
        self._notes = node.state.notes
        self._reservations: Reservations = node.keys.reservations
        self._cursor = 0
        self._keys: list[bytes] | None = None

    def next(self) -> list[bytes]:
        """LOADJOB records of jobs that lie together, each with its NOTEJOB record if there is a
        note, and after the last of them HOLDKEY records;
        ``complete`` when they were the last."""
        if self._keys is not None:
            return self._next_keys(self._keys)
        self._cursor, jobs = self._table.scan(self._cursor)
        if self._cursor == 0:
            self._keys = list(self._reservations.by_key)
            self.complete = not self._keys
        return [
            self._record(job)
            for job in jobs
            if not job.dummy and (job.state == ACTIVE or job.state == QUEUED)
        ]

    def _record(self, job: Job) -> bytes:
        note = self._notes.get(job.id)
        record = load_record(job)
        return record if note is None else record + note_record(job.id, note.owner, checked(note))

    def _next_keys(self, keys: list[bytes]) -> list[bytes]:
        piece = [self._reservations.get(key) for key in keys[-_KEYS_PER_PIECE:]]
        del keys[-_KEYS_PER_PIECE:]
        self.complete = not keys
        return [
            key_record(self._reservations.logged(found))
            for found in piece
            if found is not None and found.state != RESERVED
        ]


class Rewrite:
    """A rewrite under way. ``buffered``: bytes that are not in the new file yet.

    ``guard``: the file that keeps other nodes off ``path``, if it is not the log; is closed here.
    ``finished`` gets the new file, which has its name already; ``failed`` gets the reason, and the
    temporary file is gone. Exactly one of them is called, once, unless :meth:`stop` was.
    """

    def __init__(
        self,
        environment: Environment,
        path: str,
        guard: IFile | None,
        finished: Callable[[IFile], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self.buffered = 0
        self._environment = environment
        self._settings = environment.settings
        self._path = path
        self._temporary = temporary_path(path, environment.process_id)
        self._finished = finished
        self._failed = failed
        self._snapshot = Snapshot(environment.node)
        self._chunks: list[bytes] = []
        self._unsynced = 0
        self._rounds = 0
        self._cancel: Callable[[], object] | None = None
        self._syncing = False
        self._stopped = False
        self._guard = guard
        try:
            # Locked before it takes the name of the log, so that the log is never without a lock.
            self._file: IFile = claim_empty(environment.files, self._temporary)
        except OSError:
            self._release()
            raise
        self._later()

    def add(self, data: bytes) -> None:
        """Records of ordinary operation."""
        self._chunks.append(data)
        self.buffered += len(data)

    def stop(self) -> None:
        """Give up; nothing of it remains. The file is closed once no sync uses it."""
        self._stopped = True
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        try:
            self._environment.files.remove(self._temporary)
        except OSError as error:
            self._environment.reports.warning(f"{self._temporary} could not be removed: {error}")
        self._release()
        if not self._syncing:
            self._close()

    def _release(self) -> None:
        """Release the name, if it was claimed."""
        guard, self._guard = self._guard, None
        if guard is not None:
            _clean_up(self._environment, self._path, guard)
            self._environment.close_in_background(guard, self._path)

    def _close(self) -> None:
        self._environment.close_in_background(self._file, self._temporary)

    def _fail(self, error: OSError) -> None:
        self.stop()
        self._failed(error)

    # -- scan --------------------------------------------------------------------------------

    def _later(self) -> None:
        self._cancel = self._environment.scheduler.soon(self._scan)

    def _scan(self) -> None:
        self._cancel = None
        monotonic = self._environment.monotonic
        end_s = monotonic() + SLICE_S
        while not self._snapshot.complete and self.buffered < _PIECE_BYTES:
            for record in self._snapshot.next():
                self.add(record)
            if monotonic() >= end_s:
                break
        try:
            self._write()
        except OSError as error:
            self._fail(error)
            return
        if self._snapshot.complete:
            self._sync(self._write_rest)
        elif self._unsynced >= SYNC_BYTES and self._settings.aof_rewrite_incremental_fsync:
            self._sync(self._later)
        else:
            self._later()

    def _write(self) -> None:
        if self._chunks:
            data = b"".join(self._chunks)
            self._chunks = []
            self.buffered = 0
            self._file.append(data)
            self._unsynced += len(data)

    def _sync(self, then: Callable[[], None]) -> None:
        self._syncing = True
        self._unsynced = 0
        self._environment.scheduler.in_background(
            self._file.sync, lambda error: self._synced(error, then)
        )

    def _synced(self, error: Exception | None, then: Callable[[], None]) -> None:
        self._syncing = False
        if self._stopped:
            self._close()
        elif error is not None:
            self._fail(as_os_error(error))
        else:
            then()

    # -- write the rest and switch ------------------------------------------------------------

    def _write_rest(self) -> None:
        much = self.buffered > _LEFT_BYTES_MAX and self._rounds < _ROUNDS_MAX
        self._rounds += 1
        try:
            self._write()
            if not much:
                if self._unsynced:
                    self._file.sync()
                self._environment.files.rename(self._temporary, self._path)
        except OSError as error:
            self._fail(error)
            return
        if much:
            self._sync(self._write_rest)
        else:
            self._release()
            self._finished(self._file)


def _clean_up(environment: Environment, path: str, guard: IFile) -> None:
    """The name is not kept any more: leave no empty file where there was none."""
    try:
        if not guard.size() and guard.is_at(path):
            environment.files.remove(path)
    except OSError:
        pass  # an empty log is no harm


def write_snapshot(environment: Environment, path: str, guard: IFile | None) -> IFile:
    """Write all jobs in one go, blocking everything else; returns the new file under ``path``.

    ``guard``: as for :class:`Rewrite`. ``OSError`` when it fails: the old file is as it was then.
    """
    try:
        return _write_snapshot(environment, path)
    finally:
        if guard is not None:
            _clean_up(environment, path, guard)
            guard.close()


def _write_snapshot(environment: Environment, path: str) -> IFile:
    temporary = temporary_path(path, environment.process_id)
    file = claim_empty(environment.files, temporary)
    try:
        _write_all(Snapshot(environment.node), file)
        file.sync()
        environment.files.rename(temporary, path)
    except OSError:
        file.close()
        environment.files.remove(temporary)
        raise
    return file


def _write_all(snapshot: Snapshot, file: IFile) -> None:
    records: list[bytes] = []
    size = 0
    while not snapshot.complete:
        found = snapshot.next()
        records += found
        size += sum(map(len, found))
        if size >= _PIECE_BYTES:
            file.append(b"".join(records))
            records, size = [], 0
    file.append(b"".join(records))
