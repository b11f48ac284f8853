"""Sockets that the fast acceptor serves: what clients and links to other nodes read and write at
once, without Twisted. Everything unusual is left to the protocol object of the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from mypy_extensions import i64

#: Bytes received from one socket per turn at most, and a buffer that is enough for most reads: the
#: allocator returns a small buffer much faster.
RECEIVE_BYTES: Final = 64 * 1024
RECEIVE_SOME: Final = 4 * 1024


class SocketOwner(Protocol):
    """The connection of a socket."""

    def write(self, data: bytes) -> None:
        """Send these bytes when the socket takes them."""

    def broken(self, error: OSError) -> None:
        """The socket does not send any more: the connection will be lost."""


def receive(recv: Callable[[int], bytes], room: i64) -> bytes | None:
    """What has arrived, up to ``room`` bytes; ``None`` if nothing has, and no bytes if the
    connection has ended or failed."""
    try:
        return recv(room)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def send_now(send: Callable[[bytes], int] | None, data: bytes, owner: SocketOwner) -> bool:
    """Send what the socket takes, and leave the rest to ``owner``, or all of it where ``send`` is
    ``None``. Returns whether the socket still sends."""
    if send is None:
        owner.write(data)
        return True
    sent: i64 = 0
    try:
        sent = send(data)
    except BlockingIOError:
        pass
    except OSError as error:
        owner.broken(error)
        return False
    if sent < len(data):
        owner.write(data[sent:])
    return True
