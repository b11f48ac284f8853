"""Links to other nodes: their state, and what is sent in a turn (cluster protocol,
sections 2 and 6).

The policy for nodes that are slow to read: what their socket does not take is kept, up to
``cluster-link-buffer-limit`` per connection, and beyond that the connection is closed. This loses
nothing that the bus guarantees: everything on it is sent again, or is best effort.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from disque_tx.busmessages import Message
from disque_tx.core.node import Node
from disque_tx.errors import PeerError
from disque_tx.nodetable import Link, NodeEntry
from disque_tx.wire.bus import PEER_BYTES_MAX, BusParser, BusWriter

#: Connections on which no known node has sent a message yet; of more, the oldest is closed.
STRANGERS_MAX: Final = 256


class LinkConnection(Protocol):
    """A connection to another node. ``entry``: the node that we connected to, ``None`` when the
    other side connected. ``link``: the connection as the node knows it, while it is up.
    ``trusted``: a known node has sent a message on it."""

    entry: NodeEntry | None
    link: Link | None
    trusted: bool
    peer_ip: bytes
    parser: BusParser
    writer: BusWriter

    @property
    def paused(self) -> bool:
        """The socket takes nothing now."""

    def local_ip(self) -> bytes:
        """The address of this end."""

    def flush(self) -> None:
        """Send what the writer holds."""

    def close(self) -> None:
        """Close it, after what was sent."""

    def drop(self, why: str) -> None:
        """Close it now, because of what the other side did; it is lost then."""

    def overflowed(self) -> None:
        """The other side does not read: close it now."""

    def faulty(self, error: Exception) -> None:
        """A message met a fault of this program: close it now."""


class LinkNetwork(Protocol):
    """Where connections come from."""

    def connect(self, entry: NodeEntry) -> None:
        """Connect to a node."""

    def resolve(self, host: bytes, port: int) -> None:
        """Find the address of a host, and meet the node there."""


class LinkSettings(Protocol):
    """``cluster_link_buffer_limit``: bytes, 0 for none."""

    cluster_link_buffer_limit: int


class BusLinks:
    """All links of one node. ``active``: connections may be made. ``written``: writers that hold
    messages. ``take``: called with each message, as ``Node.receive``. ``first_epoch``: a number
    that no other start of any node had, higher for a later one.

    All methods are called within a turn.
    """

    def __init__(
        self,
        node: Node,
        take: Callable[[Link, Message], object],
        settings: LinkSettings,
        network: LinkNetwork,
        first_epoch: int,
    ) -> None:
        self.active: bool = False
        self.written: list[BusWriter] = []
        self.strangers_max: int = STRANGERS_MAX
        self._node = node
        self._outbox = node.outbox
        self._settings = settings
        self._network = network
        self._epoch = first_epoch
        node.membership.standing.start = first_epoch
        self._take = take
        self._strangers: dict[LinkConnection, None] = {}
        self._up: dict[object, LinkConnection] = {}
        self._stalled: list[LinkConnection] = []

    # -- from connections --------------------------------------------------------------------

    def opened(self, connection: LinkConnection) -> None:
        """A connection exists; nothing can be sent on it yet."""
        if connection.entry is None:
            self._strangers[connection] = None
            if len(self._strangers) > self.strangers_max:
                for oldest in self._strangers:
                    oldest.drop(f"more than {self.strangers_max} strangers are connected")
                    break

    def up(self, connection: LinkConnection) -> None:
        """Messages can go both ways."""
        self._epoch += 1
        node = self._node
        entry = connection.entry
        link = Link(
            connection.writer,
            entry,
            connection.peer_ip,
            connection.local_ip(),
            node.now_ms,
            self._epoch,
        )
        connection.link = link
        self._up[connection.writer] = connection
        if entry is not None:
            node.cluster.link_up(entry, link, node.now_ms)

    def receive(self, connection: LinkConnection, data: bytes) -> None:
        """Bytes arrived."""
        link = connection.link
        if link is None:
            return
        parser = connection.parser
        try:
            parser.feed(data)
            self._execute(connection, link, parser)
        except PeerError as error:
            connection.drop(str(error))
        except Exception as fault:  # a name of its own: compiled, a name has one type
            connection.faulty(fault)
        membership = self._node.membership
        membership.messages_received += parser.received
        membership.messages_ignored += parser.ignored
        parser.received = parser.ignored = 0

    def _execute(self, connection: LinkConnection, link: Link, parser: BusParser) -> None:
        """Hand over every complete message, until the node wants this link closed."""
        outbox = self._outbox
        while not outbox.hangups or link not in outbox.hangups:
            message = parser.next()
            if message is None:
                return
            self._take(link, message)
            if not connection.trusted and link.speaker:
                connection.trusted = True
                parser.limit_bytes = PEER_BYTES_MAX
                self._strangers.pop(connection, None)

    def lost(self, connection: LinkConnection) -> None:
        """A connection is gone, or must not be used any more."""
        self._strangers.pop(connection, None)
        link, entry = connection.link, connection.entry
        connection.link = connection.entry = None
        self._up.pop(connection.writer, None)
        node = self._node
        if link is not None:
            node.cluster.link_lost(link, node.now_ms)
        elif entry is not None:
            node.cluster.link_failed(entry, node.now_ms)

    # -- at the end of a turn ----------------------------------------------------------------

    def flush(self) -> None:
        """Send the messages of this turn: once per connection, unless its socket is full."""
        if not self.written:
            return
        limit = self._settings.cluster_link_buffer_limit
        kept: list[BusWriter] = []
        for writer in self.written:
            connection = self._up.get(writer)
            if connection is None:
                writer.take()  # the connection is gone
            elif connection.paused:
                kept.append(writer)
                if 0 < limit < writer.pending_bytes:
                    self._stalled.append(connection)
            else:
                connection.flush()
        self.written[:] = kept

    def perform(self) -> bool:
        """Make and close connections; returns whether there were any to make or close."""
        if not self.active:
            return False
        outbox = self._outbox
        network = self._network
        work = bool(self._stalled or outbox.hangups or outbox.connects or outbox.resolves)
        if not work:
            return False
        stalled, self._stalled = self._stalled, []
        for connection in stalled:
            connection.overflowed()
        hangups, outbox.hangups = outbox.hangups, []
        for link in hangups:
            found = self._up.get(link.sink)
            if found is not None:
                self.lost(found)
                found.close()
        connects, outbox.connects = outbox.connects, []
        for entry in connects:
            network.connect(entry)
        resolves, outbox.resolves = outbox.resolves, []
        for host, port in resolves:
            network.resolve(host, port)
        return True
