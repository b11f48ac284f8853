"""Queues into a table, without Spark."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb

from disque_tx.spark.options import read_options
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.jobs import JobTable
from disque_tx.spark.pipeline.transfer.drain import Drained, drain
from tests.client.scripted import ScriptedNode, array, bulk
from tests.spark.nodes import IDS, NodesTestCase, fetched

_NONE = b"*-1\r\n"
#: As many as the first request of a batch asks for.
_MANY = [f"D-dcb833cf-{number:024d}-05a1" for number in range(16)]


class DrainTests(NodesTestCase):
    """One scripted node and a table."""

    def setUp(self) -> None:
        super().setUp()
        self.root = str(Path(self.mktemp()).resolve())
        self.stopped = threading.Event()
        self.stopped.wait = self.time.sleep  # type: ignore[assignment]

    def drain(self, node: ScriptedNode, follow: bool = False) -> Drained:
        """Drain the queue ``q``; notes the requests at each step."""
        self.steps: list[tuple[str, list[str]]] = []
        table = JobTable(self.root, step=lambda name: self.steps.append((name, [*node.commands()])))
        options = read_options({"disque.servers": node.address, "subscribe": "q"}, streaming=False)
        return drain(options, table, follow, self.stopped)

    def stored(self) -> list[tuple[str, bytes]]:
        """IDs and bodies in the table."""
        paths = [f"{self.root}/{file.path}" for file in DeltaLog(self.root).files()]
        return sorted(duckdb.read_parquet(paths).select("id", "body").fetchall())

    def test_stored(self) -> None:
        """Jobs are moved once and acknowledged after the commit; it ends when there are no more."""
        node = self.node(GETJOB=[fetched(*IDS[:3]), _NONE], ACKJOB=b":3\r\n")
        self.assertEqual(Drained(3, 0), self.drain(node))
        self.assertEqual([(job_id, b"x") for job_id in IDS[:3]], self.stored())
        names = [name for name, _ in self.steps]
        self.assertEqual(["fetched", "written", "committed", "acknowledged"], names)
        self.assertNotIn("ACKJOB", self.steps[2][1])
        self.assertEqual(["GETJOB", "ACKJOB"], self.steps[3][1])
        (words,) = [words for words in node.requests if words[0] == b"ACKJOB"]
        self.assertEqual([job_id.encode() for job_id in IDS[:3]], words[1:])

    def test_killed_before_the_acknowledgement(self) -> None:
        """Jobs that were stored before and are delivered again are acknowledged, and not stored
        again."""
        node = self.node(
            GETJOB=[fetched(*IDS[:2]), _NONE, *[_NONE] * 9, fetched(*IDS[:3]), _NONE],
            ACKJOB=b":1\r\n",
        )
        self.drain(node)
        self.assertEqual(Drained(1, 2), self.drain(node))
        self.assertEqual(IDS[:3], [job_id for job_id, _ in self.stored()])
        acknowledged = [words[1:] for words in node.requests if words[0] == b"ACKJOB"]
        self.assertEqual([job_id.encode() for job_id in IDS[:3]], acknowledged[-1])

    def test_large_jobs(self) -> None:
        """A batch has jobs of many megabytes before it is stored: with one of 50 KB, a table of
        large jobs would have a file for every few of them."""
        large = [fetched(job_id).replace(bulk("x"), bulk("x" * 4_000)) for job_id in _MANY]
        jobs = array(*[one.removeprefix(b"*1\r\n") for one in large])
        node = self.node(GETJOB=[jobs, fetched(IDS[0]), _NONE], ACKJOB=b":17\r\n")
        self.assertEqual(Drained(17, 0), self.drain(node))
        self.assertEqual(1, [words[0] for words in node.requests].count(b"ACKJOB"))

    def test_followed(self) -> None:
        """It goes on when there is nothing, until it is stopped."""
        node = self.node(GETJOB=[*[_NONE] * 20, fetched(IDS[0]), _NONE], ACKJOB=b":1\r\n")
        table = JobTable(self.root, step=lambda name: self.stopped.set())
        options = read_options({"disque.servers": node.address, "subscribe": "q"}, streaming=False)
        self.assertEqual(Drained(1, 0), drain(options, table, True, self.stopped))
        self.assertEqual(21, node.commands().count("GETJOB"))
