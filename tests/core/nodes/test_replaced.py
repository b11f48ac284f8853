"""A node that is lost for good is found to have failed although another one has its place."""

from __future__ import annotations

from random import Random

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.duplicateids import is_replaced
from disque_tx.messages.nodes import FAIL, NOADDR, PFAIL
from tests.core.clusterbench import Net, Peer

T_MS = 15_000


class ReplacedTests(SynchronousTestCase):
    """Three nodes, the last of which is lost and replaced before the others suspect it."""

    def setUp(self) -> None:
        self.net = Net(3)
        self.net.join()
        self.lost = self.net.nodes[-1]
        self.alive = self.net.nodes[:-1]

    def replace(self, ip: bytes) -> Peer:
        """The last node is lost; a new one at this address introduces itself a second later."""
        self.net.kill(self.lost)
        self.net.nodes.remove(self.lost)
        self.net.run(1_000)
        new = Peer(9, Random(9), self.net.turn)
        new.ip = ip
        self.net.nodes.append(new)
        new.meet(self.alive[0], self.net.now_ms)
        self.net.run(2_000)
        up = [peer for peer in self.alive if not peer.dead]
        self.assertEqual([0] * len(up), [peer.flags_of(new) for peer in up])
        return new

    def flags(self) -> list[int]:
        """The flags that the nodes from the beginning hold for the lost one."""
        return [peer.flags_of(self.lost) for peer in self.alive]

    def test_elsewhere(self) -> None:
        """The new node has never known the lost one and cannot report it, so it has no vote on it;
        otherwise copies of its jobs would never be made again."""
        self.replace(b"10.0.0.77")
        self.net.run(3 * T_MS)
        self.assertEqual([FAIL, FAIL], self.flags())

    def test_same_address(self) -> None:
        """The lost node has no address any more at which it could be pinged, and fails all the
        same."""
        self.replace(self.lost.ip)
        self.assertEqual([NOADDR, NOADDR], self.flags())
        self.net.run(3 * T_MS)
        self.assertEqual([FAIL | NOADDR] * 2, self.flags())

    def test_links(self) -> None:
        """The others call the lost node at its address and reach the new one. What they send that
        one later, as copies of jobs, is not taken for what an earlier link has delivered late."""
        new = self.replace(self.lost.ip)
        self.net.run(3_000)
        for peer in self.alive:
            link = peer.membership.nodes[new.id].link
            (accepted,) = [wire.far for wire in self.net.wires if wire.near is link]
            entry = new.membership.nodes[peer.id]
            self.assertEqual(entry.newest_link, accepted.number)
            self.assertFalse(is_replaced(entry, accepted))

    def test_forgotten(self) -> None:
        """With ``cluster-forget-after`` the lost node disappears from all tables, for good."""
        for peer in self.alive:
            peer.cluster.forgetting.after_ms = T_MS
        new = self.replace(self.lost.ip)
        self.net.run(6 * T_MS)
        expected = {peer.id for peer in (*self.alive, new)}
        self.assertEqual([expected] * 3, [peer.known_ids() for peer in self.net.nodes])

    def test_moved(self) -> None:
        """A node whose address another one has now, and which has another one itself, is a healthy
        member as soon as it calls."""
        self.replace(self.lost.ip)
        self.net.run(3 * T_MS)
        self.lost.ip, self.lost.dead = b"10.0.0.88", False
        self.net.nodes.append(self.lost)
        self.net.run(5_000)
        self.assertEqual([0, 0], self.flags())

    def test_few(self) -> None:
        """One node alone, which has lost the other two, gets no majority by nodes that join."""
        first, second = self.alive
        self.net.kill(second)
        self.replace_alone(first)
        self.net.run(13 * T_MS)
        self.assertEqual([PFAIL] * 2, [first.flags_of(peer) for peer in (second, self.lost)])

    def test_few_same_address(self) -> None:
        """Unless another node answers at the address of a lost one: that is no partition, and with
        most members in touch it is found to have failed, however late."""
        first, second = self.alive
        self.net.kill(second)
        self.replace(self.lost.ip)
        new = Peer(8, Random(8), self.net.turn)
        self.net.nodes.append(new)
        new.meet(first, self.net.now_ms)
        self.net.run(9 * T_MS)
        self.assertEqual(PFAIL | NOADDR, first.flags_of(self.lost))
        self.net.run(4 * T_MS)
        found = [first.flags_of(peer) for peer in (second, self.lost)]
        self.assertEqual([PFAIL, FAIL | NOADDR], found)

    def replace_alone(self, first: Peer) -> None:
        """The last node is lost as well, and two new ones join the first one."""
        self.net.kill(self.lost)
        for number in (8, 9):
            new = Peer(number, Random(number), self.net.turn)
            self.net.nodes.append(new)
            new.meet(first, self.net.now_ms)
        self.net.run(2_000)
