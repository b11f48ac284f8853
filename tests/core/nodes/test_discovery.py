"""Which of the addresses that discovery finds are met, and when."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.discovery import (
    ADDRESSES_MAX,
    INTERVAL_MS,
    TRIES_MAX,
    Discovery,
    Place,
    usable,
)
from disque_tx.messages.nodes import HANDSHAKE, PFAIL
from tests.core.clusterbench import PORT, Net, Peer

DNS = "dns:disque.example"


def places(*peers: Peer) -> list[Place]:
    """The addresses of these nodes."""
    return [(peer.ip, PORT, 0) for peer in peers]


class DiscoveryCase(SynchronousTestCase):
    """Three nodes, none of which knows another."""

    size = 3

    def setUp(self) -> None:
        self.net = Net(self.size)
        self.nodes = self.net.nodes
        self.first, self.second = self.nodes[:2]

    def tell(self, peer: Peer, listed: list[Place], source: str = DNS) -> Discovery:
        """A source of the node has answered."""
        found = peer.cluster.discovery
        found.found(source, listed, self.net.now_ms)
        return found

    def handshakes(self, peer: Peer) -> list[bytes]:
        """The addresses that the node is trying."""
        entries = peer.membership.nodes.values()
        return [entry.ip for entry in entries if entry.flags & HANDSHAKE]

    def assert_joined(self, *peers: Peer) -> None:
        """All of them know each other, and nobody else."""
        for peer in peers:
            self.assertEqual({other.id for other in peers}, peer.known_ids())


class JoiningTests(DiscoveryCase):
    """Nodes become a cluster."""

    def test_all(self) -> None:
        """Nodes that are told all addresses, their own among them, become one cluster, and meet
        neither themselves nor a member again."""
        for peer in self.nodes:
            self.tell(peer, places(*self.nodes))
        self.net.run(2_000)
        self.assert_joined(*self.nodes)
        meets = [peer.cluster.discovery.meets for peer in self.nodes]
        self.net.run(20 * INTERVAL_MS)
        self.assertEqual(meets, [peer.cluster.discovery.meets for peer in self.nodes])
        self.assertTrue(all(number <= 3 for number in meets))

    def test_one_knows(self) -> None:
        """One node that is told is enough."""
        self.tell(self.first, places(*self.nodes))
        self.net.run(2 * INTERVAL_MS)
        self.assert_joined(*self.nodes)

    def test_later(self) -> None:
        """A node that starts long after it was listed is a member within three intervals, though it
        looks for nobody itself."""
        self.net.kill(self.second)
        self.tell(self.first, places(self.second))
        self.net.run(60 * INTERVAL_MS)
        self.second.dead = False
        self.net.run(3 * INTERVAL_MS)
        self.assert_joined(self.first, self.second)

    def test_listed_later(self) -> None:
        """An address that comes into the list is met at once, without waiting for others."""
        discovery = self.tell(self.first, places(self.second))
        self.net.run(1_000)
        self.tell(self.first, places(self.second, self.nodes[2]))
        self.net.run(1_000)
        self.assertEqual(2, discovery.meets)
        self.assertIn(self.nodes[2].id, self.first.known_ids())

    def test_silent(self) -> None:
        """At an address that swallows everything a try ends after a second, the next ones may take
        longer, and there are at most two intervals between them."""
        self.net.swallowing.add(self.second.ip)
        discovery = self.tell(self.first, places(self.second))
        self.net.run(1_000)
        self.assertEqual([self.second.ip], self.handshakes(self.first))
        self.net.run(300)
        self.assertEqual([], self.handshakes(self.first))
        self.net.run(100 * INTERVAL_MS)
        self.assertTrue(50 <= discovery.meets < 80, discovery.meets)

    def test_refused(self) -> None:
        """Where a connection is refused, the try ends at once."""
        self.net.kill(self.second)
        discovery = self.tell(self.first, places(self.second))
        self.net.run(200)
        self.assertEqual((1, []), (discovery.meets, self.handshakes(self.first)))

    def test_vanished(self) -> None:
        """A member that is not listed any more stays a member; a try of an address that is not
        listed any more ends."""
        self.tell(self.first, places(self.second))
        self.net.run(2_000)
        self.net.swallowing.add(self.nodes[2].ip)
        self.tell(self.first, places(self.nodes[2]))
        self.net.run(200)
        self.assertEqual([self.nodes[2].ip], self.handshakes(self.first))
        self.tell(self.first, [(b"10.99.0.1", PORT, 0)])
        self.assertEqual([], self.handshakes(self.first))
        self.net.run(INTERVAL_MS)
        self.assertIn(self.second.id, self.first.known_ids())

    def test_operator(self) -> None:
        """The handshake that an operator has begun at a listed address is his."""
        self.net.swallowing.add(self.second.ip)
        self.first.meet(self.second, self.net.now_ms)
        discovery = self.tell(self.first, places(self.second))
        self.net.run(5_000)
        self.assertEqual((0, [self.second.ip]), (discovery.meets, self.handshakes(self.first)))


class SeveralAddressesTests(DiscoveryCase):
    """Members and this node have more addresses than one."""

    def test_member(self) -> None:
        """A second address of a member that answers is tried once: the member stays where it is,
        with its link, until it cannot be reached there."""
        self.tell(self.first, places(self.second))
        self.net.run(2_000)
        discovery = self.tell(self.first, [*places(self.second), (b"10.77.0.2", PORT, 0)])
        known = self.second.ip
        self.second.ip = b"10.77.0.2"
        entry = self.first.membership.nodes[self.second.id]
        link = entry.link
        self.net.run(30 * INTERVAL_MS)
        self.assertEqual(2, discovery.meets)
        self.assertIs(link, entry.link)
        self.assertEqual(known, entry.ip)

    def test_member_without_link(self) -> None:
        """A second address of a member is tried again as soon as there is no link to it, or it
        counts as failing: it may be there now."""
        for flags in (0, PFAIL):
            self.setUp()
            self.tell(self.first, places(self.second))
            self.net.run(2_000)
            discovery = self.tell(self.first, [*places(self.second), (b"10.77.0.2", PORT, 0)])
            self.second.ip = b"10.77.0.2"
            self.net.run(2 * INTERVAL_MS)
            self.assertEqual(2, discovery.meets)
            entry = self.first.membership.nodes[self.second.id]
            link, entry.flags = entry.link, entry.flags | flags
            entry.link = link if flags else None
            discovery.tick(self.net.now_ms + 2 * INTERVAL_MS, 15_000)
            self.assertEqual(3, discovery.meets, flags)

    def test_moved(self) -> None:
        """A member at a new address is found there as soon as that is listed."""
        self.tell(self.first, places(self.second))
        self.net.run(2_000)
        self.net.kill(self.second)
        self.second.ip, self.second.dead = b"10.77.0.2", False
        self.tell(self.first, places(self.second))
        self.net.run(1_000)
        entry = self.first.membership.nodes[self.second.id]
        self.assertEqual(b"10.77.0.2", entry.ip)
        self.assertTrue(entry.connected)
        self.assert_joined(self.first, self.second)

    def test_myself(self) -> None:
        """An address that turns out to be this node's own is tried once only."""
        discovery = self.tell(self.first, places(self.first))
        self.net.run(30 * INTERVAL_MS)
        self.assertEqual((1, []), (discovery.meets, self.handshakes(self.first)))

    def test_stranger(self) -> None:
        """A node of another cluster at a listed address is asked again and again, and refused each
        time."""
        self.first.membership.cluster_name.set(b"shop", 0)
        discovery = self.tell(self.first, places(self.second))
        self.net.run(10 * INTERVAL_MS)
        self.assertEqual({self.first.id}, self.first.known_ids())
        self.assertEqual(discovery.meets, self.first.membership.cluster_name.refused)
        self.assertTrue(3 < discovery.meets < 10)

    def test_forgotten(self) -> None:
        """A node that an operator has just forgotten is not brought back by discovery for a
        minute, as it is not by gossip."""
        self.tell(self.first, places(self.second))
        self.net.run(2_000)
        for peer, other in ((self.first, self.second), (self.second, self.first)):
            peer.cluster.forget(other.id)
        self.net.run(50_000)
        self.assertEqual({self.first.id}, self.first.known_ids())
        self.net.run(40_000)
        self.assert_joined(self.first, self.second)


