"""The cluster bus of a simulated process: connections to other nodes, messages in and out.

Peers are nodes of ours on a network that damages nothing, so what the parser cannot read is a fault
of the program, and a failure of the run.
"""

from __future__ import annotations

import traceback
from typing import Final

from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET, plain_ip
from disque_tx.engine.buslinks import BusLinks
from disque_tx.engine.buspump import BusPump, MessageDelivery
from disque_tx.engine.linkend import LinkEnd
from disque_tx.messages.bus import Bulk, JobCopy, JobSignal, JobsMessage, Message, Sender
from disque_tx.messages.bustypes import REPLJOB, type_name
from disque_tx.messages.nodes import Link, NodeEntry
from disque_tx.messages.records import JobRecord
from disque_tx.sim.machines.interfaces import Running
from disque_tx.sim.world.connection import MessageKey, SimConnection
from disque_tx.sim.world.network import CONNECT_US_MAX
from disque_tx.wire.bus.writer import BusWriter

#: What a socket takes while the other side reads nothing.
_SOCKET_BYTES: Final = 256 * 1024


class BusConnection:
    """A connection to another node (see ``LinkConnection``). Peers are nodes of ours on a network
    that damages nothing, so whatever they are blamed for is a finding."""

    def __init__(self, bus: SimBus, connection: SimConnection, entry: NodeEntry | None) -> None:
        self._bus = bus
        self.connection = connection
        writer = SimWriter(bus.links.written, connection, bus.process)
        peer_ip = bus.process.network.seen_as(connection.peer_ip)
        self.end = LinkEnd(self, entry, peer_ip, writer)

    @property
    def paused(self) -> bool:
        """The socket takes nothing now."""
        return self.connection.unread_bytes >= _SOCKET_BYTES

    def local_ip(self) -> bytes:
        """The address of this end."""
        return self._bus.process.network.seen_as(self.connection.local_ip)

    def write(self, data: bytes) -> None:
        """Send these bytes."""
        self._bus.process.leaves("a message")
        self.connection.write(data)

    def broken(self, error: OSError) -> None:
        """Fail the process: an error while messages are written is a defect here."""
        self._bus.process.fail(str(error))

    def close(self) -> None:
        """Close, after what was sent."""
        self.connection.close()

    def drop(self, why: str) -> None:
        """The other side did what it must not."""
        self._bus.process.fail(f"{self.end.peer_ip.decode()}: {why}")
        self._abort()

    def overflowed(self) -> None:
        """The other side does not read."""
        self._bus.process.world.count_fault("slow_reader", self.connection.serial)
        self._abort()

    def faulty(self, error: Exception) -> None:
        """A message met a fault of this program."""
        self._bus.process.fail("".join(traceback.format_exception(error)))
        self._abort()

    def _abort(self) -> None:
        self.connection.abort()
        self._bus.lost(self)


class SimWriter(BusWriter):
    """Notes on the connection what is sent, in order."""

    def __init__(
        self, written: list[BusWriter], connection: SimConnection, process: Running
    ) -> None:
        super().__init__(written)
        self.connection = connection
        self._process = process

    def send(self, message: Message) -> None:
        self.connection.messages.append(_key(message))
        for look in self._process.machine.on_send:
            look(self._process, message)
        super().send(message)

    def signal(self, sender: Sender, kind: int, job_id: bytes, aux: int) -> None:
        self.connection.messages.append((kind, job_id, aux))
        super().signal(sender, kind, job_id, aux)

    def copy(self, sender: Sender, copy: JobCopy, mflags: int) -> None:
        self.connection.messages.append((REPLJOB, copy.job.id, mflags))
        super().copy(sender, copy, mflags)


class SimReceived(MessageDelivery):
    """Counts what arrives by type, those in a bulk one by one, and compares it with what was sent:
    as long as no messages are lost or reordered, all arrive on a connection, in order."""

    def __init__(self, process: Running) -> None:
        super().__init__(process.node)
        self._process = process

    def value(self, link: Link, message: Message) -> None:
        for one in message.messages if isinstance(message, Bulk) else (message,):
            self._arrived(link, _key(one))
        if isinstance(message, JobsMessage) and message.damage:
            self._process.fail(f"damaged message: {message.damage}")
        super().value(link, message)

    def signal(self, kind: int, mflags: int, job_id: bytes, aux: int) -> None:
        assert self.link is not None
        self._arrived(self.link, (kind, job_id, aux))
        super().signal(kind, mflags, job_id, aux)

    def copy(self, job: JobRecord, life_s: int, mflags: int) -> None:
        assert self.link is not None
        self._arrived(self.link, (REPLJOB, job.id, mflags))
        super().copy(job, life_s, mflags)

    def _arrived(self, link: Link, key: MessageKey) -> None:
        process = self._process
        process.world.counters[f"bus.{type_name(key[0])}.delivered"] += 1
        if process.network.messages.reliable and isinstance(link.sink, SimWriter):
            sent = link.sink.connection.other.messages
            if not sent or sent.popleft() != key:
                process.fail(f"{type_name(key[0])} arrived out of order, or one before it is lost")


def _key(message: Message) -> MessageKey:
    """What a message is compared by."""
    if isinstance(message, JobSignal):
        return (int(message.type), message.job_id, int(message.aux))
    if isinstance(message, JobsMessage) and message.type == REPLJOB:
        return (REPLJOB, message.jobs[0].id, int(message.mflags))
    return (int(message.type), b"", 0)


class SimBus:
    """The connections of one process. ``first_epoch``: see ``BusLinks``."""

    def __init__(self, process: Running, first_epoch: int) -> None:
        self.process = process
        self._node = process.node
        self._open: dict[BusConnection, None] = {}
        self.links: BusLinks = BusLinks(process.node, process.config, self, first_epoch)
        self.links.active = True
        self.pump = BusPump(process.node, self.links, SimReceived(process))

    # -- from the network --------------------------------------------------------------------

    def accept(self, connection: SimConnection) -> None:
        """Accept a connection of another node."""
        self._opened(connection, None)

    def _opened(self, connection: SimConnection, entry: NodeEntry | None) -> None:
        process = self.process
        if not process.alive:
            connection.abort()
            return
        here = BusConnection(self, connection, entry)
        connection.on_data = lambda data: process.feed(lambda: self._receive(here, data))
        connection.on_lost = lambda: process.feed(lambda: self.lost(here))
        process.feed(lambda: self._up(here))

    def _up(self, here: BusConnection) -> None:
        self._open[here] = None
        self.links.opened(here.end)
        self.links.up(here.end)

    def _receive(self, here: BusConnection, data: bytes) -> None:
        membership = self._node.membership
        ignored = membership.messages_ignored
        self.pump.receive(here.end, data)
        if membership.messages_ignored > ignored:
            self.process.fail(f"ignored a message from {here.end.peer_ip.decode()}")

    def lost(self, here: BusConnection) -> None:
        """A connection is gone."""
        self._open.pop(here, None)
        self.links.lost(here.end)

    # -- from the links ----------------------------------------------------------------------

    def connect(self, entry: NodeEntry) -> None:
        """Connect to a node."""
        process = self.process
        process.network.connect(
            process.ip,
            plain_ip(entry.ip),
            int(entry.bus_port or entry.port + BUS_PORT_OFFSET),
            lambda connection: self._opened(connection, entry),
            lambda: process.feed(lambda: self._failed(entry)),
            min(int(self._node.cluster.node_timeout_ms) * 1000, CONNECT_US_MAX),
        )

    def _failed(self, entry: NodeEntry) -> None:
        self._node.cluster.link_failed(entry)

    def resolve(self, host: bytes, port: int) -> None:
        """No names are known in this world."""

    def close(self) -> None:
        """Close all connections."""
        for here in self._open:
            here.connection.close()
