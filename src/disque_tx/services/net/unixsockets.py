"""Unix sockets that belong to one node: one that somebody listens on is left alone."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory

from disque_tx.services.net.sockets import Adopts, FastPort

#: How long another node may be busy with the same folder: it makes a socket there.
_PATIENCE_S: Final = 1.0
_LOOK_EVERY_S: Final = 0.01


class UnixPort(FastPort):
    """A listening Unix socket, whose name goes when it is closed."""

    def __init__(
        self, reactor: Any, hub: Adopts, sock: socket.socket, factory: IProtocolFactory
    ) -> None:
        super().__init__(reactor, hub, sock, factory)
        self._path = os.path.abspath(sock.getsockname())
        self._made = os.stat(self._path)

    def stopListening(self) -> Deferred[None]:
        """Accept no more; the name is removed, unless another socket has it meanwhile."""
        try:
            if os.path.samestat(os.stat(self._path), self._made):
                os.unlink(self._path)
        except OSError:
            pass  # it is gone already, or stays as a stale one
        return super().stopListening()


def listen_unix(path: str, backlog: int, mode: int) -> socket.socket:
    """A socket that listens at ``path``; a stale one of a process that died is replaced.

    ``mode``: permissions, 0 for those of the process. Raises ``OSError`` when that is not possible,
    also because somebody listens there.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _alone_in(os.path.dirname(path) or "."):
            _remove_stale(path)
            sock.bind(path)
            if mode:
                os.chmod(path, mode)
            sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


@contextmanager
def _alone_in(folder: str) -> Iterator[None]:
    """No other node looks for stale sockets in the folder meanwhile: of two that start at once, the
    second one would remove the socket of the first."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        end_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end_s:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_LOOK_EVERY_S)
            except OSError:
                break  # a file system without locks
        yield
    finally:
        os.close(fd)


def _remove_stale(path: str) -> None:
    """Remove a socket that nobody listens on; ``OSError`` for one that somebody does, and for any
    other file."""
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise OSError(errno.EEXIST, "a file that is no socket has this name", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a full queue says that somebody listens, too
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except FileNotFoundError:
            return
        except OSError:
            pass
    raise OSError(errno.EADDRINUSE, "another process listens there", path)
