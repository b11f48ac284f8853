"""The choice of a node."""

from __future__ import annotations

from random import Random

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import CannotConnect, ConnectionLost, Leaving
from disque_tx.client.addresses import Address
from disque_tx.client.errors import NameNotFound
from disque_tx.client.nodes import Nodes, Origins, Search
from disque_tx.client.values import Hello, Job, NodeInfo
from tests.client.scripted import FakeTime

A, B, C = (Address(f"10.0.0.{number}", 7711) for number in (1, 2, 3))
IDS = {A: "a" * 40, B: "b" * 40, C: "c" * 40}


def hello(responder: Address, **priorities: int) -> Hello:
    """A reply to HELLO that lists all three nodes; the replying one without its IP address."""
    rows = []
    for address, letter in ((A, "a"), (B, "b"), (C, "c")):
        ip = "" if address == responder else address.host
        rows.append(NodeInfo(IDS[address], ip, address.port, priorities.get(letter, 1)))
    return Hello(IDS[responder], tuple(rows))


class NodesTests(SynchronousTestCase):
    """The known nodes, and the order in which they are tried."""

    def nodes(self, *configured: Address, discover: bool = True) -> Nodes:
        return Nodes(configured, Random(7), discover)

    def picked(self, nodes: Nodes, now_s: float = 0.0) -> set[Address]:
        return {nodes.pick(now_s)[0] for _ in range(50)}

    def test_priorities(self) -> None:
        """One of the nodes with the best priority is chosen at random."""
        nodes = self.nodes(A)
        nodes.learn(A, hello(A, c=10))
        self.assertEqual({A, B}, self.picked(nodes))

    def test_names(self) -> None:
        """What a name gives is used as if it were configured, until the name gives something else;
        it is looked up every ten seconds, or every second while no node can be used."""
        name = Address("n.example", 7711, "dns")
        nodes = self.nodes(name)
        error = self.assertRaises(NameNotFound, nodes.pick, 0.0)
        self.assertEqual(("dns:n.example:7711", nodes.shown()), (error.name, error.name))
        self.assertEqual((name,), nodes.due(0.0))
        self.assertEqual((), nodes.due(0.9))
        why = NameNotFound(str(name), "there is no such name")
        nodes.resolved([], why)
        self.assertIs(why, self.assertRaises(NameNotFound, nodes.pick, 1.0))
        self.assertEqual((name,), nodes.due(1.0))
        nodes.resolved([A, B], None)
        self.assertEqual({A, B}, self.picked(nodes, 1.0))
        self.assertEqual((), nodes.due(10.9))
        self.assertEqual((name,), nodes.due(11.0))
        nodes.resolved([], why)
        self.assertEqual({A, B}, self.picked(nodes, 11.0))
        nodes.resolved([C], None)
        self.assertEqual({C}, self.picked(nodes, 11.0))
        nodes.learn(C, hello(C))
        self.assertEqual({A, B, C}, self.picked(nodes, 11.0))
        for address in (A, B, C):
            nodes.failed(address, 13.0)
        self.assertEqual((name,), nodes.due(13.0))

    def test_name_beside_nodes(self) -> None:
        """Nodes that are configured beside a name stay, whatever that gives."""
        nodes = self.nodes(A, Address("n.example", 7711, "dns"))
        nodes.due(0.0)
        nodes.resolved([B], None)
        nodes.resolved([C], None)
        self.assertEqual({A, C}, self.picked(nodes))

    def test_backoff(self) -> None:
        """A node that fails repeatedly is tried again after growing intervals, up to 5 s."""
        nodes = self.nodes(A)
        waits_s = []
        for _ in range(12):
            nodes.failed(A, 0.0)
            waits_s.append(nodes.pick(0.0)[1])
        self.assertTrue(0.025 <= waits_s[0] <= 0.05 and 2.5 <= waits_s[-1] <= 5.0, waits_s)
        nodes.recovered(A)
        self.assertEqual((A, 0.0), nodes.pick(0.0))

    def test_others_first(self) -> None:
        """While one node is backing off, the others are used."""
        nodes = self.nodes(A, B)
        nodes.failed(A, 0.0)
        self.assertEqual({B}, self.picked(nodes))
        self.assertEqual({A, B}, self.picked(nodes, 1.0))

    def test_forgotten(self) -> None:
        """A node that HELLO no longer lists is forgotten, unless it was configured."""
        nodes = self.nodes(A, B)
        nodes.learn(A, hello(A))
        self.assertEqual({A, B, C}, set(nodes.addresses()))
        nodes.learn(A, Hello(IDS[A], (NodeInfo(IDS[A], "", 7711, 1),)))
        self.assertEqual({A, B}, set(nodes.addresses()))

    def test_same_node(self) -> None:
        """A node configured by its name is not added again by its IP address."""
        name = Address("localhost", 7711)
        nodes = self.nodes(name)
        nodes.learn(name, hello(A))
        self.assertEqual({name, B, C}, set(nodes.addresses()))
        nodes.learn(B, hello(B))
        self.assertEqual({name, B, C}, set(nodes.addresses()))

    def test_invalid_rows(self) -> None:
        """Only numeric addresses with a port are accepted, and only a limited number."""
        nodes = self.nodes(A)
        rows = [NodeInfo(IDS[A], "", 7711, 1)]
        places = (("x", "", 1), ("y", "evil", 1), ("z", "1.1.1.1", 0), ("v", "1.1.1.1", 65536))
        rows += [NodeInfo(letter * 40, ip, port, 1) for letter, ip, port in places]
        nodes.learn(A, Hello(IDS[A], tuple(rows)))
        self.assertEqual([A], nodes.addresses())
        many = [NodeInfo(f"{n:040}", "1.1.1.1", 1 + n, 1) for n in range(5000)]
        nodes.learn(A, Hello(IDS[A], tuple(many)))
        self.assertLessEqual(len(nodes), 1001)

    def test_no_discovery(self) -> None:
        """Without discovery only the configured address is used."""
        nodes = self.nodes(A, discover=False)
        nodes.learn(A, hello(A))
        self.assertEqual([A], nodes.addresses())

    def test_node_of_a_job(self) -> None:
        """The node that created a job is found by its ID prefix, if it is usable and the prefix is
        unambiguous."""
        nodes = self.nodes(A)
        nodes.learn(A, hello(A, c=100))
        self.assertEqual(B, nodes.with_id_prefix("b" * 8, 0.0))
        self.assertIsNone(nodes.with_id_prefix("c" * 8, 0.0))
        self.assertIsNone(nodes.with_id_prefix("", 0.0))
        nodes.failed(B, 0.0)
        self.assertIsNone(nodes.with_id_prefix("b" * 8, 0.0))


