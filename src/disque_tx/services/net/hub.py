"""The hub: all sockets in one epoll object. The reactor of this package waits in it; for any other
reactor it is one reader."""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IProtocol, IProtocolFactory, IReadDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.engine.hotsocket import RECEIVE_BYTES
from disque_tx.engine.linkend import LinkEnd
from disque_tx.services.net.transport import FastTransport
from disque_tx.services.turns.interfaces import IRoundsReactor
from disque_tx.services.turns.pump import Session

if TYPE_CHECKING:
    from disque_tx.services.turns.runtime import Runtime

#: Edge-triggered: the kernel looks at a socket once per arrival, not again on every poll. So a
#: socket that gave all it was asked for, or whose peer stopped sending, is read again on our own.
_WATCHED: Final = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
_ENDING: Final = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP
_READABLE: Final = select.EPOLLIN | _ENDING


@implementer(IReadDescriptor)
class Hub:
    """The epoll object with all sockets of a node."""

    def __init__(self, reactor: Any, runtime: Runtime) -> None:
        self._reactor = reactor
        self._rounds = runtime.rounds
        self._pump = runtime.pump
        self._epoll = select.epoll()
        self._transports: dict[int, FastTransport] = {}
        self.sessions: dict[int, Session] = runtime.rounds.sessions
        self.links: dict[int, LinkEnd] = runtime.rounds.links

    def start(self) -> None:
        """Begin to serve."""
        rounds, reactor = self._rounds, self._reactor
        rounds.open(self._epoll.poll, self._serve)
        rounds.driven = IRoundsReactor.providedBy(reactor) and reactor.attach(rounds, self._epoll)
        if not rounds.driven:
            reactor.addReader(self)

    def stop(self) -> None:
        """Close every connection, sent or not; nothing when that was done."""
        if self._epoll.closed:
            return
        for transport in list(self._transports.values()):
            transport.abortConnection()
        rounds = self._rounds
        if rounds.driven:
            rounds.driven = False
            self._reactor.detach(rounds)
        else:
            self._reactor.removeReader(self)
        rounds.close()
        self._epoll.close()

    def adopt(self, sock: socket.socket, factory: IProtocolFactory) -> bool:
        """Serve a connected socket with a protocol of ``factory``; ``False`` when it was closed
        before the protocol was made."""
        sock.setblocking(False)
        transport = FastTransport(sock, self)
        try:
            peer = transport.getPeer()
        except OSError:
            sock.close()  # it went away again before it was looked at
            return False
        protocol: IProtocol | None = factory.buildProtocol(peer)
        if protocol is None:
            sock.close()
            return False
        transport.protocol = protocol
        self._transports[transport.fd] = transport
        self._epoll.register(transport.fd, _WATCHED)
        try:
            protocol.makeConnection(transport)
        except BaseException:
            self._give_up(transport)
        return True

    def _give_up(self, transport: FastTransport) -> None:
        """A protocol failed: its connection ends, the error is logged, and all others go on."""
        self._report()
        transport.abortConnection()

    def _report(self) -> None:
        """Let the reactor log the error that is being handled."""
        self._reactor.callLater(0, Failure().raiseException)

    def want_writes(self, transport: FastTransport, wanted: bool) -> None:
        """Watch for the socket to take bytes, or no longer."""
        events = _WATCHED | select.EPOLLOUT if wanted else _WATCHED
        self._epoll.modify(transport.fd, events)

    def close_soon(self, transport: FastTransport, reason: Failure) -> None:
        """Forget a connection when the turn is over."""
        self._reactor.callLater(0, self.close, transport, reason)

    def close(self, transport: FastTransport, reason: Failure) -> None:
        """Forget a connection and notify its protocol."""
        if transport.disconnected:
            return
        fd = transport.fd
        del self._transports[fd]
        self.sessions.pop(fd, None)
        self.links.pop(fd, None)
        self._epoll.unregister(fd)
        transport.shut()
        producer, transport.producer = transport.producer, None
        if producer is not None:
            try:
                producer.stopProducing()
            except BaseException:  # the protocol is notified all the same
                self._report()
        protocol, transport.protocol = transport.protocol, None
        protocol.connectionLost(reason)

    # -- IReadDescriptor ---------------------------------------------------------------------

    def fileno(self) -> int:
        """The epoll object."""
        return self._epoll.fileno()

    def logPrefix(self) -> str:
        """Our name in the log."""
        return "clients"

    def connectionLost(self, reason: Failure) -> None:
        """The reactor stops; :meth:`stop` does the work."""

    def doRead(self) -> None:
        """Serve the sockets that are ready."""
        self._rounds.serve_ready()
        if self._pump.again:
            self._reactor.callLater(0, self._go_on)

    def _go_on(self) -> None:
        if not self._epoll.closed:
            self.doRead()

    def _serve(self, fd: int, event: int) -> None:
        """What the pump does not do."""
        transport = self._transports.get(fd)
        if transport is None:
            return  # closed by what came before it in this turn
        try:
            if event & select.EPOLLOUT:
                transport.writable()
            if event & _READABLE and not transport.disconnected:
                self._read(transport, event)
        except BaseException:
            self._give_up(transport)

    def _read(self, transport: FastTransport, event: int) -> None:
        if not transport.reading:
            return  # reported again when it is resumed
        try:
            data = transport.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(transport, Failure(ConnectionLost(str(error))))
            return
        if not data:
            session = self.sessions.get(transport.fd)
            if session is not None and self._pump.hung_up(session):
                return
            self.close(transport, Failure(ConnectionDone()))
            return
        if event & _ENDING or len(data) == RECEIVE_BYTES:
            # The rest, and the end, come when this part is answered.
            self._pump.again.append((transport.fd, event & ~select.EPOLLOUT))
        transport.protocol.dataReceived(data)
