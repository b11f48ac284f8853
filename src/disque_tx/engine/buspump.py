"""What arrives on links to other nodes (cluster protocol, section 6).

A message of the usual kind, about one job and from the node that the link belongs to, goes from the
buffer to the node as bytes and numbers. All others become values first. The same bytes have the
same effects both ways.

For links whose sockets the fast acceptor serves, :meth:`BusPump.serve` receives, too; for the
others, what their connections received is given to :meth:`BusPump.receive`.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.core.node import Node
from disque_tx.engine.buslinks import BusLinks
from disque_tx.engine.hotsocket import RECEIVE_BYTES, RECEIVE_SOME, receive
from disque_tx.engine.linkend import LinkEnd
from disque_tx.errors import PeerError
from disque_tx.messages.bus import Message
from disque_tx.messages.nodes import Link, NodeEntry
from disque_tx.messages.records import JobRecord
from disque_tx.wire.bus.bulk import HotMessages
from disque_tx.wire.bus.parser import BusParser

_EPOLLIN: Final = 1


@mypyc_attr(allow_interpreted_subclasses=True)
class MessageDelivery(HotMessages):
    """Gives messages to the node. ``link``, ``sender``: where the hot ones come from."""

    def __init__(self, node: Node) -> None:
        self.node: Node = node
        self.link: Link | None = None
        self.sender: NodeEntry | None = None

    def value(self, link: Link, message: Message) -> None:
        """A message as a value."""
        self.node.receive(link, message)

    def signal(self, kind: i64, mflags: i64, job_id: bytes, aux: i64) -> None:
        sender = self.sender
        assert sender is not None
        self.node.receive_signal(sender, kind, job_id, aux)

    def copy(self, job: JobRecord, life_s: i64, mflags: i64) -> None:
        link, sender = self.link, self.sender
        assert link is not None and sender is not None
        self.node.receive_copy(sender, link, job, life_s, mflags)


class BusPump:
    """``hot``: whether hot messages take the short way; the effects are the same. All methods are
    called within a turn."""

    def __init__(self, node: Node, links: BusLinks, received: MessageDelivery) -> None:
        self.hot: bool = True
        self._membership = node.membership
        self._outbox = node.outbox
        self._node = node
        self._links = links
        self._received = received

    def serve(
        self,
        events: list[tuple[int, int]],
        ends: dict[int, LinkEnd],
        again: list[tuple[int, int]],
    ) -> list[tuple[int, int]]:
        """Receive from every link that is ready; returns the events that need the ordinary way.

        ``ends``: by descriptor. Sockets that may hold more than was read are added to ``again``.
        """
        unusual: list[tuple[int, int]] = []
        for event in events:
            end = ends.get(event[0])
            if end is None or event[1] != _EPOLLIN:
                unusual.append(event)
                continue
            recv = end.recv
            if recv is None:
                unusual.append(event)
                continue
            room = end.room
            data = receive(recv, room)
            if data is None:
                continue
            if not data:
                unusual.append(event)
                continue
            if len(data) == room:
                end.room = RECEIVE_BYTES
                again.append(event)
            elif len(data) < RECEIVE_SOME // 2:
                end.room = RECEIVE_SOME
            self.receive(end, data)
        return unusual

    def receive(self, end: LinkEnd, data: bytes) -> None:
        """Bytes arrived: hand over every complete message."""
        link = end.link
        if link is None:
            return
        parser = end.parser
        # What is taken back by a message behind the one that gave it is given to no client.
        self._node.receiving = True
        try:
            parser.feed(data)
            self._execute(end, link, parser)
        except PeerError as error:
            end.connection.drop(str(error))
        except Exception as fault:  # a name of its own: compiled, a name has one type
            end.connection.faulty(fault)
        self._node.receiving = False
        self._node.serve()
        membership = self._membership
        membership.messages_received += parser.received
        membership.messages_ignored += parser.ignored
        parser.received = parser.ignored = 0

    def _execute(self, end: LinkEnd, link: Link, parser: BusParser) -> None:
        """Hand over messages until there is none, or the node wants this link closed."""
        outbox = self._outbox
        received = self._received
        while not outbox.hangups or link not in outbox.hangups:
            if not parser.advance():
                return
            sender = self._node.sender_of(link) if self.hot else None
            if sender is not None:
                received.link = link
                received.sender = sender
                if parser.read_hot(link.peer_id, received):
                    continue
            message = parser.message()
            if message is None:
                continue
            received.value(link, message)
            if not end.trusted and link.peer_id:
                self._links.trust(end)
