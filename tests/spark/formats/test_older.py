"""Sources and sinks for PySpark 4.0 and 4.1, which are tried out on later ones as well."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import Row

from disque_tx.spark.errors import BadOption
from disque_tx.spark.formats.older import OlderStreamReader, RowStreamWriter
from disque_tx.spark.options import write_options
from disque_tx.spark.sink.writer import JobWriter, StreamWriter, Written
from tests.client.scripted import ScriptedNode, bulk
from tests.spark import nodes
from tests.spark.nodes import IDS, NodesTestCase, StreamTestCase, address_of

_NONE = b"*-1\r\n"


class SourceTests(StreamTestCase):
    """A source that is asked for the next offset without the one before."""

    def older(self, node: ScriptedNode) -> OlderStreamReader:
        """A source of the queue ``q``, as after a restart of the query."""
        return OlderStreamReader(self.reader(node), str(self.checkpoint), "seq")

    def fetching(self, *answers: bytes) -> ScriptedNode:  # type: ignore[override]
        """A node with these answers to GETJOB."""
        return self.node(GETJOB=list(answers), WORKING=b":60\r\n", ACKJOB=b":1\r\n")

    def acknowledged(self, node: ScriptedNode) -> list[list[str]]:
        """The IDs of each ACKJOB."""
        return [
            [job_id.decode() for job_id in words[1:]]
            for words in node.requests
            if words[0] == b"ACKJOB"
        ]

    def test_batches(self) -> None:
        """Each batch has new jobs, and those of the one before are acknowledged when Spark asks for
        it, not earlier."""
        node = self.fetching(nodes.fetched(*IDS[:2]), nodes.fetched(IDS[2]), _NONE)
        reader = self.older(node)
        start = reader.initialOffset()
        first = reader.latestOffset()
        self.commit(first)
        self.assertEqual(IDS[:2], self.rows(reader, start, first))
        self.assertEqual([], self.acknowledged(node))
        second = reader.latestOffset()
        self.assertEqual([IDS[:2]], self.acknowledged(node))
        self.commit(second)
        self.assertEqual([IDS[2]], self.rows(reader, first, second))
        self.assertEqual(second, reader.latestOffset())
        self.assertEqual([IDS[:2], [IDS[2]]], self.acknowledged(node))

    def test_restart(self) -> None:
        """After a restart the last batch is acknowledged if it was committed, and the next one has
        other jobs."""
        node = self.fetching(nodes.fetched(*IDS[:2]), nodes.fetched(IDS[2]))
        first = self.older(node).latestOffset()
        self.commit(first)
        reader = self.older(node)
        second = reader.latestOffset()
        self.assertEqual([IDS[:2]], self.acknowledged(node))
        self.assertEqual([IDS[2]], self.rows(reader, first, second))

    def test_planned(self) -> None:
        """A batch that was planned and not committed runs again, with the same jobs, before others
        are fetched or its own are acknowledged: with ``availableNow`` Spark asks for the next
        offset first."""
        node = self.fetching(nodes.fetched(*IDS[:2]), nodes.fetched(IDS[2]))
        node.answer("SHOW", *(nodes.shown(job_id) for job_id in IDS[:2]))
        first = self.older(node).latestOffset()
        self.commit(first, "offsets")
        reader = self.older(node)
        self.assertEqual(first, reader.latestOffset())
        self.assertEqual(IDS[:2], self.rows(reader, reader.initialOffset(), first))
        self.assertEqual((1, []), (node.commands().count("GETJOB"), self.acknowledged(node)))
        self.commit(first)
        self.assertNotEqual(first, reader.latestOffset())
        self.assertEqual([IDS[:2]], self.acknowledged(node))

    def test_other_sources(self) -> None:
        """Sources of other formats in the same query do not matter; two of this one cannot be told
        apart, and are refused before a batch runs."""
        node = self.fetching(nodes.fetched(*IDS[:2]), nodes.fetched(IDS[2]))
        first = self.older(node).latestOffset()
        others: list[Any] = ["-", json.dumps({"topic": {"0": 7}}), "17", '"text"']
        self.commit(first)
        self.plan(*others, json.dumps(first))
        reader = self.older(node)
        self.assertNotEqual(first, reader.latestOffset())
        self.plan(json.dumps(first), json.dumps(first))
        again = self.older(node)
        error = self.assertRaises(BadOption, again.partitions, again.initialOffset(), first)
        self.assertIn("only one source of a query", str(error))

    def plan(self, *ends: str) -> None:
        """What Spark writes for a batch of several sources."""
        (self.checkpoint / "offsets" / "0").write_text("\n".join(["v1", "{}", *ends]))


class SinkTests(NodesTestCase):
    """A sink of streams that gets rows."""

    def test_rows(self) -> None:
        """A row is a job, whatever bytes its body has; a null is an option that is not set."""
        node = self.node(ADDJOB=[bulk(job_id) for job_id in IDS[:2]])
        columns = pa.schema([("queue", pa.string()), ("body", pa.binary()), ("ttl", pa.int32())])
        writer = StreamWriter(JobWriter(write_options({"disque.servers": node.address})))
        row: Any = Row("queue", "body", "ttl")
        rows = [row("q", bytearray(b"\0\xff"), 7), row("r", bytearray(b""), None)]
        written = RowStreamWriter(writer, columns).write(iter(rows))
        self.assertEqual(Written(address_of(node), 2, {}), written)
        self.assertEqual(
            [b"ADDJOB q \0\xff 5000 TTL 7", b"ADDJOB r  5000"],
            [b" ".join(words) for words in node.requests],
        )
