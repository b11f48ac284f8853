"""The choice of a node."""

from __future__ import annotations

from random import Random

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.client.nodes import Nodes
from disque_tx.client.values import Hello, NodeInfo

A, B, C = (Address(f"10.0.0.{number}", 7711) for number in (1, 2, 3))
IDS = {A: "a" * 40, B: "b" * 40, C: "c" * 40}


def hello(speaker: Address, **priorities: int) -> Hello:
    """HELLO of a node that names all three, itself without its IP."""
    rows = []
    for address, letter in ((A, "a"), (B, "b"), (C, "c")):
        ip = "" if address == speaker else address.host
        rows.append(NodeInfo(IDS[address], ip, address.port, priorities.get(letter, 1)))
    return Hello(IDS[speaker], tuple(rows))


class NodesTests(SynchronousTestCase):
    """What is known, and whom to try."""

    def nodes(self, *given: Address, learning: bool = True) -> Nodes:
        return Nodes(given, Random(7), learning)

    def picked(self, nodes: Nodes, now_s: float = 0.0) -> set[Address]:
        return {nodes.pick(now_s)[0] for _ in range(50)}

    def test_priorities(self) -> None:
        """Only nodes of the best priority are chosen, among them any."""
        nodes = self.nodes(A)
        nodes.learn(A, hello(A, c=10))
        self.assertEqual({A, B}, self.picked(nodes))

    def test_backoff(self) -> None:
        """A node that fails again and again is left alone for longer and longer, up to 5 s."""
        nodes = self.nodes(A)
        waits_s = []
        for _ in range(12):
            nodes.failed(A, 0.0)
            waits_s.append(nodes.pick(0.0)[1])
        self.assertTrue(0.025 <= waits_s[0] <= 0.05 and 2.5 <= waits_s[-1] <= 5.0, waits_s)
        nodes.served(A)
        self.assertEqual((A, 0.0), nodes.pick(0.0))

    def test_others_first(self) -> None:
        """While one rests, the others serve."""
        nodes = self.nodes(A, B)
        nodes.failed(A, 0.0)
        self.assertEqual({B}, self.picked(nodes))
        self.assertEqual({A, B}, self.picked(nodes, 1.0))

    def test_forgotten(self) -> None:
        """A node that is not named any more is not tried any more, unless it was given."""
        nodes = self.nodes(A, B)
        nodes.learn(A, hello(A))
        self.assertEqual({A, B, C}, set(nodes.addresses()))
        nodes.learn(A, Hello(IDS[A], (NodeInfo(IDS[A], "", 7711, 1),)))
        self.assertEqual({A, B}, set(nodes.addresses()))

    def test_same_node(self) -> None:
        """A node reached by its name is not known a second time by its number."""
        name = Address("localhost", 7711)
        nodes = self.nodes(name)
        nodes.learn(name, hello(A))
        self.assertEqual({name, B, C}, set(nodes.addresses()))
        nodes.learn(B, hello(B))
        self.assertEqual({name, B, C}, set(nodes.addresses()))

    def test_strange_rows(self) -> None:
        """Only numeric addresses with a port are believed, and not too many."""
        nodes = self.nodes(A)
        rows = [NodeInfo(IDS[A], "", 7711, 1)]
        places = (("x", "", 1), ("y", "evil", 1), ("z", "1.1.1.1", 0), ("v", "1.1.1.1", 65536))
        rows += [NodeInfo(letter * 40, ip, port, 1) for letter, ip, port in places]
        nodes.learn(A, Hello(IDS[A], tuple(rows)))
        self.assertEqual([A], nodes.addresses())
        many = [NodeInfo(f"{n:040}", "1.1.1.1", 1 + n, 1) for n in range(5000)]
        nodes.learn(A, Hello(IDS[A], tuple(many)))
        self.assertLessEqual(len(nodes), 1001)

    def test_not_learning(self) -> None:
        """Who gives one address and no more, gets that one."""
        nodes = self.nodes(A, learning=False)
        nodes.learn(A, hello(A))
        self.assertEqual([A], nodes.addresses())

    def test_maker(self) -> None:
        """The node behind a job ID, if it is well and there is no doubt."""
        nodes = self.nodes(A)
        nodes.learn(A, hello(A, c=100))
        self.assertEqual(B, nodes.made("b" * 8, 0.0))
        self.assertIsNone(nodes.made("c" * 8, 0.0))
        self.assertIsNone(nodes.made("", 0.0))
        nodes.failed(B, 0.0)
        self.assertIsNone(nodes.made("b" * 8, 0.0))
