"""The fast acceptor: accepted sockets in an inner epoll object that is one reader of the reactor.

Twisted's own transport costs more than the job engine. Here one loop receives, lets the protocols
execute, and afterwards sends, for all sockets that are ready; the protocols are ordinary Twisted
protocols and their transport an ordinary ``ITransport``, which sends at once what the socket takes
and keeps the rest. Linux only, TCP and Unix sockets; everything else uses Twisted's endpoints.
"""

from __future__ import annotations

import errno
import select
import socket
from typing import Any, Final

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import (
    IAddress,
    IConsumer,
    IListeningPort,
    IProtocol,
    IProtocolFactory,
    IReadDescriptor,
    ITransport,
)
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.services.interfaces import ITurn
from disque_tx.services.pump import RECEIVE_BYTES, Session

_EVENTS_PER_TURN: Final = 512
#: How often the hub looks for more before it lets the reactor turn: a turn of the reactor costs
#: as much as serving several requests.
_ROUNDS: Final = 16
_ACCEPTS_PER_TURN: Final = 1000
#: Edge-triggered: the kernel looks at a socket once per arrival, not again on every poll. So a
#: socket that gave all it was asked for, or whose peer stopped sending, is read again on our own.
_WATCHED: Final = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
_ENDING: Final = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP
_READABLE: Final = select.EPOLLIN | _ENDING


def address_of(sock: socket.socket, name: Any) -> IAddress:
    """The Twisted address for what ``getsockname`` or ``getpeername`` returned."""
    if sock.family == socket.AF_INET:
        return IPv4Address("TCP", name[0], name[1])
    if sock.family == socket.AF_INET6:
        return IPv6Address("TCP", *name)
    return UNIXAddress(name or None)


