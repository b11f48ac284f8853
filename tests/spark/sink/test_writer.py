"""The requests of the tasks of a write."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import IntegerType, StringType, StructType

from disque_tx.spark.errors import BadColumn, WriteRefused
from disque_tx.spark.options import WriteOptions, write_options
from disque_tx.spark.sink import columns
from disque_tx.spark.sink.writer import JobWriter, Written
from tests.client.scripted import HANG_UP, ScriptedNode, bulk
from tests.spark.nodes import IDS, NodesTestCase, address_of


def batch(**values: list[object]) -> pa.RecordBatch:
    """Rows as Spark passes them."""
    return pa.RecordBatch.from_pydict(values)


class WriterTests(NodesTestCase):
    """ADDJOB requests to scripted nodes."""

    def options(self, node: ScriptedNode, **options: str) -> WriteOptions:
        """The options of a write to this node."""
        return write_options({"disque.servers": node.address, **options})

    def test_words(self) -> None:
        """Columns override options, but the option queue overrides its column; options that are not
        set are not sent."""
        node = self.node(ADDJOB=bulk(IDS[0]))
        writer = JobWriter(self.options(node, queue="o", ttl="50"))
        rows = batch(queue=["a", "b"], body=["\u00e9", "y"], retry=[None, 3], ttl=[7, None])
        self.assertEqual(2, writer.add([rows], 0).jobs)
        first, second = (b" ".join(words) for words in node.requests)
        self.assertEqual(b"ADDJOB o \xc3\xa9 5000 TTL 7", first)
        self.assertEqual(b"ADDJOB o y 5000 RETRY 3 TTL 50", second)

    def test_staged(self) -> None:
        """A staged job is added to a queue of its own, out of which nobody gets jobs; the driver
        receives its ID, and where it belongs."""
        node = self.node(PAUSE=b"+out\r\n", ADDJOB=[bulk(job_id) for job_id in IDS[:3]])
        written = JobWriter(self.options(node, deliverymode="staged")).add(
            [
                batch(queue=["q", "r"], body=["x", "y"], ttl=[None, 10]),
                batch(queue=["q"], body=["z"], ttl=[None]),
            ],
            0,
        )
        staged = {b"q": [IDS[0], IDS[2]], b"r": [IDS[1]]}
        self.assertEqual(Written(address_of(node), 3, staged), written)
        self.assertEqual(["PAUSE", "PAUSE", "ADDJOB", "ADDJOB", "ADDJOB"], node.commands())
        self.assertEqual(
            {b"PAUSE staged:q out bcast", b"PAUSE staged:r out bcast"},
            {b" ".join(words) for words in node.requests[:2]},
        )
        self.assertEqual(b"ADDJOB staged:q x 5000", b" ".join(node.requests[2]))

    def test_keys(self) -> None:
        """With the mode ``unique`` each row has a key, which is the same when the task runs again,
        and of no other task or write; a column overrides it, and works with other modes as
        well."""
        node = self.node(ADDJOB=bulk(IDS[0]))
        rows = [batch(body=["x", "y"]), batch(body=["z"], key=["own"])]
        options = self.options(node, deliverymode="unique", queue="q", keyfor="60")
        writer = JobWriter(options)
        for some, task in ((writer, 3), (writer, 3), (writer, 4), (JobWriter(options), 3)):
            some.add(rows, task)
        keys = [words[words.index(b"UNIQUE") + 1] for words in node.requests]
        self.assertEqual(keys[:3], keys[3:6])
        self.assertEqual(3 * 2 + 1, len(set(keys)))
        self.assertEqual(b"own", keys[2])
        self.assertEqual([b"FOR", b"60"], node.requests[0][-2:])
        node.requests.clear()
        JobWriter(self.options(node, queue="q")).add([batch(body=["x"] * 2, key=["k", None])], 0)
        self.assertEqual([True, False], [b"UNIQUE" in words for words in node.requests])

    def test_refused(self) -> None:
        """An error reply fails the task, with the number of jobs that were added before."""
        node = self.node(ADDJOB=[bulk(IDS[0]), b"-PAUSED try later\r\n"])
        with self.assertRaises(WriteRefused) as raised:
            JobWriter(self.options(node)).add([batch(queue=["q"] * 2, body=["x"] * 2)], 0)
        for words in ("PAUSED", "The 1 job that this task added before remain"):
            self.assertIn(words, str(raised.exception))

    def test_lost(self) -> None:
        """When the connection is lost, the task fails; no request is sent twice."""
        node = self.node(ADDJOB=HANG_UP)
        with self.assertRaises(WriteRefused):
            JobWriter(self.options(node)).add([batch(queue=["q"], body=["x"])], 0)
        self.assertEqual(["ADDJOB"], node.commands())

    def test_staged_and_failed(self) -> None:
        """A task that fails halfway removes the jobs that it staged."""
        node = self.node(PAUSE=b"+out\r\n", ADDJOB=bulk(IDS[0]), ACKJOB=b":1\r\n")

        def rows() -> Iterator[pa.RecordBatch]:
            yield batch(queue=["q"], body=["x"])
            raise RuntimeError("broken")

        with self.assertRaises(RuntimeError):
            JobWriter(self.options(node, deliverymode="staged")).add(rows(), 0)
        self.assertEqual(["PAUSE", "ADDJOB", "ACKJOB"], node.commands())

    def test_bad_values(self) -> None:
        """A batch with a null or an impossible number is refused as a whole."""
        node = self.node()
        for rows in (
            batch(queue=["q", None], body=["x", "y"]),
            batch(queue=["q", "q"], body=["x", None]),
            batch(queue=["q"], body=["x"], ttl=[0]),
            batch(queue=["q"], body=["x"], delay=[-1]),
            batch(queue=["q"], body=["x"], key=["k" * 513]),
        ):
            with self.assertRaises(BadColumn):
                JobWriter(self.options(node)).add([rows], 0)
        self.assertEqual([], node.requests)

    def test_bad_columns(self) -> None:
        """All errors in the columns of a table are reported together."""
        options = self.options(self.node(), deliverymode="staged")
        schema = StructType().add("body", IntegerType()).add("x", StringType())
        with self.assertRaises(BadColumn) as raised:
            columns.check(schema.add("delay", IntegerType()), options)
        for words in ("'body' is int", "'x' is not known", "neither a column", "staged"):
            self.assertIn(words, str(raised.exception))
