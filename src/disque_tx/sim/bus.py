"""The cluster bus of a simulated process: connections to other nodes, messages in and out.

Peers are nodes of ours on a network that damages nothing, so what the parser cannot read is a fault
of the program, and a failure of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.busmessages import TYPE_NAMES, JobsMessage
from disque_tx.core.addresses import BUS_PORT_OFFSET, plain_ip
from disque_tx.errors import PeerError
from disque_tx.nodetable import Link, NodeEntry
from disque_tx.sim.connection import Connection
from disque_tx.sim.network import CONNECT_US_MAX
from disque_tx.wire.bus import PEER_BYTES_MAX, STRANGER_BYTES_MAX, BusParser, BusWriter

if TYPE_CHECKING:
    from disque_tx.sim.process import Process

#: What a socket takes while the other side reads nothing, and what is kept beyond that.
_SOCKET_BYTES: Final = 256 * 1024
_BUFFER_BYTES: Final = 1024 * 1024


class BusConnection:
    """``entry``: the node that we called, ``None`` when the other side called. ``link``: what the
    node knows it as, while it is up."""

    def __init__(
        self, connection: Connection, entry: NodeEntry | None, written: list[BusWriter]
    ) -> None:
        self.connection = connection
        self.entry = entry
        self.link: Link | None = None
        self.parser = BusParser(STRANGER_BYTES_MAX)
        self.writer = BusWriter(written)


class Bus:
    """All links of one process. ``first_epoch``: a number that no other start had."""

    def __init__(self, process: Process, first_epoch: int) -> None:
        self._process = process
        self._node = process.node
        self._outbox = process.node.outbox
        self._epoch = first_epoch
        process.node.membership.standing.start = first_epoch
        self._written: list[BusWriter] = []
        self._up: dict[object, BusConnection] = {}
        self._stalled: list[BusConnection] = []

    # -- from the network --------------------------------------------------------------------

    def accept(self, connection: Connection) -> None:
        """Another node connected."""
        self._opened(connection, None)

    def _opened(self, connection: Connection, entry: NodeEntry | None) -> None:
        process = self._process
        if not process.alive:
            connection.abort()
            return
        here = BusConnection(connection, entry, self._written)
        connection.on_data = lambda data: process.feed(lambda: self._receive(here, data))
        connection.on_lost = lambda: process.feed(lambda: self._detach(here))
        process.feed(lambda: self._link(here))

    def _link(self, here: BusConnection) -> None:
        """Messages can go both ways."""
        self._epoch += 1
        connection, entry, now_ms = here.connection, here.entry, self._node.now_ms
        here.link = Link(
            here.writer, entry, connection.peer_ip, connection.local_ip, now_ms, self._epoch
        )
        self._up[here.writer] = here
        if entry is not None:
            self._node.cluster.link_up(entry, here.link, now_ms)

    def _receive(self, here: BusConnection, data: bytes) -> None:
        """Hand over every complete message, until the node has enough of this link."""
        link, parser = here.link, here.parser
        if link is None:
            return
        process = self._process
        try:
            parser.feed(data)
            while link not in self._outbox.hangups:
                message = parser.next()
                if message is None:
                    break
                process.world.counters[f"bus.{TYPE_NAMES[message.type]}.delivered"] += 1
                if isinstance(message, JobsMessage) and message.damage:
                    process.fail(f"damaged message: {message.damage}")
                self._node.receive(link, message)
                if link.speaker:
                    parser.limit_bytes = PEER_BYTES_MAX
        except PeerError as error:
            process.fail(f"unreadable message from {link.peer_ip.decode()}: {error}")
            here.connection.abort()
            self._detach(here)
        if parser.ignored:
            process.fail(f"ignored a message from {link.peer_ip.decode()}")
        membership = self._node.membership
        membership.messages_received += parser.received
        parser.received = parser.ignored = 0

    def _detach(self, here: BusConnection) -> None:
        """The node shall not count on this connection any more."""
        link, entry = here.link, here.entry
        here.link = here.entry = None
        self._up.pop(here.writer, None)
        if link is not None:
            self._node.cluster.link_lost(link, self._node.now_ms)
        elif entry is not None:
            self._node.cluster.link_failed(entry, self._node.now_ms)

    # -- at the end of a turn ----------------------------------------------------------------

    def flush(self) -> None:
        """Write what was said: once per connection, unless its socket is full."""
        kept: list[BusWriter] = []
        for writer in self._written:
            here = self._up.get(writer)
            if here is None:
                writer.take()  # there is nobody any more to tell it
            elif here.connection.unread_bytes < _SOCKET_BYTES:
                here.connection.write(writer.take())
            else:
                kept.append(writer)
                if writer.pending_bytes > _BUFFER_BYTES:
                    self._stalled.append(here)
        self._written[:] = kept

    def perform(self) -> bool:
        """Make and close connections; whether there were any."""
        outbox = self._outbox
        work = bool(self._stalled or outbox.hangups or outbox.connects)
        for here in self._stalled:
            self._process.world.count_fault("slow_reader", here.connection.serial)
            here.connection.abort()
            self._detach(here)
        self._stalled.clear()
        hangups, outbox.hangups = outbox.hangups, []
        for link in hangups:
            found = self._up.get(link.sink)
            if found is not None:
                self._detach(found)
                found.connection.close()
        connects, outbox.connects = outbox.connects, []
        for entry in connects:
            self._connect(entry)
        outbox.resolves.clear()  # no names are known in this world
        return work

    def _connect(self, entry: NodeEntry) -> None:
        process = self._process
        process.network.connect(
            process.ip,
            plain_ip(entry.ip),
            int(entry.bus_port or entry.port + BUS_PORT_OFFSET),
            lambda connection: self._opened(connection, entry),
            lambda: process.feed(lambda: self._failed(entry)),
            min(int(self._node.cluster.node_timeout_ms) * 1000, CONNECT_US_MAX),
        )

    def _failed(self, entry: NodeEntry) -> None:
        self._node.cluster.link_failed(entry, self._node.now_ms)

    def close(self) -> None:
        """Hang up on everybody."""
        for here in self._up.values():
            here.connection.close()