@implementer(ITransport, IConsumer)
class FastTransport:
    """One accepted connection.

    ``disconnecting``: closes once everything was sent. A streaming producer is paused while there
    is anything the socket did not take.
    """

    __slots__ = (
        "protocol",
        "disconnecting",
        "disconnected",
        "producer",
        "fd",
        "_streaming",
        "_sock",
        "recv",
        "send",
        "_hub",
        "_unsent",
        "__weakref__",
    )

    def __init__(self, sock: socket.socket, hub: Hub) -> None:
        self.protocol: Any = None
        self.disconnecting = False
        self.disconnected = False
        self.producer: Any = None
        self.fd = sock.fileno()
        self._streaming = False
        self._sock = sock
        self.send = sock.send
        self.recv = sock.recv
        self._hub = hub
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
            self._hub.want_writes(self, True)
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
            self._hub.close(self, Failure(ConnectionDone()))

    def abortConnection(self) -> None:
        """Close now, whatever was not sent."""
        if not self.disconnected:
            self._hub.close(self, Failure(ConnectionAborted()))

    def getPeer(self) -> IAddress:
        """The other side's address."""
        return address_of(self._sock, self._sock.getpeername())

    def getHost(self) -> IAddress:
        """This side's address."""
        return address_of(self._sock, self._sock.getsockname())

    # -- IConsumer ---------------------------------------------------------------------------

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Let ``producer`` know when to pause and to go on."""
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
            self._hub.close(self, Failure(ConnectionDone()))

    # -- from the hub ------------------------------------------------------------------------

    def serve_directly(self, session: Session) -> None:
        """Let the pump receive for this session, without a call of the protocol per read."""
        self._hub.sessions[self.fd] = session

    def broken(self, error: OSError) -> None:
        """The connection broke; the protocol hears of it after the turn."""
        self.disconnecting = True
        self._hub.close_soon(self, Failure(ConnectionLost(str(error))))

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
        self._hub.want_writes(self, False)
        if self.producer is not None:
            self.producer.resumeProducing()
        elif self.disconnecting:
            self._hub.close(self, Failure(ConnectionDone()))

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


@implementer(IReadDescriptor)
class Hub:
    """The inner epoll object with all accepted sockets; one reader of the reactor."""

    def __init__(self, reactor: Any, turn: ITurn) -> None:
        self._reactor = reactor
        self._turn: Any = turn
        self._epoll = select.epoll()
        self._transports: dict[int, FastTransport] = {}
        self.sessions: dict[int, Session] = {}

    def start(self) -> None:
        """Begin to serve."""
        self._reactor.addReader(self)

    def stop(self) -> None:
        """Close every connection, sent or not."""
        for transport in list(self._transports.values()):
            transport.abortConnection()
        self._reactor.removeReader(self)
        self._epoll.close()

    def adopt(self, sock: socket.socket, factory: IProtocolFactory) -> None:
        """Serve an accepted socket with a protocol of ``factory``."""
        sock.setblocking(False)
        transport = FastTransport(sock, self)
        try:
            peer = transport.getPeer()
        except OSError:
            sock.close()  # it went away again before it was looked at
            return
        protocol: IProtocol | None = factory.buildProtocol(peer)
        if protocol is None:
            sock.close()
            return
        transport.protocol = protocol
        self._transports[transport.fd] = transport
        self._epoll.register(transport.fd, _WATCHED)
        protocol.makeConnection(transport)

    def want_writes(self, transport: FastTransport, wanted: bool) -> None:
        """Tell when the socket takes bytes, or no longer."""
        events = _WATCHED | select.EPOLLOUT if wanted else _WATCHED
        self._epoll.modify(transport.fd, events)

    def close_soon(self, transport: FastTransport, reason: Failure) -> None:
        """Forget a connection when the turn is over."""
        self._reactor.callLater(0, self.close, transport, reason)

    def close(self, transport: FastTransport, reason: Failure) -> None:
        """Forget a connection and tell its protocol."""
        if transport.disconnected:
            return
        fd = transport.fd
        del self._transports[fd]
        self.sessions.pop(fd, None)
        self._epoll.unregister(fd)
        transport.shut()
        producer, transport.producer = transport.producer, None
        if producer is not None:
            producer.stopProducing()
        protocol, transport.protocol = transport.protocol, None
        protocol.connectionLost(reason)

    # -- IReadDescriptor ---------------------------------------------------------------------

    def fileno(self) -> int:
        """The inner epoll object."""
        return self._epoll.fileno()

    def logPrefix(self) -> str:
        """Our name in the log."""
        return "clients"

    def connectionLost(self, reason: Failure) -> None:
        """The reactor stops; :meth:`stop` does the work."""

    def doRead(self) -> None:
        """Serve every socket that is ready, once per round."""
        poll = self._epoll.poll
        pump = self._turn.pump
        for _ in range(_ROUNDS):
            events = poll(0, _EVENTS_PER_TURN)
            if pump.again:
                events += pump.again
                pump.again = []
            if not events:
                return
            self._turn.begin()
            for fd, event in pump.serve(events, self.sessions):
                transport = self._transports.get(fd)
                if transport is not None:  # else closed by what came before it in this turn
                    self._serve(transport, event)
            self._turn.end()
            if self._epoll.closed:
                return
        if pump.again:
            self._reactor.callLater(0, self._go_on)

    def _go_on(self) -> None:
        if not self._epoll.closed:
            self.doRead()

    def _serve(self, transport: FastTransport, event: int) -> None:
        """What the pump does not do."""
        if event & select.EPOLLOUT:
            transport.writable()
        if event & _READABLE and not transport.disconnected:
            self._read(transport, event)

    def _read(self, transport: FastTransport, event: int) -> None:
        try:
            data = transport.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(transport, Failure(ConnectionLost(str(error))))
            return
        if not data:
            self.close(transport, Failure(ConnectionDone()))
            return
        if event & _ENDING or len(data) == RECEIVE_BYTES:
            # The rest, and the end, come when this part is answered.
            self._turn.pump.again.append((transport.fd, event & ~select.EPOLLOUT))
        try:
            transport.protocol.dataReceived(data)
        except Exception:
            failure = Failure()
            self._reactor.callLater(0, failure.raiseException)
            transport.abortConnection()


@implementer(IReadDescriptor, IListeningPort)
class FastPort:
    """A listening socket whose connections go to the hub."""

    def __init__(
        self, reactor: Any, hub: Hub, sock: socket.socket, factory: IProtocolFactory
    ) -> None:
        self._reactor = reactor
        self._hub = hub
        self._sock = sock
        self._factory = factory

    def startListening(self) -> None:
        """Accept from now on."""
        self._sock.setblocking(False)
        self._reactor.addReader(self)

    def stopListening(self) -> Deferred[None]:
        """Accept no more."""
        self._reactor.removeReader(self)
        self._sock.close()
        return succeed(None)

    def getHost(self) -> IAddress:
        """The address listened on."""
        return address_of(self._sock, self._sock.getsockname())

    def fileno(self) -> int:
        """The listening socket."""
        return self._sock.fileno()

    def logPrefix(self) -> str:
        """Our name in the log."""
        return "listener"

    def connectionLost(self, reason: Failure) -> None:
        """The reactor stops; :meth:`stop` does the work."""

    def doRead(self) -> None:
        """Accept who is waiting."""
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                sock, _name = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    # Out of descriptors: look again when there may be some, do not spin.
                    self._reactor.removeReader(self)
                    self._reactor.callLater(0.1, self._reactor.addReader, self)
                    return
                continue
            self._hub.adopt(sock, self._factory)


def listen_tcp(host: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens on ``host``; raises ``OSError`` when it cannot be done."""
    family = socket.AF_INET6 if isIPv6Address(host) else socket.AF_INET
    if not isIPAddress(host) and not isIPv6Address(host):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, name = found[0]
        host = str(name[0])
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock
