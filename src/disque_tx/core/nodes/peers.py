"""Sending messages to other nodes (cluster protocol, sections 2 and 3).

1. Everything but PONG goes out on links that this node made; PONG goes back where PING came from.
2. Without a link to a node, messages to it are lost; a part that needs an answer asks again.
3. What must not be processed twice is numbered, link by link; only nodes of ours use the number.
4. What is sent most is sent by :meth:`Peers.signal` and :meth:`Peers.copy`, without an object for
   each receiver; the order on a link is the same.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import Job
from disque_tx.core.nodes.duplicateids import DUPLICATE_ID
from disque_tx.core.nodes.failure import failing
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.bus import Gossip, JobCopy, JobSignal, Message, NodeForgotten, Sender
from disque_tx.messages.bustypes import CAN_NAME
from disque_tx.messages.limits import U16_MAX
from disque_tx.messages.nodes import HANDSHAKE, Link, NodeEntry


class Peers:
    """The other nodes, as receivers of messages."""

    __slots__ = ("_membership", "_sender")

    def __init__(self, membership: Membership) -> None:
        self._membership: Membership = membership
        self._sender: Sender = Sender(b"", 0, 0, b"", 0)

    def sender(self) -> Sender:
        """This node as it is now, as the sender of messages."""
        sender = self._sender
        membership = self._membership
        myself = membership.myself
        if (
            sender.id is not myself.id
            or sender.flags != myself.flags & U16_MAX
            or sender.ip is not membership.announced_ip
            or sender.port != myself.port
            or sender.bus_port != myself.bus_port
        ):
            flags = myself.flags & U16_MAX
            ip = membership.announced_ip
            sender = self._sender = Sender(myself.id, myself.port, flags, ip, myself.bus_port)
        return sender

    def entry(self, node_id: bytes) -> NodeEntry | None:
        """The node with this ID, if it is in the table."""
        return self._membership.nodes.get(node_id)

    def reaches(self, node_id: bytes) -> bool:
        """Whether a message to this node should arrive."""
        entry = self._membership.nodes.get(node_id)
        return entry is not None and entry.link is not None and not failing(entry)

    def is_ours(self, node_id: bytes) -> bool:
        """Whether this node has shown that it is none of the original."""
        entry = self._membership.nodes.get(node_id)
        link = entry.link if entry is not None else None
        return link is not None and link.features != 0

    def knows(self, node_id: bytes, feature: i64) -> bool:
        """Whether a node that should be reached has this feature, and so has this one."""
        entry = self._membership.nodes.get(node_id)
        if entry is None or failing(entry):
            return False
        link = entry.link
        return link is not None and link.features & self._membership.features & feature != 0

    def answer(self, link: Link, message: Message) -> None:
        """Send a message on ``link``, whichever node is at the other end."""
        membership = self._membership
        if not message.sender:
            self.sender().sign(message)
        if isinstance(message, Gossip):
            message.epoch = link.epoch  # an original sends none: this marks a node of ours
            message.features = membership.features
            message.cluster = membership.cluster_name.mark
            message.clock_ms = membership.wall_ms
            self._point_out_duplicate(link, message)
        membership.messages_sent += 1
        link.sink.send(message)

    def _point_out_duplicate(self, link: Link, message: Message) -> None:
        """Let one of two processes with one ID know of the other (see ``duplicateids``)."""
        entry = self._membership.nodes.get(link.peer_id)
        if entry is None:
            return
        if link.ignored:
            message.serial = entry.start
        elif entry.contested:
            message.mflags |= DUPLICATE_ID

    def send(self, node_id: bytes, message: Message) -> None:
        """Send a message to one node; it is lost when there is no link."""
        entry = self._membership.nodes.get(node_id)
        if entry is not None:
            link = entry.link
            if link is not None:
                self.answer(link, message)

    def signal(self, node_id: bytes, kind: i64, job_id: bytes, aux: i64) -> None:
        """Send a message about one job, as :meth:`send` does."""
        entry = self._membership.nodes.get(node_id)
        if entry is not None:
            link = entry.link
            if link is not None:
                self._membership.messages_sent += 1
                link.sink.signal(self.sender(), kind, job_id, aux)

    def signal_holders(self, job: Job, kind: i64, aux: i64) -> None:
        """Send a message about a job to all other nodes that may hold a copy of it."""
        mine = self._membership.myself.id
        job_id = job.id
        for node_id in job.nodes:
            if node_id is not mine and node_id != mine:
                self.signal(node_id, kind, job_id, aux)

    def copy(self, node_id: bytes, copy: JobCopy, mflags: i64) -> None:
        """Send REPLJOB, as :meth:`send` does."""
        entry = self._membership.nodes.get(node_id)
        if entry is not None:
            link = entry.link
            if link is not None:
                self._membership.messages_sent += 1
                link.sink.copy(self.sender(), copy, mflags)

    def send_once(self, entry: NodeEntry, message: Message) -> bool:
        """Send a message that must not be processed twice; ``False`` when there is no link."""
        link = entry.link
        if link is None:
            return False
        link.serial += 1
        message.epoch = link.epoch
        message.serial = link.serial
        self.answer(link, message)
        return True

    def notify_holders(self, job: Job, kind: i64, but: bytes = b"") -> None:
        """Send WILLQUEUE or WORKING to all other nodes that may hold a copy of the job, except
        ``but``, and how many are known here, so that who knows more of them forwards it. Originals
        see 0."""
        mine = self._membership.myself.id
        for node_id in job.nodes:
            if node_id != mine and node_id != but:
                known = len(job.nodes) if self.is_ours(node_id) else 0
                self.send(node_id, JobSignal(kind, job.id, known))

    def tell_forgotten(self, entry: NodeEntry, node_id: bytes) -> None:
        """Let a node of ours know that a node that failed for long is forgotten."""
        link = entry.link
        if link is not None and link.features & CAN_NAME and not entry.flags & HANDSHAKE:
            self.answer(link, NodeForgotten(node_id))

    def broadcast(self, message: Message) -> bool:
        """Send a message on every link; ``False`` when there is none."""
        sent = False
        for entry in self._membership.nodes.values():
            link = entry.link
            if link is not None and not entry.flags & HANDSHAKE:
                self.answer(link, message)
                sent = True
        return sent


class SeenSerials:
    """Which numbered messages were taken: per sender and link of it, the highest number so far.

    On one connection numbers only grow, so what is not above the highest came before: a copy, or
    overtaken, and in neither case is it taken.
    """

    __slots__ = ("_serials",)

    #: Links remembered; a node makes a new one when it lost the old.
    LINKS_MAX: Final = 1_024

    def __init__(self) -> None:
        self._serials: dict[tuple[bytes, int], int] = {}

    def first(self, message: Message) -> bool:
        """Whether the message may be taken; always, when it has no number."""
        serial: i64 = message.serial
        if serial == 0:
            return True
        key = (message.sender, int(message.epoch))
        last: i64 = self._serials.pop(key, 0)  # the key goes to the end: it is in use
        self._serials[key] = max(serial, last)
        if serial <= last:
            return False
        if len(self._serials) > self.LINKS_MAX:
            del self._serials[next(iter(self._serials))]
        return True
