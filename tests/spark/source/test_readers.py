"""Rows of jobs, by their IDs."""

from __future__ import annotations

from disque_tx.spark.errors import JobsLost
from disque_tx.spark.options import read_options
from disque_tx.spark.source import readers
from tests.client.scripted import ScriptedNode, bulk
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


class TableTests(NodesTestCase):
    """Queues as a table that is read once."""

    def reader(self, node: ScriptedNode, mode: str) -> readers.JobReader:
        """A reader of the queue ``q`` of this node."""
        options = {"disque.servers": node.address, "subscribe": "q", "mode": mode}
        return readers.JobReader(read_options(options, streaming=False))

    def test_drained(self) -> None:
        """Jobs are acknowledged after a task has read all of them: one that ends before leaves
        them."""
        node = self.node(
            GETJOB=[nodes.fetched(*IDS[:2]), b"*-1\r\n"], WORKING=b":60\r\n", ACKJOB=b":1\r\n",
            SHOW=[nodes.shown(IDS[0]), nodes.shown(IDS[1])],
        )  # fmt: skip
        reader = self.reader(node, "drain")
        (partition,) = reader.partitions()
        self.assertNotIn("ACKJOB", node.commands())
        (batch,) = reader.read(partition)
        self.assertEqual(2, batch.num_rows)
        acknowledged = [words[1].decode() for words in node.requests if words[0] == b"ACKJOB"]
        self.assertEqual(IDS[:2], acknowledged)
        self.assertEqual(["SHOW", "SHOW", "ACKJOB", "ACKJOB"], node.commands()[-4:])

    def test_drain_failed(self) -> None:
        """If one of the jobs cannot be read, none of the task is acknowledged."""
        node = self.node(
            GETJOB=[nodes.fetched(*IDS[:2]), b"*-1\r\n"], WORKING=b":60\r\n", ACKJOB=b":1\r\n",
            SHOW=[nodes.shown(IDS[0]), NIL],
        )  # fmt: skip
        reader = self.reader(node, "drain")
        (partition,) = reader.partitions()
        with self.assertRaises(JobsLost):
            list(reader.read(partition))
        self.assertNotIn("ACKJOB", node.commands())

    def test_leased(self) -> None:
        """Jobs that are only leased are not acknowledged."""
        node = self.node(
            GETJOB=[nodes.fetched(IDS[0]), b"*-1\r\n"], WORKING=b":60\r\n",
            SHOW=nodes.shown(IDS[0]),
        )  # fmt: skip
        reader = self.reader(node, "lease")
        (partition,) = reader.partitions()
        self.assertEqual(1, sum(batch.num_rows for batch in reader.read(partition)))
        self.assertNotIn("ACKJOB", node.commands())


class StreamTests(NodesTestCase):
    """Queues as a stream."""

    def test_available_now(self) -> None:
        """A query for what is there now ends after as many jobs as there were, although more
        arrive."""
        node = self.node(
            QLEN=b":3\r\n", WORKING=b":60\r\n", ACKJOB=b":1\r\n",
            GETJOB=[nodes.fetched(*IDS[:2]), nodes.fetched(IDS[2])],
        )  # fmt: skip
        options = {"disque.servers": node.address, "subscribe": "q", "maxJobsPerTrigger": "2"}
        reader = readers.JobStreamReader(read_options(options, streaming=True))
        self.addCleanup(reader.stop)
        reader.prepareForTriggerAvailableNow()
        limit = reader.getDefaultReadLimit()
        start = reader.initialOffset()
        first = reader.latestOffset(start, limit)
        second = reader.latestOffset(first, limit)
        self.assertEqual(second, reader.latestOffset(second, limit))
        jobs = [job for offset in (first, second) for job in offset["jobs"][node.address]]
        self.assertEqual(IDS[:3], jobs)
        counts = [
            words[words.index(b"COUNT") + 1].decode()
            for words in node.requests
            if words[0] == b"GETJOB"
        ]
        self.assertEqual(["2", "1"], counts)
        self.assertEqual([], list(reader.partitions(second, second)))
