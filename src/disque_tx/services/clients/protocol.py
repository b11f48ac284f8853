"""RESP connections as Twisted protocols (client protocol, sections 2 to 5).

The work is done by :mod:`disque_tx.services.turns.pump`; here is what only Twisted can do for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.interfaces import IAddress, IPushProducer
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.services.net.transport import FastTransport
from disque_tx.services.turns.pump import Session

if TYPE_CHECKING:
    from disque_tx.commands.direct import DirectProtocol
    from disque_tx.services.clients.admission import Admission
    from disque_tx.services.turns.runtime import Runtime


@implementer(IPushProducer)
class RespProtocol(Protocol):
    """One client. The protocol is its transport's producer: while the socket does not take bytes,
    replies stay with the session and count as the client's output."""

    def __init__(self, runtime: Runtime, admission: Admission) -> None:
        self._runtime = runtime
        self._admission = admission
        self.session: Session | None = None

    # -- IProtocol ---------------------------------------------------------------------------

    def connectionMade(self) -> None:
        """Register the client, or refuse it."""
        transport: Any = self.transport
        peer, host = transport.getPeer(), transport.getHost()
        refusal = self._admission.refuse(peer, host)
        if refusal:
            transport.write(b"-" + refusal + b"\r\n")
            transport.loseConnection()
            return
        if hasattr(transport, "setTcpNoDelay"):
            transport.setTcpNoDelay(True)
        self.session = self.admitted(peer, host)
        transport.registerProducer(self, True)

    def admitted(
        self, peer: IAddress, host: IAddress, direct: DirectProtocol | None = None
    ) -> Session:
        """Register the client at the address ``peer``, which connected to our address ``host``.
        ``direct``: its protocol, if it is not RESP."""
        admission, transport = self._admission, self.transport
        addr, monitor_addr, unix = describe(peer, host)
        now_ms = self._runtime.node.now_ms
        session = Session(admission.next_id(), addr, now_ms, self, direct)
        session.monitor_addr = monitor_addr
        session.unix = unix
        session.parser.restricted = admission.password_required()
        if isinstance(transport, FastTransport):
            session.fd = transport.fd
            session.recv = transport.recv
            session.send = transport.send
            transport.serve_directly(session)
            transport.set_keepalive(admission.keepalive_s())
        admission.enter(session)
        return session

    def dataReceived(self, data: bytes) -> None:
        """Execute what is complete; outside of a turn this is a turn of its own."""
        session = self.session
        if session is None:
            return
        runtime = self._runtime
        with runtime.turn():
            runtime.pump.receive(session, data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Nothing is held for this client any more."""
        session, self.session = self.session, None
        if session is not None:
            self._admission.dismiss(session)

    # -- for the pump ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send, or keep what the socket does not take."""
        transport: Any = self.transport
        transport.write(data)

    def finish(self) -> None:
        """Close once everything was sent."""
        transport: Any = self.transport
        transport.unregisterProducer()
        transport.loseConnection()

    def abort(self) -> None:
        """Close now."""
        transport: Any = self.transport
        transport.abortConnection()

    def hold(self, held: bool) -> None:
        """Receive nothing while requests wait for another turn."""
        transport: Any = self.transport
        if held:
            transport.pauseProducing()
        else:
            transport.resumeProducing()

    def broken(self, error: OSError) -> None:
        """The socket cannot be written to."""
        transport: Any = self.transport
        transport.broken(error)

    def failed(self, error: BaseException) -> None:
        """A request met a fault of this program."""
        if self.session is not None:
            self._admission.report(self.session, Failure(error))

    def refused(self, why: str) -> None:
        """The client did something that ends its connection."""
        if self.session is not None:
            self._admission.warn(self.session, f"{why}: the connection is closed")

    def output_bytes(self) -> int:
        """Bytes that wait for the client to read."""
        session = self.session
        unsent = getattr(self.transport, "unsent_bytes", None)
        return (session.writer.size if session else 0) + (unsent() if unsent else 0)

    def buffers(self) -> tuple[int, int, int]:
        """Bytes of unprocessed input, bytes of output that wait, and the pieces they lie in."""
        if self.session is None:
            return 0, 0, 0
        session = self.session
        return session.unread(), self.output_bytes(), session.writer.pieces()

    # -- IPushProducer -----------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """The socket is full: keep replies."""
        if self.session is not None:
            self.session.paused = True

    def resumeProducing(self) -> None:
        """The socket takes bytes again, so the client is alive."""
        session = self.session
        if session is None:
            return
        runtime = self._runtime
        session.paused = False
        session.seen_ms = runtime.node.now_ms
        # Some of what was kept may depend on records that are written at the end of the turn.
        with runtime.turn() as node:
            node.outbox.touch(session)

    def stopProducing(self) -> None:
        """The connection is gone; :meth:`connectionLost` does the work."""


def describe(peer: IAddress, host: IAddress) -> tuple[bytes, bytes, bool]:
    """A client's address as CLIENT LIST and as MONITOR shows it, and whether it came by a Unix
    socket."""
    if isinstance(peer, IPv4Address):
        text = f"{peer.host}:{peer.port}".encode()
        return text, text, False
    if isinstance(peer, IPv6Address):
        text = f"[{peer.host}]:{peer.port}".encode()
        return text, text, False
    path = host.name if isinstance(host, UNIXAddress) and host.name else b"?"
    path = path if isinstance(path, bytes) else str(path).encode()
    return path + b":0", b"unix:" + path, True


class RespFactory(Factory):
    """Protocols for the connections of a RESP listener."""

    noisy = False

    def __init__(self, runtime: Runtime, admission: Admission) -> None:
        self._runtime = runtime
        self._admission = admission

    def buildProtocol(self, addr: IAddress | None) -> RespProtocol:
        """One protocol per connection."""
        return RespProtocol(self._runtime, self._admission)
