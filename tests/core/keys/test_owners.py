"""Which nodes look after a key."""

from __future__ import annotations

from collections import Counter
from functools import partial
from hashlib import blake2b

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.keys.owners import Owners, ranking

_NODES = [b"%040x" % number for number in range(1, 6)]


class RankingTests(SynchronousTestCase):
    """All nodes must agree on the order, or a key would have two owners."""

    def test_order_does_not_depend_on_who_asks(self) -> None:
        """Nodes list each other in any order, and come to the same owner."""
        self.assertEqual(ranking(b"key", _NODES), ranking(b"key", reversed(_NODES)))

    def test_order_is_the_documented_one(self) -> None:
        """Nodes of different versions agree only if the order never changes."""

        def hashed(text: bytes) -> int:
            return int.from_bytes(blake2b(text, digest_size=4).digest(), "big") % 2**31

        def weight(key: bytes, node: bytes) -> int:
            value = hashed(key) ^ hashed(node)
            value = (value ^ value >> 15) * 739_982_445 % 2**31
            value = (value ^ value >> 12) * 695_872_825 % 2**31
            return value ^ value >> 15

        for number in range(100):
            key = b"key-%d" % number
            ranked = sorted(_NODES, key=partial(weight, key), reverse=True)
            self.assertEqual(ranked, ranking(key, _NODES))

    def test_remembered(self) -> None:
        """What is remembered is what would be worked out, also when the nodes have changed."""
        owners = Owners()
        for nodes in (_NODES, _NODES[1:], _NODES):
            for _ in range(2):
                for number in range(10):
                    key = b"key-%d" % number
                    self.assertEqual(ranking(key, nodes), owners.ranking(key, nodes))

    def test_a_lost_node_changes_nothing_for_the_others(self) -> None:
        """When a node is away, a key moves only if that node looked after it."""
        for number in range(50):
            key = b"key-%d" % number
            order = ranking(key, _NODES)
            for lost in _NODES:
                left = [node for node in _NODES if node != lost]
                self.assertEqual([n for n in order if n != lost], ranking(key, left))

    def test_keys_are_spread(self) -> None:
        """No node has to look after most of the keys."""
        owners = Counter(ranking(b"key-%d" % number, _NODES)[0] for number in range(1000))
        self.assertEqual(set(_NODES), set(owners))
        self.assertTrue(all(100 < count < 300 for count in owners.values()), owners)

    def test_nobody(self) -> None:
        """Without nodes there is no owner, and no error."""
        self.assertEqual([], ranking(b"key", []))
