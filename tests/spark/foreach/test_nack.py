"""Jobs of a batch are given back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame

from disque_tx.spark.errors import BadColumn
from disque_tx.spark.foreach.nack import disque_nack
from disque_tx.spark.source.returned import Returned
from tests.client.scripted import HANG_UP, NODE_IDS, ScriptedNode
from tests.spark.nodes import GONE, IDS, NodesTestCase
from tests.spark.shared import shared_session

_KNOWN = b":1\r\n"
_UNKNOWN = b":0\r\n"


def rows(ids: Sequence[str], column: str = "id") -> DataFrame:
    """Rows with these IDs."""
    return shared_session().createDataFrame([(id_,) for id_ in ids], f"{column} string")


class NackTests(NodesTestCase):
    """A query at two nodes."""

    def setUp(self) -> None:
        super().setUp()
        self.checkpoint = Path(self.mktemp()).resolve()
        (self.checkpoint / "offsets").mkdir(parents=True)
        self.batch = f"disque/{'a' * 16}/1-{'b' * 16}"
        (self.checkpoint / "offsets" / "0").write_text(f'v1\n{{"file":"{self.batch}"}}')

    def nack(self, ids: Sequence[str], *nodes: ScriptedNode) -> int:
        """Give these jobs back."""
        servers = ",".join(node.address for node in nodes)
        checkpoint = str(self.checkpoint)
        return disque_nack(rows(ids), "no address", servers=servers, checkpoint=checkpoint)

    def test_elsewhere(self) -> None:
        """A job that one node does not have is given back at another one; one that was given back
        is not asked for again, and each counts once."""
        first = self.node(NODE_IDS[0], NACK=[_UNKNOWN, _KNOWN, _UNKNOWN])
        second = self.node(NODE_IDS[1], NACK=[_KNOWN, _UNKNOWN])
        self.assertEqual(2, self.nack(IDS[:3], first, second))
        asked = [[words[-1].decode() for words in node.requests] for node in (first, second)]
        self.assertEqual([IDS[:3], [IDS[0], IDS[2]]], asked)
        self.assertIn(b"no address", first.requests[0])

    def test_refused(self) -> None:
        """What no node gives back is not counted, and stays unacknowledged: it comes back after its
        RETRY."""
        first, second = self.node(NODE_IDS[0], NACK=HANG_UP), self.node(NODE_IDS[1], NACK=GONE)
        self.assertEqual(0, self.nack(IDS[:2], first, second))
        left = Returned(str(self.checkpoint)).ids({"file": self.batch})
        self.assertEqual(set(IDS[:2]), left)

    def test_nothing(self) -> None:
        """A batch without such rows needs no node, and rows without IDs are a mistake."""
        node = self.node(NACK=_KNOWN)
        self.assertEqual(0, self.nack([], node))
        self.assertEqual((0, []), (node.connections, node.requests))
        with self.assertRaises(BadColumn):
            disque_nack(rows(["a"], "job"), "why", servers=node.address, checkpoint="c")
