"""Links to other nodes: their state, and what is sent in a turn (cluster protocol,
sections 2 and 6). ``buspump.py`` is what arrives on them.

The policy for nodes that are slow to read: what their socket does not take is kept, up to
``cluster-link-buffer-limit`` per connection, and beyond that the connection is closed. This loses
nothing that the bus guarantees: everything on it is sent again, or is best effort.
"""

from __future__ import annotations

from typing import Final, Protocol

from disque_tx.core.node import Node
from disque_tx.engine.linkend import LinkEnd
from disque_tx.engine.turns import OutgoingLinks
from disque_tx.messages.nodes import Link, NodeEntry
from disque_tx.wire.bus.parser import PEER_BYTES_MAX
from disque_tx.wire.bus.writer import BusWriter

#: Connections on which no known node has sent a message yet; of more, the oldest is closed.
STRANGERS_MAX: Final = 256


class LinkNetwork(Protocol):
    """Where connections come from."""

    def connect(self, entry: NodeEntry) -> None:
        """Connect to a node."""

    def resolve(self, host: bytes, port: int) -> None:
        """Find the address of a host, and meet the node there."""


class LinkSettings(Protocol):
    """``cluster_link_buffer_limit``: bytes, 0 for none."""

    cluster_link_buffer_limit: int


class BusLinks(OutgoingLinks):
    """All links of one node. ``active``: connections may be made. ``written``: writers that hold
    messages. ``first_epoch``: a number that no other start of any node had, higher for a later
    one.

    All methods are called within a turn.
    """

    def __init__(
        self,
        node: Node,
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
        node.membership.identity.start = first_epoch
        self._strangers: dict[LinkEnd, None] = {}
        self._up: dict[object, LinkEnd] = {}
        self._stalled: list[LinkEnd] = []

    # -- from connections --------------------------------------------------------------------

    def opened(self, end: LinkEnd) -> None:
        """A connection exists; nothing can be sent on it yet."""
        if end.entry is None:
            self._strangers[end] = None
            if len(self._strangers) > self.strangers_max:
                for oldest in self._strangers:
                    oldest.connection.drop(
                        f"more than {self.strangers_max} strangers are connected"
                    )
                    break

    def up(self, end: LinkEnd) -> None:
        """Messages can go both ways."""
        self._epoch += 1
        node = self._node
        entry = end.entry
        local_ip = end.connection.local_ip()
        link = Link(end.writer, entry, end.peer_ip, local_ip, node.now_ms, self._epoch)
        end.link = link
        end.parser.features = node.membership.features
        self._up[end.writer] = end
        if entry is not None:
            node.cluster.link_up(entry, link)

    def trust(self, end: LinkEnd) -> None:
        """A known node has sent a message on it."""
        end.trusted = True
        end.parser.limit_bytes = PEER_BYTES_MAX
        self._strangers.pop(end, None)

    def lost(self, end: LinkEnd) -> None:
        """A connection is gone, or must not be used any more."""
        self._strangers.pop(end, None)
        link, entry = end.link, end.entry
        end.link = end.entry = None
        self._up.pop(end.writer, None)
        node = self._node
        if link is not None:
            node.cluster.link_lost(link)
        elif entry is not None:
            node.cluster.link_failed(entry)

    # -- at the end of a turn ----------------------------------------------------------------

    def flush(self) -> None:
        """Send the messages of this turn: once per connection, unless its socket is full."""
        if not self.written:
            return
        limit = self._settings.cluster_link_buffer_limit
        kept: list[BusWriter] = []
        for writer in self.written:
            end = self._up.get(writer)
            if end is None:
                writer.take()  # the connection is gone
            elif end.connection.paused:
                kept.append(writer)
                if 0 < limit < writer.pending_bytes:
                    self._stalled.append(end)
            else:
                end.flush()
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
        for end in stalled:
            end.connection.overflowed()
        hangups, outbox.hangups = outbox.hangups, []
        for link in hangups:
            found = self._up.get(link.sink)
            if found is not None:
                self.lost(found)
                found.connection.close()
        connects, outbox.connects = outbox.connects, []
        for entry in connects:
            network.connect(entry)
        resolves, outbox.resolves = outbox.resolves, []
        for host, port in resolves:
            network.resolve(host, port)
        return True
