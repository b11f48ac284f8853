"""How far a stream is behind."""

from __future__ import annotations

from typing import Any

from disque_tx.client.errors import Refused
from disque_tx.client.requests.selection import Selection
from disque_tx.spark.source import lag
from tests.client.scripted import ScriptedNode
from tests.spark.nodes import NodesTestCase, counts, listed

_UNKNOWN = b"-ERR unknown command 'QCOUNT'\r\n"


class LagTests(NodesTestCase):
    """Counts of scripted nodes."""

    def found(self, selection: Selection, *nodes: ScriptedNode) -> dict[str, Any]:
        """The lag as a progress shows it."""
        return lag.as_json(lag.waiting(self.fetching(*nodes), selection))

    def test_nodes(self) -> None:
        """Counts are the sums over nodes, and the age is the greatest."""
        nodes = [self.node(QCOUNT=counts(3, 1, 2000)), self.node(QCOUNT=counts(4, 2, 500))]
        found = self.found(Selection.of(["q"]), *nodes)
        both = {"queued": 7, "inFlight": 3, "oldestS": 2.0}
        self.assertEqual({**both, "queues": {"q": both}}, found)

    def test_patterns(self) -> None:
        """All queues that match a pattern count, on however many pages; few are shown, those with
        most jobs, so that a progress stays small."""
        many = [(f"mail{number}", number) for number in range(12)]
        node = self.node(QLIST=[listed("x", *many[:6]), listed("0", *many[6:])])
        found = self.found(Selection.of([], ["mail*"]), node)
        self.assertEqual(66, found["queued"])
        self.assertEqual([name for name, _ in many[:1:-1]], list(found["queues"]))
        self.assertIn(b"mail*", node.requests[0])

    def test_original(self) -> None:
        """A node of the original knows the lengths of queues only."""
        node = self.node(QCOUNT=_UNKNOWN, QLEN=b":5\r\n")
        self.assertEqual(5, self.found(Selection.of(["q"]), node)["queued"])
        busy = self.node(QCOUNT=b"-ERR Too many long requests are under way\r\n")
        self.assertRaises(Refused, self.found, Selection.of(["q"]), busy)
