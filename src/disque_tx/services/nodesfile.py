"""The nodes file on disk: locked for the life of the process and written in place.

Cluster protocol, section 9. It is never replaced by renaming: the lock that keeps a second daemon
away, ours or the original, belongs to the file as it is.
"""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Final

from disque_tx.errors import ConfigError, PeerError
from disque_tx.nodetable import NodeEntry
from disque_tx.wire.nodesfile import parse, render

#: Room for a hundred thousand nodes; what is larger is some other file.
SIZE_BYTES_MAX: Final = 16 * 1024 * 1024


class NodesFile:
    """The file at ``path``, which is resolved once: changing the directory later moves nothing."""

    def __init__(self, path: str) -> None:
        self.path: str = os.path.abspath(path)
        self._lock_fd: int = -1

    def lock(self) -> None:
        """Create the file if needed and keep others off it; ``ConfigError`` when that fails."""
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

    def load(self, unix_ms: int, now_ms: int) -> list[NodeEntry]:
        """The rows of the file, none when it is missing or empty: this node is new.

        ``unix_ms``, ``now_ms``: the wall clock and the steady clock at loading.
        ``ConfigError`` names file, line and reason when the file is damaged or cannot be read.
        """
        try:
            return parse(self._read(), unix_ms, now_ms)
        except PeerError as error:
            raise ConfigError(
                f"Unrecoverable error: corrupted cluster config file {self.path}: {error}. "
                "Repair the file, or move it away to start as a new node."
            ) from error

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
            raise PeerError(f"larger than {SIZE_BYTES_MAX} bytes")
        return text

    def save(self, entries: list[NodeEntry], sync: bool) -> None:
        """Write the rows over the old content; with ``sync``, they are on disk afterwards.

        ``OSError`` when the disk refuses. The rest of a longer old content is blanked by the same
        write, so that a crash before it is cut off leaves a file that still loads.
        """
        text = render(entries)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            padded = text.ljust(os.fstat(fd).st_size, b"\n")
            if os.write(fd, padded) != len(padded):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            if sync:
                os.fsync(fd)
            os.ftruncate(fd, len(text))
        finally:
            os.close(fd)

    def close(self) -> None:
        """Let others use the file; any number of times."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
