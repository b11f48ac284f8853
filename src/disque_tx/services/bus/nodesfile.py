"""The nodes file on disk: locked for the life of the process and written in place.

Cluster protocol, section 9. It is never replaced by renaming: the lock that keeps a second daemon
away, ours or the original, belongs to the file as it is. A damaged file does not keep a node from
starting: what can be read of it is used.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from typing import Final

from disque_tx.engine.ownership import in_use
from disque_tx.errors import ConfigError
from disque_tx.messages.nodes import MYSELF, NodeEntry
from disque_tx.services.machine.files import RealFiles
from disque_tx.wire.files.nodes import parse, render

#: Room for a hundred thousand nodes; what is larger is some other file.
SIZE_BYTES_MAX: Final = 16 * 1024 * 1024


class NodesFile:
    """The file at ``path``, which is resolved once: changing the directory later moves nothing."""

    def __init__(self, path: str) -> None:
        self.path: str = os.path.abspath(path)
        self._lock_fd: int = -1

    def lock(self) -> None:
        """Create the file if needed and lock it against other processes; ``ConfigError`` when that
        fails."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ConfigError(
                f"Can't open the nodes file {self.path}: {error.strerror}. "
                "Check 'dir' and 'cluster-config-file'."
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise ConfigError(self._lock_text(error)) from error
        self._lock_fd = fd

    def _lock_text(self, error: OSError) -> str:
        if error.errno == errno.EWOULDBLOCK:
            return (
                f"The nodes file {self.path} is in use by another node. "
                "Give every node its own 'dir' or 'cluster-config-file'."
            )
        return f"Can't lock the nodes file {self.path}: {error.strerror}."

    def load(self, unix_s: int, now_ms: int, warn: Callable[[str], None]) -> list[NodeEntry]:
        """The rows of the file, none when it is missing or empty: this node is new.

        Of a damaged file, ``warn`` is called with what is wrong and where a copy of it was put;
        what is readable is used. ``unix_s``: the wall clock; ``now_ms``: the steady clock.
        ``ConfigError`` when the file cannot be read, or no copy of a damaged one can be kept.
        """
        text = self._read()
        entries, faults = parse(text, now_ms)
        if faults:
            copy = self._keep(text, unix_s)
            warn(self._warning(entries, faults, copy))
        return entries

    def _keep(self, text: bytes, unix_s: int) -> str:
        """Copy a damaged file: the file itself has to stay, since it carries the lock."""
        path = f"{self.path}.damaged-{unix_s}"
        try:
            with open(path, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ConfigError(
                f"The nodes file {self.path} is damaged, and no copy of it can be kept in {path}:"
                f" {error.strerror}. Make room, repair the file, or move it away to start as a new"
                " node."
            ) from error
        return path

    def _warning(self, entries: list[NodeEntry], faults: list[str], copy: str) -> str:
        known = any(entry.flags & MYSELF for entry in entries)
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        identity = "This node keeps its ID" if known else "This node starts under a new ID"
        others = len(entries) - known
        return (
            f"The nodes file {self.path} is damaged: {faults[0]}{more}."
            f" {identity}, and {others} other nodes could be read."
            f" The damaged file is kept as {copy}."
        )

    def _read(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                text = file.read(SIZE_BYTES_MAX + 1)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise ConfigError(
                f"Can't read the nodes file {self.path}: {error.strerror}."
            ) from error
        if len(text) > SIZE_BYTES_MAX:
            raise ConfigError(
                f"The nodes file {self.path} is larger than {SIZE_BYTES_MAX} bytes, so it is some"
                " other file. Check 'cluster-config-file'."
            )
        return text

    def save(self, entries: list[NodeEntry], unix_ms: int, sync: bool) -> None:
        """Write the rows over the old content; with ``sync``, they are on disk afterwards.

        ``unix_ms``: the wall clock when the steady clock was zero. ``OSError`` when the disk
        refuses. The rest of a longer old content is blanked by the same write, so that a crash
        before it is cut off leaves a file that still loads.
        """
        text = render(entries, unix_ms)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            self._keep_lock(fd)
            padded = text.ljust(os.fstat(fd).st_size, b"\n")
            if os.write(fd, padded) != len(padded):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            if sync:
                os.fsync(fd)
                RealFiles().sync_folder(self.path)  # it may be new
            os.ftruncate(fd, len(text))
        finally:
            os.close(fd)

    def _keep_lock(self, fd: int) -> None:
        """Lock the file again if the one that was locked has been removed or replaced."""
        if self._lock_fd < 0 or os.path.samestat(os.fstat(fd), os.fstat(self._lock_fd)):
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise in_use(self.path) from error
        os.dup2(fd, self._lock_fd, inheritable=False)

    def abandon(self) -> None:
        """The node does not start after all: close the file, and leave none that only the lock
        made."""
        if self._lock_fd >= 0 and os.fstat(self._lock_fd).st_size == 0:
            try:
                os.unlink(self.path)
            except OSError:
                pass  # an empty file does no harm
        self.close()

    def close(self) -> None:
        """Let others use the file; any number of times."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
