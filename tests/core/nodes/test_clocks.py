"""Wall clocks that differ from those of most other nodes."""

from __future__ import annotations

from disque_tx.core.nodes.clocks import Clocks
from disque_tx.messages.bus import Gossip
from disque_tx.messages.bustypes import CAN_TABLES, PONG
from disque_tx.messages.nodes import FAIL
from tests.core.peerbench import B, C, D, PeerCase


class ClockCase(PeerCase):
    """A node that has heard of the clocks of others."""

    peers = (B, C)

    def setUp(self) -> None:
        super().setUp()
        self.clocks: Clocks = self.node.state.clocks

    def show(self, peer: bytes, ahead_s: float, round_trip_ms: int = 1) -> None:
        """A peer answers a PING with what its clock shows."""
        entry = self.node.membership.nodes[peer]
        entry.ping_sent_ms = self.now_ms
        self.pass_ms(round_trip_ms)
        message = Gossip(PONG, [])
        message.sender = peer
        message.epoch = 1
        message.features = CAN_TABLES
        message.port = entry.port
        message.clock_ms = self.wall_us // 1000 + int(ahead_s * 1000)
        link = entry.link
        assert link is not None
        self.node.receive(link, message)

    def look(self) -> tuple[int, set[bytes]]:
        """By how many seconds this node is ahead, and which others are apart."""
        self.pass_ms(1_000)
        self.clocks.update(self.now_ms)
        return int(self.clocks.ahead_ms) // 1000, self.clocks.apart


class ApartTests(ClockCase):
    """Which clocks are apart."""

    def test_agreed(self) -> None:
        """Small differences mean nothing."""
        self.assertFalse(self.clocks.confirmed)
        self.show(B, 3)
        self.show(C, -3)
        self.assertEqual((0, set()), self.look())
        self.assertTrue(self.clocks.confirmed)

    def test_this_one(self) -> None:
        """A node whose clock differs from those of two others knows that its own is wrong."""
        for ahead_s in (3_600, -3_600):
            self.show(B, ahead_s)
            self.show(C, ahead_s + 1)
            own_s, apart = self.look()
            self.assertIn(own_s + ahead_s, (-1, 0))
            self.assertEqual((set(), False), (apart, self.clocks.confirmed))

    def test_another(self) -> None:
        """Of three nodes, one is apart."""
        self.show(B, 0)
        self.show(C, 60)
        self.assertEqual((0, {C}), self.look())
        self.show(C, -60)
        self.assertEqual((0, {C}), self.look())
        self.assertEqual(1, self.clocks.count)
        self.show(C, 1)
        self.assertEqual((0, set()), self.look())

    def test_set_here(self) -> None:
        """When the own clock is set wrong, that is known before any other message comes."""
        self.show(B, 0)
        self.show(C, 0)
        self.assertEqual((0, set()), self.look())
        self.begin(self.now_ms + 1, self.wall_us + 3_600_000_000)
        self.clocks.update(self.now_ms)
        self.assertIn(int(self.clocks.ahead_ms) // 1000, (3_599, 3_600))

    def test_nobody_knows(self) -> None:
        """Of two nodes neither is right or wrong, and of four not two."""
        self.show(B, 3_600)
        self.assertEqual((0, set()), self.look())
        self.assertFalse(self.clocks.confirmed)
        self.join(D)
        self.show(C, 3_600)
        self.show(D, 0)
        self.assertEqual((0, set()), self.look())

    def test_late_answer(self) -> None:
        """A PONG that took long says how late it is, not what time it is."""
        self.show(B, 0)
        self.show(C, -20, round_trip_ms=2_000)
        self.assertEqual((0, set()), self.look())

    def test_out_of_date(self) -> None:
        """A node that fails, or was silent for minutes, has no say."""
        self.show(B, 60)
        self.show(C, 60)
        self.assertNotEqual(0, self.look()[0])
        self.node.membership.nodes[B].flags |= FAIL
        self.assertEqual((0, set()), self.look())
        self.node.membership.nodes[B].flags &= ~FAIL
        self.pass_ms(130_000)
        self.assertEqual((0, set()), self.look())

    def test_no_clock(self) -> None:
        """An original shows no clock, and a hostile number is none."""
        self.show(B, -self.wall_us / 1_000_000)
        self.show(C, 1e13)
        self.assertEqual((0, set()), self.look())
        self.assertFalse(self.clocks.confirmed)

    def test_sent(self) -> None:
        """Every heartbeat says what the clock shows."""
        self.clear_sent()
        self.node.cluster.tick()
        for peer in (B, C):
            for message in self.sent_to(peer):
                if isinstance(message, Gossip):
                    self.assertEqual(self.wall_us // 1000, message.clock_ms)
                    return
        self.fail("no heartbeat was sent")