class SearchTests(SynchronousTestCase):
    """How long a request looks for a node."""

    def setUp(self) -> None:
        self.time = FakeTime()
        self.search = Search(self.time.now_s, 5)

    def test_patience(self) -> None:
        """The time begins with the first failure, and the error has the last reason of each
        node."""
        self.search.failed("a:1", ConnectionLost("a:1", "early", sent=False))
        self.time.s += 4.9
        self.search.failed("a:1", ConnectionLost("a:1", "late", sent=False))
        self.time.s += 0.1
        lost = ConnectionLost("b:1", "gone", sent=False)
        error = self.assertRaises(CannotConnect, self.search.failed, "b:1", lost)
        self.assertEqual({"a:1": "late", "b:1": "gone"}, error.tried)

    def test_notice(self) -> None:
        """Whoever waits is told so, once; nobody is told of a search that does not begin."""
        for patience_s, count in ((5.0, 1), (0.0, 0)):
            notices: list[str] = []
            search = Search(self.time.now_s, patience_s, notices.append)
            for _ in range(2):
                try:
                    search.failed("a:1", ConnectionLost("a:1", "gone", sent=False))
                except CannotConnect:
                    self.assertEqual(0.0, patience_s)
            self.assertEqual(count, len(notices), notices)

    def test_refusal(self) -> None:
        """When the last node sent an error reply, the caller receives that."""
        self.search.failed("a:1", ConnectionLost("a:1", "early", sent=False))
        self.time.s += 5
        leaving = Leaving("GETJOB", "b:1", "LEAVING", "")
        self.assertRaises(Leaving, self.search.failed, "b:1", leaving)


class OriginTests(SynchronousTestCase):
    """Where the jobs come from that a client fetches."""

    def counted(self, origins: Origins, *ids: tuple[str, int]) -> list[str | None]:
        """What is decided after each of so many jobs of these nodes, but for the waits."""
        jobs = [Job("q", f"D-{name * 8}-x", b"") for name, count in ids for _ in range(count)]
        return [found for found in (origins.count([job]) for job in jobs) if found is not None]

    def test_most(self) -> None:
        """After a hundred jobs the client goes to the node that made more than half of them; each
        hundred counts by itself."""
        origins = Origins()
        self.assertEqual([], self.counted(origins, ("a", 99)))
        self.assertEqual(["a" * 8], self.counted(origins, ("b", 1)))
        self.assertEqual([], self.counted(origins, ("b", 99)))
        self.assertEqual(["b" * 8], self.counted(origins, ("a", 1)))
        self.assertEqual([], self.counted(origins, ("a", 50), ("b", 50)))
        self.assertEqual(["b" * 8], self.counted(origins, ("a", 49), ("b", 51)))
