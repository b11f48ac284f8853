"""The fast acceptor: accepted sockets in an epoll object of their own.

Twisted's own transport costs more than the job engine. Here one loop receives, lets the protocols
execute, and afterwards sends, for all sockets that are ready; the protocols are ordinary Twisted
protocols and their transport an ordinary ``ITransport``, which sends at once what the socket takes
and keeps the rest. Linux only, TCP and Unix sockets; everything else uses Twisted's endpoints.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, Protocol

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IAddress, IConsumer, IPushProducer, ITransport
from twisted.python.failure import Failure
from zope.interface import implementer

if TYPE_CHECKING:
    from disque_tx.engine.linkend import LinkEnd
    from disque_tx.services.turns.pump import Session


def address_of(sock: socket.socket, name: Any) -> IAddress:
    """The Twisted address for what ``getsockname`` or ``getpeername`` returned."""
    if sock.family == socket.AF_INET:
        return IPv4Address("TCP", name[0], name[1])
    if sock.family == socket.AF_INET6:
        return IPv6Address("TCP", *name)
    return UNIXAddress(name or None)


class Watcher(Protocol):
    """What waits for the sockets of all transports. ``sessions``, ``links``: those that the pump
    and the bus serve directly, by file descriptor."""

    sessions: dict[int, Session]
    links: dict[int, LinkEnd]

    def want_writes(self, transport: FastTransport, wanted: bool) -> None:
        """Watch for the socket to take bytes, or no longer."""

    def close(self, transport: FastTransport, reason: Failure) -> None:
        """Forget a connection and notify its protocol."""

    def close_soon(self, transport: FastTransport, reason: Failure) -> None:
        """Forget a connection when the turn is over."""


@implementer(ITransport, IConsumer, IPushProducer)
class FastTransport:
    """One accepted connection. ``watcher``: reports when the socket is ready.

    ``disconnecting``: closes once everything was sent. A streaming producer is paused while there
    is anything the socket did not take. ``reading``: ``False`` while the protocol has paused it:
    nothing is received, and a disconnect goes unnoticed.
    """

    __slots__ = (
        "protocol",
        "disconnecting",
        "disconnected",
        "producer",
        "reading",
        "fd",
        "_streaming",
        "_sock",
        "recv",
        "send",
        "_watcher",
        "_unsent",
        "__weakref__",
    )

    def __init__(self, sock: socket.socket, watcher: Watcher) -> None:
        self.protocol: Any = None
        self.disconnecting = False
        self.disconnected = False
        self.producer: Any = None
        self.reading = True
        self.fd = sock.fileno()
        self._streaming = False
        self._sock = sock
        self.send = sock.send
        self.recv = sock.recv
        self._watcher = watcher
        self._unsent = bytearray()

    # -- ITransport --------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send now what the socket takes, keep the rest in order."""
        if self.disconnected or not data:
            return
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self.broken(error)
            return
        if sent < len(data):
            self._unsent += data[sent:]
            self._watcher.want_writes(self, True)
            if self.producer is not None and self._streaming:
                self.producer.pauseProducing()

    def writeSequence(self, iovec: Any) -> None:
        """Send pieces as one."""
        self.write(b"".join(iovec))

    def loseConnection(self) -> None:
        """Close once everything was sent and the producer is done."""
        if self.disconnected or self.disconnecting:
            return
        self.disconnecting = True
        if not self._unsent and self.producer is None:
            self._watcher.close(self, Failure(ConnectionDone()))

    def abortConnection(self) -> None:
        """Close now, whatever was not sent."""
        if not self.disconnected:
            self._watcher.close(self, Failure(ConnectionAborted()))

    def getPeer(self) -> IAddress:
        """The other side's address."""
        return address_of(self._sock, self._sock.getpeername())

    def getHost(self) -> IAddress:
        """This side's address."""
        return address_of(self._sock, self._sock.getsockname())

    # -- IConsumer ---------------------------------------------------------------------------

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Pause and resume ``producer`` as the socket takes bytes."""
        if self.producer is not None:
            raise RuntimeError(f"{self.producer!r} is already registered")
        self.producer = producer
        self._streaming = streaming
        if not streaming:
            producer.resumeProducing()

    def unregisterProducer(self) -> None:
        """The producer is done."""
        self.producer = None
        if self.disconnecting and not self._unsent and not self.disconnected:
            self._watcher.close(self, Failure(ConnectionDone()))

    # -- IPushProducer -----------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """Receive nothing."""
        self.reading = False

    def resumeProducing(self) -> None:
        """Receive again, first what has arrived meanwhile."""
        if not self.reading and not self.disconnected:
            self.reading = True
            # A change of what is watched lets the kernel report again what was not read.
            self._watcher.want_writes(self, bool(self._unsent))

    def stopProducing(self) -> None:
        """Close the connection."""
        self.loseConnection()

    # -- from the watcher --------------------------------------------------------------------

    def serve_directly(self, session: Session) -> None:
        """Let the pump receive for this session, without a call of the protocol per read."""
        self._watcher.sessions[self.fd] = session

    def serve_link(self, end: LinkEnd) -> None:
        """Let the bus receive and send for this link, without a call of the protocol per read."""
        end.recv = self.recv
        end.send = self.send
        self._watcher.links[self.fd] = end

    def broken(self, error: OSError) -> None:
        """The connection broke; the protocol is notified after the turn."""
        self.disconnecting = True
        self._watcher.close_soon(self, Failure(ConnectionLost(str(error))))

    def writable(self) -> None:
        """The socket takes bytes again."""
        try:
            sent = self.send(self._unsent)
        except BlockingIOError:
            return
        except OSError as error:
            self.broken(error)
            return
        del self._unsent[:sent]
        if self._unsent:
            return
        self._watcher.want_writes(self, False)
        if self.producer is not None:
            self.producer.resumeProducing()
        elif self.disconnecting:
            self._watcher.close(self, Failure(ConnectionDone()))

    def unsent_bytes(self) -> int:
        """Bytes written and not yet taken by the socket."""
        return len(self._unsent)

    def shut(self) -> None:
        """Give the socket back to the system."""
        self.disconnected = True
        self._unsent = bytearray()
        self._sock.close()

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Send small writes without waiting for more."""
        if self._sock.family != socket.AF_UNIX:
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(enabled))

    def set_keepalive(self, idle_s: int) -> None:
        """Let the system find out about dead peers (client protocol, section 2)."""
        if self._sock.family == socket.AF_UNIX or idle_s <= 0:
            return
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, idle_s)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, idle_s // 3))
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
