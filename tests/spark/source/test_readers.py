"""Rows of jobs, by their IDs."""

from __future__ import annotations

from disque_tx.spark.errors import JobsLost
from disque_tx.spark.source import readers
from tests.client.scripted import bulk
from tests.spark import nodes
from tests.spark.nodes import IDS, NIL, NodesTestCase, address_of


class ShownTests(NodesTestCase):
    """SHOW requests to scripted nodes."""

    def test_row(self) -> None:
        """A row has the documented fields; ctime is in µs."""
        node = self.node(SHOW=nodes.shown(IDS[0], queue=bulk(b"\xff")))
        (row,) = readers.job_rows(self.servers(node), address_of(node), IDS[:1], True)
        self.assertEqual((IDS[0], "\\xff", b"body", 1, 2, 1_700_000_000_123_000), row)

    def test_acknowledged(self) -> None:
        """A job that others have acknowledged is read as long as its body exists; one without a
        body counts as lost."""
        acked = nodes.shown(IDS[0], state=bulk("acked"))
        dummy = nodes.shown(IDS[0], state=bulk("acked"), body=NIL, queue=NIL)
        node = self.node(SHOW=[acked, dummy])
        servers = self.servers(node)
        self.assertEqual(1, len(list(readers.job_rows(servers, address_of(node), IDS[:1], True))))
        with self.assertRaises(JobsLost):
            list(readers.job_rows(servers, address_of(node), IDS[:1], True))

    def test_lost(self) -> None:
        """Jobs that no node knows end the query, with their number, the first ID and what to do; or
        they are left out."""
        node = self.node(SHOW=[nodes.shown(IDS[0]), NIL, NIL])
        node_again = self.node(SHOW=[nodes.shown(IDS[0]), NIL, NIL])
        with self.assertRaises(JobsLost) as raised:
            list(readers.job_rows(self.servers(node), address_of(node), IDS[:3], True))
        for words in ("2 jobs", IDS[1], "failOnDataLoss"):
            self.assertIn(words, str(raised.exception))
        with self.assertLogs("disque_tx.spark.source.readers", "WARNING"):
            rows = list(
                readers.job_rows(self.servers(node_again), address_of(node_again), IDS[:3], False)
            )
        self.assertEqual([IDS[0]], [row[0] for row in rows])

    def test_node_down(self) -> None:
        """A job of a node that is down is never left out here, because it would be acknowledged."""
        node = self.node()
        node.close()
        with self.assertRaises(JobsLost) as raised:
            list(readers.job_rows(self.servers(node), address_of(node), IDS[:1], False))
        self.assertIn(node.address, str(raised.exception))
