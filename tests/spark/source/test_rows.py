"""Rows of jobs, by their IDs."""

from __future__ import annotations

from typing import Any

from disque_tx.client.values import Job
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.options import ReadOptions, cluster
from disque_tx.spark.source.rows import delivered, job_rows
from tests.client.scripted import bulk
from tests.spark import nodes
from tests.spark.nodes import IDS, NIL, NodesTestCase, address_of


def options(strict: bool, **more: Any) -> ReadOptions:
    """Options of a stream."""
    return ReadOptions(cluster("a:1"), ("q",), strict=strict, **more)


class ShownTests(NodesTestCase):
    """SHOW requests to scripted nodes."""

    def test_row(self) -> None:
        """A row has the documented fields; ctime is in µs."""
        node = self.node(SHOW=nodes.shown(IDS[0], queue=bulk(b"\xff")))
        (row,) = job_rows(
            self.servers(node), address_of(node), IDS[:1], options(True, details=True)
        )
        details = (1_700_000_000_123_000, 60, 1000, 0, 1)
        self.assertEqual((IDS[0], "\\xff", b"body", 1, 2, *details), row)
        same = delivered([Job("\udcff", IDS[0], b"body", 1, 2)])
        self.assertEqual(row[:5], tuple(same.to_pylist()[0].values()))

    def test_acknowledged(self) -> None:
        """A job that others have acknowledged is read as long as its body exists; one without a
        body counts as lost."""
        acked = nodes.shown(IDS[0], state=bulk("acked"))
        dummy = nodes.shown(IDS[0], state=bulk("acked"), body=NIL, queue=NIL)
        node = self.node(SHOW=[acked, dummy])
        servers = self.servers(node)
        self.assertEqual(1, len(list(job_rows(servers, address_of(node), IDS[:1], options(True)))))
        with self.assertRaises(JobsLost):
            list(job_rows(servers, address_of(node), IDS[:1], options(True)))

    def test_lost(self) -> None:
        """Jobs that no node knows end the query, with their number, the first ID and what to do; or
        they are left out."""
        node = self.node(SHOW=[nodes.shown(IDS[0]), NIL, NIL])
        node_again = self.node(SHOW=[nodes.shown(IDS[0]), NIL, NIL])
        with self.assertRaises(JobsLost) as raised:
            list(job_rows(self.servers(node), address_of(node), IDS[:3], options(True)))
        for words in ("2 jobs", IDS[1], "failOnDataLoss"):
            self.assertIn(words, str(raised.exception))
        with self.assertLogs("disque_tx.spark.source.rows", "WARNING"):
            rows = list(
                job_rows(self.servers(node_again), address_of(node_again), IDS[:3], options(False))
            )
        self.assertEqual([IDS[0]], [row[0] for row in rows])

    def test_node_down(self) -> None:
        """A job of a node that is down is never left out here, because it would be acknowledged."""
        node = self.node()
        node.close()
        with self.assertRaises(JobsLost) as raised:
            list(job_rows(self.servers(node), address_of(node), IDS[:1], options(False)))
        self.assertIn(node.address, str(raised.exception))
