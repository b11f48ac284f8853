"""Writing the log: one open file, the records still to be written, and when it is synced.

Cluster protocol, section 14.4. Case by case:

1. ``always``: every turn is written and synced before any reply or message is sent. An error is
   fatal: after a failed sync it is unknown what the disk holds, so it is never tried again.
2. ``everysec``: a turn is written at once, a thread syncs once a second. While it is at work a
   write could block, so it is postponed, by two seconds at most: that much can be lost.
3. ``no``: the system decides when data reaches the disk.
4. A write fails, 2 or 3: the part that was written is cut off, the records are kept and tried again
   every second. Until that works, clients are refused.
5. A sync fails, 2 or 3: what the file holds is uncertain, a later success would not change that.
   Clients are refused until a rewrite has made a new file of what is in memory.
6. The name of the log is not that of the open file any more, because it was removed, moved or
   replaced: what is written would be gone after a restart. This is noticed within two seconds.
   Clients are refused, by every policy, until a rewrite has put a new file there.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

import attrs

from disque_tx.config.paths import os_error_text
from disque_tx.engine.aof.environment import Environment
from disque_tx.engine.interfaces import IFile
from disque_tx.engine.ownership import claim_name
from disque_tx.errors import LocalError

_SYNC_EVERY_MS: Final = 1_000
_POSTPONED_MS_MAX: Final = 2_000
_RETRY_MS: Final = 1_000
_LOOK_EVERY_MS: Final = 1_000


@attrs.define
class Syncs:
    """``count``: syncs that are done. ``seconds``: how long they took in all. ``delayed``: writes
    that did not wait for a slow one any longer."""

    count: int = 0
    seconds: float = 0.0
    delayed: int = 0

    def add(self, seconds: float) -> None:
        """Count one sync."""
        self.count += 1
        self.seconds += seconds

    def reset(self) -> None:
        """Begin to count anew."""
        self.count = self.delayed = 0
        self.seconds = 0.0


class LogWriter:
    """The open log. ``size``: bytes of complete records in the file. ``base_size``: the same at the
    last rewrite or at the start. ``buffered``: bytes that are not in the file yet. ``syncing``: a
    thread syncs. ``error``: why the last write failed, ``sync_error``: why a sync failed,
    ``name_error``: why the file is not to be found under its name, empty otherwise.
    ``syncs``: counts them, over all files.
    """

    def __init__(
        self, environment: Environment, file: IFile, suspended: Callable[[], bool], syncs: Syncs
    ) -> None:
        self.size = file.size()
        self.base_size = self.size
        self.buffered = 0
        self.syncing = False
        self.error = ""
        self.sync_error = ""
        self.name_error = ""
        self.syncs = syncs
        self._environment = environment
        self._file = file
        self._suspended = suspended
        self._chunks: list[bytes] = []
        self._torn = False
        self._dirty = False
        self._synced_ms = int(environment.node.now_ms)
        self._postponed_ms = -1
        self._retry_ms = 0
        self._look_ms = 0
        self._dead = ""
        self._retired = False

    def add(self, data: bytes) -> None:
        """Records to be written, in order."""
        self._chunks.append(data)
        self.buffered += len(data)

    def unwritten(self) -> bytes:
        """What was added and is not in the file yet."""
        return b"".join(self._chunks)

    def is_behind(self) -> bool:
        """Whether something added is not yet as safe as ``always`` promises; never with other
        policies."""
        if self._environment.settings.appendfsync != "always":
            return False
        return bool(self._chunks) or (self._dirty and not self._suspended())

    def flush(self) -> None:
        """Write what was added and sync it, if the policy asks for it now.

        Raises ``LocalError`` once the log failed under ``always``: nothing may be answered then.
        """
        if self._dead:
            raise LocalError(self._dead)
        if self._chunks and not self._must_wait():
            self._write()

    def flush_and_sync(self) -> None:
        """Everything added is on the disk afterwards; ``OSError`` when it cannot be."""
        try:
            if not self._dead and self._chunks:
                self._write()
            if not self._dead and not self.error and (self._dirty or self.syncing):
                self._sync_now()
        except LocalError:
            pass
        reason = self._dead or self.trouble()
        if reason:
            raise OSError(errno.EIO, reason)

    def tick(self) -> None:
        """Ten times a second: sync what is due, try again what failed."""
        if self._dead:
            return
        now_ms = self._environment.node.now_ms
        if self.error and now_ms >= self._retry_ms:
            self._write()
        if not self._dirty or self._suspended():
            return
        policy = self._environment.settings.appendfsync
        if policy == "always":
            self._sync_now()
        elif policy == "everysec" and now_ms - self._synced_ms >= _SYNC_EVERY_MS:
            self._sync_later()

    def trouble(self) -> str:
        """Why the log does not hold what was recorded; empty when it does."""
        return self.error or self.sync_error or self.name_error

    def distrusted(self) -> str:
        """Why only a new file can hold what was recorded; empty when this one can."""
        if self.sync_error:
            return "a sync failed"
        return "its name is that of another file, or of none" if self.name_error else ""

    def check_file(self, path: str) -> None:
        """See whether the log is still to be found under its name."""
        now_ms = int(self._environment.node.now_ms)
        if self.name_error or now_ms < self._look_ms:
            return
        self._look_ms = now_ms + _LOOK_EVERY_MS
        try:
            if self._file.is_at(path):
                return
        except OSError:
            return  # unknown; a lasting failure shows at the next write
        self.name_error = f"{path} is not the file that this node has open"
        self._environment.reports.warning(
            f"The append only file was removed, moved or replaced: {self.name_error}. Jobs are"
            " refused until the log has been rewritten there, which begins now. Whatever else uses"
            " the folder, give it another one."
        )

    def reclaim(self, path: str) -> IFile | None:
        """Take the name back from what has it now, and keep that under another name; ``None`` when
        this file has it. ``OSError`` when another node has it."""
        if not self.name_error:
            return None
        aside = f"{path}.found-{int(self._environment.node.wall_us // 1_000_000)}"
        return claim_name(self._environment.files, path, aside)

    def grown(self) -> bool:
        """The file is worth a rewrite: large, and much larger than after the last one."""
        settings = self._environment.settings
        percentage = settings.auto_aof_rewrite_percentage
        if percentage == 0 or self.size <= settings.auto_aof_rewrite_min_size:
            return False
        base_size = max(self.base_size, 1)
        return (self.size - base_size) * 100 // base_size >= percentage

    def retire(self) -> None:
        """Close the file, off the reactor, as soon as no sync uses it."""
        self._retired = True
        if not self.syncing:
            self._environment.close_in_background(self._file, "the old append only file")

    def distrust(self, error: OSError) -> None:
        """A sync the log depends on failed, outside of a turn."""
        try:
            self._sync_broken(error)
        except LocalError:
            pass  # logged already; every later flush raises it again

    def _sync_broken(self, error: OSError) -> None:
        text = os_error_text(error)
        if self._environment.settings.appendfsync == "always":
            self._die(f"Syncing the append only file failed: {text}")
        self._environment.reports.warning(
            f"Syncing the append only file failed: {text}. Jobs are refused until the file has"
            " been rewritten; check the disk."
        )
        self.sync_error = text

    # -- writing -----------------------------------------------------------------------------

    def _must_wait(self) -> bool:
        policy = self._environment.settings.appendfsync
        if self.error and policy != "always":
            return True  # the tick tries again, every second
        if not self.syncing or policy != "everysec":
            return False
        now_ms = int(self._environment.node.now_ms)
        if self._postponed_ms < 0:
            self._postponed_ms = now_ms
        if now_ms - self._postponed_ms < _POSTPONED_MS_MAX:
            return True
        self.syncs.delayed += 1
        self._environment.reports.notice(
            "The disk is slow: a sync of the append only file takes longer than two seconds,"
            " so records are written without waiting for it. This may slow down clients."
        )
        return False

    def _write(self) -> None:
        data = b"".join(self._chunks)
        self._chunks = [data]
        begun_s = self._environment.monotonic()
        try:
            if self._torn:
                self._mend()
            self._torn = True
            self._file.append(data)
            kind = b"aof-write-pending-fsync" if self.syncing else b"aof-write-alone"
            self._environment.measured(begun_s, b"aof-write", kind)
        except OSError as error:
            self._write_failed(error)
            return
        self._torn = False
        self._chunks = []
        self.buffered = 0
        self.size += len(data)
        self._dirty = True
        self._postponed_ms = -1
        if self.error:
            self.error = ""
            self._environment.reports.warning("Writing to the append only file works again.")
        if self._environment.settings.appendfsync == "always" and not self._suspended():
            self._sync_now()

    def _mend(self) -> None:
        """Cut off the part of a record that a failed write left behind."""
        self._file.truncate(self.size)
        self._torn = False

    def _write_failed(self, error: OSError) -> None:
        text = os_error_text(error)
        if self._torn:
            try:
                self._mend()
            except OSError as problem:
                self._environment.reports.warning(
                    f"The append only file ends in an incomplete record: {os_error_text(problem)}"
                )
        if self._environment.settings.appendfsync == "always":
            self._die(f"Writing to the append only file failed: {text}")
        if text != self.error:
            self._environment.reports.warning(
                f"Writing to the append only file failed: {text}. Jobs are refused until it works;"
                " it is tried again every second."
            )
        self.error = text
        self._retry_ms = int(self._environment.node.now_ms) + _RETRY_MS

    def _die(self, what: str) -> None:
        """With ``always`` the process ends, and nothing is answered any more."""
        self._dead = (
            f"{what}. With 'appendfsync always' the node stops here: what it answered until now is"
            " on the disk. Check the disk, then start again."
        )
        self.error = self._dead
        self._environment.fatal(self._dead)
        raise LocalError(self._dead)

    # -- syncing -----------------------------------------------------------------------------

    def _sync_now(self) -> None:
        begun_s = self._environment.monotonic()
        try:
            self._file.sync()
        except OSError as error:
            self._sync_broken(error)
        self.syncs.add(self._environment.monotonic() - begun_s)
        self._environment.measured(begun_s, b"aof-fsync-always")
        self._dirty = False
        self._synced_ms = int(self._environment.node.now_ms)

    def _sync_later(self) -> None:
        if self.syncing:
            return
        self.syncing = True
        self._dirty = False
        self._synced_ms = int(self._environment.node.now_ms)
        begun_s = self._environment.monotonic()
        self._environment.scheduler.in_background(
            self._file.sync, lambda error: self._synced(begun_s, error)
        )

    def _synced(self, begun_s: float, error: Exception | None) -> None:
        self.syncing = False
        self.syncs.add(self._environment.monotonic() - begun_s)
        if self._retired:
            self.retire()
        elif error is not None:
            self.distrust(as_os_error(error))


def as_os_error(error: Exception) -> OSError:
    """Why a file could not be used, whatever was raised."""
    return error if isinstance(error, OSError) else OSError(errno.EIO, str(error))
