"""Nodes that failed for long are forgotten by all, and stay forgotten."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.admission.forgetting import ABSENCE_MS, Forgetting, Forgotten
from disque_tx.core.cluster import NODE_TIMEOUT_MS
from disque_tx.messages.bus import Gossip, GossipEntry, NodeFailed
from disque_tx.messages.bustypes import ALL_FEATURES, CAN_NAME, PONG
from disque_tx.messages.nodes import FAIL, NOADDR, PFAIL, NodeEntry
from tests.core.clusterbench import PORT, Net, Peer

NODE = b"b" * 40
#: Longer than it takes until a majority agrees that a node has failed.
FAILED_MS = 40_000
AFTER_MS = 60_000


class ForgettingTests(SynchronousTestCase):
    """Four nodes, of which the last one is gone for good."""

    def setUp(self) -> None:
        self.net = Net(4)
        self.net.join()
        *self.alive, self.gone = self.net.nodes

    def set_after(self, *peers: Peer) -> None:
        """These nodes have ``cluster-forget-after``."""
        for peer in peers:
            peer.cluster.forgetting.after_ms = AFTER_MS

    def die(self) -> None:
        """The last node dies, and all the others find that it has failed."""
        self.net.kill(self.gone)
        self.net.run(FAILED_MS)
        self.assertEqual([FAIL] * 3, [peer.flags_of(self.gone) & FAIL for peer in self.alive])

    def knowing(self) -> list[Peer]:
        """Who has the dead node in its table."""
        return [peer for peer in self.alive if self.gone.id in peer.known_ids()]

    def test_never(self) -> None:
        """Without the setting nobody is forgotten."""
        self.die()
        self.net.run(10 * AFTER_MS)
        self.assertEqual(self.alive, self.knowing())

    def test_everywhere(self) -> None:
        """One node that has the setting is enough; no node is forgotten before its time, and the
        dead one does not come back by what others say of it."""
        self.set_after(self.alive[0])
        self.die()
        self.assertEqual(self.alive, self.knowing())
        while self.gone.id in self.alive[0].known_ids():
            self.net.run(100)
        told = [self.gone.id in peer.cluster.forgetting.told for peer in self.alive[1:]]
        self.assertEqual([True, True], told)
        self.net.run(1_100)
        self.assertEqual([], self.knowing())
        self.net.run(300_000)
        self.assertEqual([3, 3, 3], [len(peer.membership.nodes) for peer in self.alive])
        self.assertEqual(1, max(peer.cluster.forgetting.count for peer in self.alive))

    def test_started_late(self) -> None:
        """A node that was down until the others had forgotten the dead one, and takes it for alive,
        suspects it alone. It forgets it as well, though there is no majority any more."""
        self.set_after(*self.alive[:2])
        late = self.alive[2]
        late.silent = True
        self.net.kill(self.gone)
        for peer in self.alive[:2]:
            # By a majority, the late node included, as far as these know.
            peer.membership.nodes[self.gone.id].flags |= FAIL
        self.net.run(AFTER_MS + 5_000)
        self.assertEqual([late], self.knowing())
        late.silent = False
        self.net.run(FAILED_MS + 20_000)
        self.assertEqual([], self.knowing())

    def miss_it(self) -> Peer:
        """The others forget the dead node while this one, which is returned, is away."""
        self.set_after(self.alive[0])
        self.die()
        away = self.alive[2]
        for peer in self.alive[:2]:
            self.net.cut(peer, away)
        self.net.run(AFTER_MS)
        self.assertEqual([away], self.knowing())
        return away

    def test_missed(self) -> None:
        """A node that was away when the others forgot the dead one learns of it afterwards, and
        does not bring it back."""
        self.miss_it()
        self.net.heal()
        self.net.run(60_000)
        self.assertEqual([], self.knowing())

    def test_address_taken(self) -> None:
        """So does one that found another node at the address of the dead one, and so has none of
        it any more: it can only say that it suspects it."""
        away = self.miss_it()
        entry = away.membership.nodes[self.gone.id]
        entry.flags = PFAIL | NOADDR
        entry.ip, entry.port = b"", 0
        self.net.heal()
        self.net.run(60_000)
        self.assertEqual([], self.knowing())

    def unmet(self) -> Peer:
        """The node dies when only the first one has met it."""
        self.set_after(self.alive[0])
        self.net.kill(self.gone)
        for peer in self.alive[1:]:
            del peer.membership.nodes[self.gone.id]
        return self.alive[0]

    def run_until(self, flags: int) -> int:
        """Run until the first node has these flags for the dead one; returns for how long."""
        began_ms = self.net.now_ms
        while self.alive[0].flags_of(self.gone) != flags:
            self.net.run(100)
        return self.net.now_ms - began_ms

    def test_known_to_one(self) -> None:
        """A node that died when only one node had met it is forgotten, too, though nobody else can
        say that it fails. Until then its lost copies are not made again."""
        self.unmet()
        self.run_until(PFAIL)
        self.assertEqual(10 * NODE_TIMEOUT_MS + 100, self.run_until(FAIL))
        self.net.run(AFTER_MS + 1_000)
        self.assertEqual([], self.knowing())
        self.assertEqual([], [m for _, _, m in self.net.log if isinstance(m, NodeFailed)])

    def test_known_by_file(self) -> None:
        """So is one that the first node has as suspected from its file."""
        entry = self.unmet().membership.nodes[self.gone.id]
        entry.flags, entry.ping_sent_ms = PFAIL, self.net.now_ms
        self.assertEqual(10 * NODE_TIMEOUT_MS + 200, self.run_until(FAIL))

    def test_contradicted(self) -> None:
        """The time counts from when another node last said that it is well."""
        first = self.unmet()
        self.run_until(PFAIL)
        self.net.run(9 * NODE_TIMEOUT_MS)
        link = first.membership.nodes[self.alive[1].id].link
        assert link is not None
        message = Gossip(PONG, [GossipEntry(self.gone.id, self.gone.ip, PORT, 0)])
        message.sender, message.port = self.alive[1].id, PORT
        first.receive(link, message, self.net.now_ms)
        self.assertEqual(10 * NODE_TIMEOUT_MS + 100, self.run_until(FAIL))

    def test_cut_off(self) -> None:
        """A node that is cut off from one that all others reach suspects it for as long as that
        lasts, and does not forget it."""
        self.set_after(self.alive[0])
        self.net.cut(self.alive[0], self.gone)
        self.net.run(20 * NODE_TIMEOUT_MS)
        self.assertEqual([PFAIL, 0, 0], [peer.flags_of(self.gone) for peer in self.alive])
        self.net.heal()
        self.net.run(NODE_TIMEOUT_MS)
        self.assertEqual([0, 0, 0], [peer.flags_of(self.gone) for peer in self.alive])
        self.assertEqual(0, self.alive[0].membership.nodes[self.gone.id].suspected_ms)

    def test_old_version(self) -> None:
        """A node that does not know FORGET gets none; what it says of the dead node brings it back
        to nobody."""
        old = self.alive[2]
        old.membership.features = ALL_FEATURES & ~CAN_NAME
        self.set_after(*self.alive[:2])
        self.net.run(15_000)
        self.die()
        self.net.run(AFTER_MS + 300_000)
        self.assertEqual([old], self.knowing())
        self.assertEqual([3, 3], [len(peer.membership.nodes) for peer in self.alive[:2]])

    def test_copies_pending(self) -> None:
        """A node whose copies are being made again is not forgotten meanwhile, neither by its age
        nor because others say so."""
        self.set_after(self.alive[0])
        slow = self.alive[1]
        slow.cluster.forgetting.copies_pending = lambda node_id: node_id == self.gone.id
        self.die()
        self.net.run(10 * AFTER_MS)
        self.assertEqual([slow], self.knowing())
        slow.cluster.forgetting.copies_pending = lambda node_id: False
        self.net.run(60_000)
        self.assertEqual([], self.knowing())

    def test_alive_here(self) -> None:
        """A node that does not see it fail keeps it, whatever others say."""
        forgetting = Forgetting()
        for flags in (0, PFAIL):
            forgetting.tell(NodeEntry(NODE, b"10.0.0.9", PORT, flags, 0))
        self.assertEqual(set(), forgetting.told)

    def test_recovered(self) -> None:
        """A node that answers again before it is forgotten begins anew when it fails again."""
        entry = NodeEntry(NODE, b"10.0.0.9", PORT, FAIL, 0)
        forgetting = Forgetting()
        forgetting.tell(entry)
        entry.flags = 0
        self.assertEqual([], forgetting.due([entry], 1_000))
        entry.flags = FAIL
        self.assertEqual([], forgetting.due([entry], 1_000))

    def test_from_file(self) -> None:
        """A node that had failed before this one was started is forgotten that much after the
        start."""
        entry = NodeEntry(NODE, b"10.0.0.9", PORT, FAIL, 0)
        forgetting = Forgetting()
        forgetting.after_ms = AFTER_MS
        start_ms = 1_000_000_000
        self.assertEqual([], forgetting.due([entry], start_ms))
        self.assertEqual([], forgetting.due([entry], start_ms + AFTER_MS - 1))
        self.assertEqual([entry], forgetting.due([entry], start_ms + AFTER_MS))

    def test_introduced(self) -> None:
        """A forgotten node that lives after all is a member again when somebody introduces it,
        discovery included."""
        self.set_after(*self.alive)
        self.die()
        self.net.run(AFTER_MS)
        self.gone.dead = False
        self.gone.cluster.reset(False)
        discovery = self.alive[0].cluster.discovery
        discovery.found("dns:n.example", [(self.gone.ip, PORT, 0)], self.net.now_ms)
        self.net.run(5_000)
        self.assertIn(self.alive[0], self.knowing())
        self.assertFalse(self.alive[0].membership.forgotten.aged(self.gone.id, self.net.now_ms))


class ForgottenTests(SynchronousTestCase):
    """What is remembered of nodes that are gone."""

    def test_day(self) -> None:
        """It is remembered for a day, whatever the case of the ID."""
        kept = Forgotten()
        kept.age(b"B" * 40, 1_000)
        self.assertTrue(kept.aged(NODE, 1_000 + ABSENCE_MS - 1))
        self.assertFalse(kept.aged(NODE, 1_000 + ABSENCE_MS))

    def test_bounded(self) -> None:
        """However many nodes others report as forgotten, a thousand are remembered."""
        kept = Forgotten()
        for number in range(1_500):
            kept.age(b"%040d" % number, 1_000)
        self.assertEqual(1_000, len(kept.by_age))
        self.assertTrue(kept.aged(b"%040d" % 1_499, 1_001))

    def test_again(self) -> None:
        """A node that is reported again is remembered from then on, and others are dropped first;
        one that has returned is remembered no more, whatever the case of its ID."""
        kept = Forgotten()
        kept.age(NODE, 1_000)
        for number in range(999):
            kept.age(b"%040d" % number, 1_000)
        kept.age(NODE, 5_000)
        kept.age(b"f" * 40, 5_000)
        self.assertTrue(kept.aged(NODE, 1_000 + ABSENCE_MS))
        self.assertFalse(kept.aged(b"%040d" % 0, 1_001))
        self.assertTrue(kept.aged(b"%040d" % 1, 1_001))
        kept.returned(NODE.upper())
        self.assertFalse(kept.aged(NODE, 5_001))
