"""Jobs by their IDs, as rows."""

from __future__ import annotations

from disque_tx.spark.errors import JobsLost
from disque_tx.spark.source import readers
from tests.client.scripted import bulk
from tests.spark import nodes
from tests.spark.nodes import IDS, NIL, NodesTestCase, at


class ShownTests(NodesTestCase):
    """SHOW, by the script."""

    def test_row(self) -> None:
        """A row holds what the format promises; ctime is in µs."""
        node = self.node(SHOW=nodes.shown(IDS[0], queue=bulk(b"\xff")))
        (row,) = readers.job_rows(self.servers(node), at(node), IDS[:1], True)
        self.assertEqual((IDS[0], "\\xff", b"body", 1, 2, 1_700_000_000_123_000), row)

    def test_acknowledged_and_still_there(self) -> None:
        """A job that others acknowledged is read as long as its body is there; an acknowledgement
        without a body is none."""
        acked = nodes.shown(IDS[0], state=bulk("acked"))
        dummy = nodes.shown(IDS[0], state=bulk("acked"), body=NIL, queue=NIL)
        node = self.node(SHOW=[acked, dummy])
        servers = self.servers(node)
        self.assertEqual(1, len(list(readers.job_rows(servers, at(node), IDS[:1], True))))
        with self.assertRaises(JobsLost):
            list(readers.job_rows(servers, at(node), IDS[:1], True))

    def test_lost(self) -> None:
        """Jobs that nobody knows end the query, with their number, the first ID and what to do; or
        they are left out."""
        node = self.node(SHOW=[nodes.shown(IDS[0]), NIL, NIL])
        node_again = self.node(SHOW=[nodes.shown(IDS[0]), NIL, NIL])
        with self.assertRaises(JobsLost) as raised:
            list(readers.job_rows(self.servers(node), at(node), IDS[:3], True))
        for words in ("2 jobs", IDS[1], "failOnDataLoss"):
            self.assertIn(words, str(raised.exception))
        with self.assertLogs("disque_tx.spark.source.readers", "WARNING"):
            rows = list(readers.job_rows(self.servers(node_again), at(node_again), IDS[:3], False))
        self.assertEqual([IDS[0]], [row[0] for row in rows])

    def test_away(self) -> None:
        """A job of a node that is away is never left out here: it would be acknowledged."""
        node = self.node()
        node.close()
        with self.assertRaises(JobsLost) as raised:
            list(readers.job_rows(self.servers(node), at(node), IDS[:1], False))
        self.assertIn(node.address, str(raised.exception))
