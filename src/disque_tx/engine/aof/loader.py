"""Reading the log back, in slices, so that clients get LOADING meanwhile (cluster protocol, 14.6).

1. Only LOADJOB, DELJOB, HOLDKEY, FREEKEY, NOTEJOB and COUNTJOB are accepted, in any letter case;
   the original would execute any command.
2. The file ends within a record: a write was cut short. With ``aof-load-truncated`` the rest is cut
   off and kept in a file beside the log.
3. Anything else that is malformed is damage, and refused: also a last record that seems incomplete
   because its length is wrong, which is recognised by complete records after its beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.config.paths import os_error_text
from disque_tx.core import recovery
from disque_tx.engine.aof.environment import Environment
from disque_tx.engine.interfaces import IFile, IFiles
from disque_tx.engine.ownership import claim
from disque_tx.errors import CommandError, ConfigError, PeerError
from disque_tx.messages.records import JobRecord, KeyEntry
from disque_tx.text.counts import counted
from disque_tx.wire.files.aof import (
    FreedKey,
    JobCounters,
    JobNote,
    LogDecoder,
    Record,
    holds_records,
    parse_record,
)

SLICE_S: Final = 0.010
_PIECE_BYTES: Final = 1024 * 1024


class Loader:
    """One load of one file. ``start_s``: unix time it began. ``total_bytes``: size of the file,
    ``loaded_bytes``: of the records read so far. ``jobs``: how many were loaded.
    ``enqueue``: jobs that were queued go to their queues at once."""

    def __init__(self, environment: Environment, path: str, file: IFile, enqueue: bool) -> None:
        self.start_s = int(environment.node.wall_us // 1_000_000)
        self.total_bytes = file.size()
        self.loaded_bytes = 0
        self.jobs = 0
        self._environment = environment
        self._path = path
        self.file = file
        self.enqueue = enqueue
        self._decoder = LogDecoder()
        self._read_bytes = 0
        self._began_s = environment.monotonic()
        self._cancel: Callable[[], object] | None = None

    @property
    def eta_s(self) -> int:
        """Seconds this will probably still take."""
        elapsed_s = self._environment.monotonic() - self._began_s
        left = self.total_bytes - self.loaded_bytes
        return int(elapsed_s * left / self.loaded_bytes) if self.loaded_bytes else 1

    def run(self, done: Callable[[Exception | None], object]) -> None:
        """Load the file, in slices. ``done`` is called with ``None``, or with why it failed: a
        ``ConfigError`` says what is wrong, where, and what to do about it."""
        self._cancel = self._environment.scheduler.soon(lambda: self._go_on(done))

    def run_now(self) -> None:
        """Load the file in one step; raises what ``done`` would be called with."""
        while self._slice():
            pass

    def check(self) -> None:
        """Read the file without loading anything; raises ``ConfigError`` for damage."""
        decoder = LogDecoder()
        read_bytes = offset = 0
        try:
            while data := self.file.read(read_bytes, max(_PIECE_BYTES, decoder.rest())):
                read_bytes += len(data)
                decoder.feed(data)
                while (words := decoder.next()) is not None:
                    parse_record(words)
                    offset = int(decoder.offset)
        except PeerError as error:
            raise self._damaged(str(error), offset) from error

    def stop(self) -> None:
        """Give up; ``done`` is not called any more."""
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    # -- slices ------------------------------------------------------------------------------

    def _go_on(self, done: Callable[[Exception | None], object]) -> None:
        self._cancel = None
        try:
            more = self._slice()
        except Exception as error:
            done(error)
            return
        if more:
            self.run(done)
        else:
            done(None)

    def _slice(self) -> bool:
        """Load some records; returns whether there are more. Raises ``ConfigError``."""
        monotonic = self._environment.monotonic
        end_s = monotonic() + SLICE_S
        try:
            while self._step():
                if monotonic() >= end_s:
                    return True
            self._finish()
        except OSError as error:
            raise ConfigError(
                f"The append only file {self._path} can't be read or repaired:"
                f" {os_error_text(error)}. Check the disk."
            ) from error
        return False

    def _step(self) -> bool:
        """Load one record, or read one more piece of the file; returns whether there was any."""
        decoder = self._decoder
        offset = int(decoder.offset)
        try:
            words = decoder.next()
            if words is None:
                return self._refill()
            self._apply(parse_record(words))
        except PeerError as error:
            raise self._damaged(str(error), offset) from error
        self.loaded_bytes = int(decoder.offset)
        return True

    def _refill(self) -> bool:
        # A record that is longer than a piece is read in pieces that double.
        data = self.file.read(self._read_bytes, max(_PIECE_BYTES, self._decoder.rest()))
        self._read_bytes += len(data)
        self._decoder.feed(data)
        return bool(data)

    def _apply(self, record: Record) -> None:
        node = self._environment.node
        if isinstance(record, KeyEntry):
            node.keys.load(record)
            return
        if isinstance(record, FreedKey):
            node.keys.load_free(record.key)
            return
        if isinstance(record, JobRecord):
            self.jobs += recovery.load(node, record, self.enqueue)
            return
        job = node.jobs.get(record if isinstance(record, bytes) else record.job_id)
        if job is None:
            return
        if isinstance(record, JobNote):
            node.state.notes.load(job, record.owner, record.data)
        elif isinstance(record, JobCounters):
            recovery.load_counters(job, record.nacks, record.deliveries)
        else:
            node.delivery.remove(job)

    # -- the end -----------------------------------------------------------------------------

    def _finish(self) -> None:
        if self._decoder.rest():
            self._cut(int(self._decoder.offset))
        duration_s = self._environment.monotonic() - self._began_s
        self._environment.reports.notice(
            f"DB loaded from append only file: {duration_s:.3f} seconds,"
            f" {counted(self.jobs, 'job')}"
        )

    def _cut(self, offset: int) -> None:
        """The file goes on behind its last complete record: a torn end, or damage."""
        tail = self.file.read(offset, self._read_bytes - offset)
        if holds_records(tail):
            raise self._damaged("the record is incomplete, but others follow it", offset)
        if not self._environment.settings.aof_load_truncated:
            raise ConfigError(
                f"The append only file {self._path} ends within the record at offset {offset}."
                f" Make a copy of it, then run 'disque-check-aof --fix {self._path}', or set"
                " 'aof-load-truncated yes', and start again."
            )
        beside = f"{self._path}.cut-{offset}"
        self._keep(beside, tail)
        self.file.truncate(offset)
        self.file.sync()
        self._environment.reports.warning(
            f"The append only file {self._path} ended within a record: it was cut at offset"
            f" {offset}, the last {len(tail)} bytes are kept in {beside}."
        )

    def _keep(self, path: str, data: bytes) -> None:
        files = self._environment.files
        file = files.create(path)
        try:
            file.append(data)
            file.sync()
        finally:
            file.close()
        files.sync_folder(path)

    def _damaged(self, what: str, offset: int) -> ConfigError:
        return ConfigError(
            f"Bad file format: the append only file {self._path} is damaged at offset {offset}:"
            f" {what}. Make a copy of it, then run 'disque-check-aof --fix {self._path}' and start"
            " again."
        )


def open_log(files: IFiles, path: str, may_be_new: bool) -> IFile:
    """The log at the start of the node, which no other node can have then; raises ``ConfigError``
    when there can be none."""
    try:
        file = claim(files, path, may_be_new)
    except BlockingIOError as error:
        raise ConfigError(
            f"The append only file {path} is in use by another node. Give every node its own 'dir'"
            " or 'appendfilename'."
        ) from error
    except OSError as error:
        raise ConfigError(_no_log(path, error)) from error
    try:
        if not file.size():
            files.sync_folder(path)  # it may be new
    except OSError as error:
        file.close()
        raise ConfigError(_no_log(path, error)) from error
    return file


def _no_log(path: str, error: OSError) -> str:
    return (
        f"Can't open the append only file {path}: {os_error_text(error)}. Check 'dir' and"
        " 'appendfilename'; 'aof-enqueue-jobs-once yes' needs a file to load."
    )


def reload_log(
    environment: Environment, path: str, claimed: bool, forget: Callable[[], None]
) -> None:
    """Load the log of a running node within one step, after ``forget`` has emptied the node.

    ``claimed``: lock the file, which no other node may have; otherwise it is the one that this node
    writes to.

    Raises ``CommandError`` before that when the file is missing, empty or damaged.
    """
    try:
        file = claim(environment.files, path, False) if claimed else environment.files.open(path)
    except OSError as error:
        raise CommandError("ERR", f"Can't load {path}: {os_error_text(error)}") from error
    try:
        if file.size() == 0:
            raise CommandError("ERR", "")
        loader = Loader(environment, path, file, environment.settings.aof_enqueue_jobs_once)
        loader.check()
        forget()
        loader.run_now()
    except (ConfigError, OSError) as error:
        raise CommandError("ERR", str(error)) from error
    finally:
        file.close()
