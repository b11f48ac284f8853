"""What other nodes can do besides what the original can, and what is sent because of it."""

from __future__ import annotations

from disque_tx.messages.bus import Gossip
from disque_tx.messages.bustypes import (
    CAN_ASK,
    CAN_BULK,
    CAN_DEMAND,
    CAN_HAND_OVER,
    CAN_HEAL,
    CAN_KEYS,
    CAN_LIST,
    CAN_LOADED,
    CAN_MATCH,
    CAN_NAME,
    CAN_QUERY,
    CAN_REPAIR,
    CAN_SETTLE,
    CAN_TABLES,
    PING,
    PONG,
)
from disque_tx.messages.nodes import Link
from tests.core.peerbench import B, C, PeerCase


class FeatureTests(PeerCase):
    """Feature bits (cluster protocol, section 21.1)."""

    def own_link(self, peer: bytes) -> Link:
        """This node's link to a peer, on which the peer answers."""
        link = self.node.membership.nodes[peer].link
        assert link is not None
        return link

    def pong(self, peer: bytes, features: int, epoch: int = 7) -> bool:
        """A peer answers PONG on this node's link; whether it is sent bulks from then on."""
        message = Gossip(PONG, [])
        message.sender, message.port = peer, 7711
        message.features, message.epoch = features, epoch
        link = self.own_link(peer)
        self.node.receive(link, message)
        return bool(link.sink.bulk)

    def test_shown(self) -> None:
        """A node shows what it can do in every heartbeat, and in nothing else."""
        self.node.cluster.tick()
        self.begin_add(2)
        shown = [(isinstance(m, Gossip), m.features) for m in self.sent_to(B) + self.sent_to(C)]
        features = CAN_TABLES | CAN_BULK | CAN_KEYS | CAN_QUERY | CAN_MATCH | CAN_LOADED
        features |= CAN_ASK | CAN_REPAIR | CAN_DEMAND | CAN_HEAL | CAN_NAME
        features |= CAN_HAND_OVER | CAN_SETTLE | CAN_LIST
        self.assertIn((True, features), shown)
        self.assertEqual({(True, features), (False, 0)}, set(shown))

    def test_per_link(self) -> None:
        """A peer is sent bulks once its PONG has shown that it can take them, on that link only; a
        new link begins without."""
        self.assertTrue(self.pong(B, CAN_BULK))
        self.assertFalse(self.pong(C, 0))
        self.sinks[B].bulk = False
        self.unlink(B)
        self.link(B)
        self.assertEqual(0, self.own_link(B).features)

    def test_only_nodes_of_ours(self) -> None:
        """Bits from a node that numbers no links mean nothing: an original may never get a message
        of another type."""
        self.assertFalse(self.pong(B, CAN_BULK, epoch=0))
        self.assertFalse(self.pong(B, 1 << 31))

    def test_taken_back(self) -> None:
        """The latest PONG counts."""
        self.assertTrue(self.pong(B, CAN_BULK | 1))
        self.assertFalse(self.pong(B, 0))

    def test_not_here(self) -> None:
        """A node that cannot read bulks sends none either."""
        self.node.membership.features = 0
        self.assertFalse(self.pong(B, CAN_BULK))

    def test_of_others(self) -> None:
        """A PING on a link that the peer made says nothing about this node's link to it."""
        ping = Gossip(PING, [])
        ping.port, ping.features, ping.epoch = 7711, CAN_BULK, 7
        self.sinks[B].bulk = False
        self.receive(B, ping)
        self.assertFalse(self.own_link(B).sink.bulk)
