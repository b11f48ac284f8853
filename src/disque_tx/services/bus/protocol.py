"""One connection of the cluster bus as a Twisted protocol (cluster protocol, sections 2 and 6).

What a stranger may cost is bounded: one read of at most 64 KiB per connection and turn, and an
incomplete message of at most ``STRANGER_BYTES_MAX`` until a known node has sent a message on the
connection.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IHandshakeListener,
    IPushProducer,
)
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.core.nodes.addresses import plain_ip
from disque_tx.engine.linkend import LinkEnd
from disque_tx.messages.nodes import NodeEntry
from disque_tx.wire.bus.writer import BusWriter

if TYPE_CHECKING:
    from disque_tx.engine.buslinks import BusLinks

#: How long a TLS handshake may take, and sending what is left on a connection that is being closed.
_TIMEOUT_S: Final = 2.0


def ip_of(address: IAddress | None) -> bytes:
    """The literal address of one end of a TCP connection; empty when it is unknown."""
    return (
        plain_ip(address.host.encode()) if isinstance(address, IPv4Address | IPv6Address) else b""
    )


class LinkOwner(typing.Protocol):
    """What a connection reports to. ``links``: all links of the node."""

    reactor: Any
    links: BusLinks

    def opened(self, connection: BusProtocol) -> None:
        """A connection exists; nothing can be sent on it yet."""

    def up(self, connection: BusProtocol) -> None:
        """Messages can go both ways."""

    def receive(self, connection: BusProtocol, data: bytes) -> None:
        """Bytes arrived."""

    def resumed(self) -> None:
        """A socket takes bytes again."""

    def lost(self, connection: BusProtocol, reason: Failure) -> None:
        """A connection is gone."""

    def drop(self, connection: BusProtocol, why: str) -> None:
        """Close a connection because of what the other side did."""

    def faulty(self, connection: BusProtocol, error: Exception) -> None:
        """A message met a fault of this program."""


@implementer(IHandshakeListener, IPushProducer)
class BusProtocol(Protocol):
    """One connection. The protocol is its transport's producer: while the socket does not take
    bytes, what is sent stays in the writer of ``end``.

    ``entry``: the node that we connected to, ``None`` when the other side connected. ``secure``: it
    is up once its TLS handshake is done. ``paused``: the socket is full.
    """

    def __init__(
        self, owner: LinkOwner, entry: NodeEntry | None, peer_ip: bytes, secure: bool
    ) -> None:
        self._owner = owner
        self._secure = secure
        self._timer: IDelayedCall | None = None
        self.end = LinkEnd(self, entry, peer_ip, BusWriter(owner.links.written))
        self.paused = False

    # -- IProtocol and IHandshakeListener ----------------------------------------------------

    def connectionMade(self) -> None:
        """Without TLS the connection is up."""
        transport: Any = self.transport
        transport.setTcpNoDelay(True)
        transport.registerProducer(self, True)
        serve_link = getattr(transport, "serve_link", None)
        if serve_link is not None:
            serve_link(self.end)
        if self._secure:
            self._timer = self._owner.reactor.callLater(_TIMEOUT_S, transport.abortConnection)
        self._owner.opened(self)
        if not self._secure:
            self._owner.up(self)

    def handshakeCompleted(self) -> None:
        """The handshake is complete: each side has shown its certificate."""
        self._cancel_timer()
        self._owner.up(self)

    def dataReceived(self, data: bytes) -> None:
        """Hand complete messages to the node; outside of a turn this is a turn of its own."""
        self._owner.receive(self, data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Nothing can be sent to the other side any more."""
        self._cancel_timer()
        self._owner.lost(self, reason)

    def _cancel_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    # -- for the owner -------------------------------------------------------------------------

    def local_ip(self) -> bytes:
        """The address of our end."""
        transport: Any = self.transport
        return ip_of(transport.getHost())

    def write(self, data: bytes) -> None:
        """Send, now or when the socket takes it."""
        transport: Any = self.transport
        transport.write(data)

    def broken(self, error: OSError) -> None:
        """The socket does not send any more."""
        transport: Any = self.transport
        transport.broken(error)

    def close(self) -> None:
        """Close, after what was written has left, if that does not take long."""
        transport: Any = self.transport
        transport.unregisterProducer()
        self._cancel_timer()
        self._timer = self._owner.reactor.callLater(_TIMEOUT_S, transport.abortConnection)
        transport.loseConnection()

    def drop(self, why: str) -> None:
        """Close now, because of what the other side did."""
        self._owner.drop(self, why)

    def overflowed(self) -> None:
        """The other side does not read."""
        self._owner.drop(self, "does not read what it is sent")

    def faulty(self, error: Exception) -> None:
        """A message met a fault of this program."""
        self._owner.faulty(self, error)

    def abort(self) -> None:
        """Close now."""
        transport: Any = self.transport
        transport.abortConnection()

    # -- IPushProducer -----------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """The socket is full: keep what is sent from now on."""
        self.paused = True

    def resumeProducing(self) -> None:
        """The socket takes bytes again: what was kept leaves with the turn."""
        self.paused = False
        self._owner.resumed()

    def stopProducing(self) -> None:
        """The connection is gone; :meth:`connectionLost` does the work."""


class BusFactory(Factory):
    """Makes the protocols of inbound connections, or of the one to ``entry``."""

    noisy = False

    def __init__(self, owner: LinkOwner, entry: NodeEntry | None, secure: bool) -> None:
        self._owner = owner
        self._entry = entry
        self._secure = secure

    def buildProtocol(self, addr: IAddress | None) -> BusProtocol:
        """One protocol per connection."""
        return BusProtocol(self._owner, self._entry, ip_of(addr), self._secure)
