"""The connection between the parent and one of its children: messages, some with a socket.

A message is a list of JSON, its first element the kind; one packet of a Unix socket of the kind
SEQPACKET holds one message. Both ends are processes of one daemon, so messages are not checked.
"""

from __future__ import annotations

import array
import json
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.interfaces import IReadDescriptor, IWriteDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

Message = list[Any]

#: More than any message has: the figures of 128 processes take a fifth of that.
PACKET_BYTES_MAX: Final = 192 * 1024
_PACKETS_PER_TURN: Final = 200
_DESCRIPTOR_BYTES: Final = array.array("i").itemsize


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets for channels."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@implementer(IReadDescriptor, IWriteDescriptor)
class ProcessChannel:
    """One end. ``receive``: called with each message and its socket, if it has one. ``lost``:
    called once when the other end is gone."""

    def __init__(
        self,
        reactor: Any,
        sock: socket.socket,
        receive: Callable[[Message, socket.socket | None], object],
        lost: Callable[[], object],
    ) -> None:
        self._reactor = reactor
        self._sock = sock
        self._receive = receive
        self._lost = lost
        self._waiting: deque[tuple[Message, socket.socket | None]] = deque()
        self._open = True
        sock.setblocking(False)
        reactor.addReader(self)

    def send(self, message: Message, sock: socket.socket | None = None) -> None:
        """Send a message, now or when the other end has read enough; a socket that is sent is
        closed here. Without another end, nothing happens."""
        if not self._open:
            if sock is not None:
                sock.close()
            return
        self._waiting.append((message, sock))
        if len(self._waiting) == 1:
            self.doWrite()

    def close(self) -> list[tuple[Message, socket.socket]]:
        """End it; returns the messages with sockets that were not sent."""
        if not self._open:
            return []
        self._open = False
        self._reactor.removeReader(self)
        self._reactor.removeWriter(self)
        self._sock.close()
        unsent = [(message, sock) for message, sock in self._waiting if sock is not None]
        self._waiting.clear()
        return unsent

    # -- for the reactor ---------------------------------------------------------------------

    def fileno(self) -> int:
        """The socket."""
        return self._sock.fileno()

    def logPrefix(self) -> str:
        """Our name in the log."""
        return "processes"

    def connectionLost(self, reason: Failure) -> None:
        """The other end is gone, which some reactors report in this way."""
        self._ended()

    def doWrite(self) -> None:
        """Send what waits."""
        while self._waiting:
            message, sock = self._waiting[0]
            data = json.dumps(message).encode()
            rights = [] if sock is None else [_rights(sock)]
            try:
                self._sock.sendmsg([data], rights)
            except BlockingIOError:
                self._reactor.addWriter(self)
                return
            except OSError:
                return  # the end of the other side is reported by reading
            self._waiting.popleft()
            if sock is not None:
                sock.close()
        self._reactor.removeWriter(self)

    def doRead(self) -> None:
        """Take what has come."""
        for _ in range(_PACKETS_PER_TURN):
            if not self._open:
                return
            try:
                data, extra, _, _ = self._sock.recvmsg(
                    PACKET_BYTES_MAX, socket.CMSG_SPACE(_DESCRIPTOR_BYTES), socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                return
            except OSError:
                data, extra = b"", []
            if not data:
                self._ended()
                return
            self._receive(json.loads(data), _received(extra))

    def _ended(self) -> None:
        if self._open:
            self._lost()


def _rights(sock: socket.socket) -> tuple[int, int, bytes]:
    return socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sock.fileno()]).tobytes()


def _received(extra: list[tuple[int, int, bytes]]) -> socket.socket | None:
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors = array.array("i")
            descriptors.frombytes(data[: len(data) // _DESCRIPTOR_BYTES * _DESCRIPTOR_BYTES])
            return socket.socket(fileno=descriptors[0])
    return None