class BoundsTests(DiscoveryCase):
    """Answers that are too long, or lie."""

    def test_useless(self) -> None:
        """Addresses where no node can be are counted, and not tried."""
        for ip, port, bus_port in (
            (b"0.0.0.0", PORT, 0),
            (b"::", PORT, 0),
            (b"224.0.0.1", PORT, 0),
            (b"ff02::1", PORT, 0),
            (b"255.255.255.255", PORT, 0),
            (b"example.com", PORT, 0),
            (b"10.0.0.2", 0, 0),
            (b"10.0.0.2", 60_000, 0),
            (b"10.0.0.2", PORT, 70_000),
        ):
            self.assertIsNone(usable((ip, port, bus_port)))
        discovery = self.tell(self.first, [(b"0.0.0.0", PORT, 0), *places(self.second)])
        self.assertEqual((1, 1), (discovery.ignored, discovery.addresses))

    def test_forms(self) -> None:
        """One address in several forms is one address."""
        discovery = self.tell(
            self.first,
            [
                (b"::ffff:10.0.0.2", PORT, 0),
                (b"10.0.0.2", PORT, PORT + 10_000),
                (b"10.0.0.2", PORT, 0),
            ],
        )
        self.assertEqual((0, 1), (discovery.ignored, discovery.addresses))

    def test_many(self) -> None:
        """Of more than 1,000 addresses the rest is ignored. Few are tried at a time, so that
        others can introduce themselves, and a node among a thousand silent addresses is found
        within three intervals all the same."""
        net = Net(2)
        first, second = net.nodes
        lies: list[Place] = [
            (b"10.%d.%d.1" % (50 + number // 250, number % 250), PORT, 0) for number in range(1_200)
        ]
        net.swallowing |= {ip for ip, _port, _bus_port in lies}
        discovery = first.cluster.discovery
        discovery.found(DNS, [*lies[:500], *places(second), *lies[500:]], net.now_ms)
        self.assertEqual((ADDRESSES_MAX, 201), (discovery.addresses, discovery.ignored))
        net.run(100)
        self.assertEqual(TRIES_MAX, len(self.handshakes(first)))
        net.run(3 * INTERVAL_MS)
        self.assertIn(second.id, first.known_ids())

    def test_sources(self) -> None:
        """What several sources list is tried; a source replaces its own list only."""
        discovery = self.tell(self.first, places(self.second))
        self.tell(self.first, places(self.second, self.nodes[2]), "file:/nodes")
        self.assertEqual(2, discovery.addresses)
        self.tell(self.first, [(b"10.99.0.1", PORT, 0)], "file:/nodes")
        self.assertEqual(2, discovery.addresses)

    def test_failures(self) -> None:
        """A source that fails is counted each time and news once for each reason; its addresses
        stay, and its next answer ends the error."""
        discovery = self.tell(self.first, places(self.second))
        self.assertTrue(discovery.failed(DNS, "timed out"))
        self.assertFalse(discovery.failed(DNS, "timed out"))
        self.assertTrue(discovery.failed(DNS, "no such name"))
        self.assertEqual([f"{DNS}: no such name"], discovery.errors())
        self.assertEqual((3, 1), (discovery.sources[DNS].failures, discovery.addresses))
        self.tell(self.first, places(self.second))
        self.assertEqual([], discovery.errors())
