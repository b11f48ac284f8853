"""The jobs of the history that are added again."""

from __future__ import annotations

from base64 import b64encode

from pyspark.errors import PySparkException

from disque_tx.spark.errors import BadTable, NothingToRead
from disque_tx.spark.pipeline.transfer.replay import (
    Chosen,
    Ledger,
    NoBodies,
    Unfinished,
    chosen,
    history,
)
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Node, job_id


def encoded(body: bytes) -> str:
    """A body as it is logged."""
    return b64encode(body).decode()


class ReplayCase(PipelineCase):
    """Tests with a ledger."""

    def setUp(self) -> None:
        super().setUp()
        self.ledger = Ledger(self.spark, str(self.folder / "ledger"))

    def record(self, *numbers: int) -> None:
        """Record that these jobs were replayed."""
        jobs = self.spark.createDataFrame(
            [(job_id(number),) for number in numbers], "job_id STRING"
        )
        self.ledger.finish(self.ledger.begin(jobs))

    def known(self) -> list[str]:
        """The IDs of the jobs in the ledger."""
        return sorted(row.job_id for row in self.ledger.known().collect())


class ChoiceTests(ReplayCase):
    """Choosing jobs."""

    def events(self) -> str:
        """A table with three jobs with bodies, one of them acknowledged, and one without a body."""
        node = Node("a")
        node.add(0, job_id(0), body=encoded(b"\0first"), retry_s=7, ttl_s=99)
        node.add(1, job_id(1), body=encoded(b""), queue="empty")
        node.add(2, job_id(2), body=encoded(b"third"))
        node.work(3, job_id(2))
        node.add(4, job_id(3))
        # An acknowledgement that two nodes log is two events of one job.
        other = Node("b")
        other.log(3.5, "acked", job_id(2))
        return self.ingested(node, other)

    def test_events(self) -> None:
        """Jobs are chosen by their outcome, and keep their body, RETRY and TTL."""
        with chosen(self.spark, self.events(), "outcome = 'pending'", self.ledger) as found:
            self.assertEqual((2, 0, 1, 6), self.counts(found))
            rows = {row.job_id: row for row in found.jobs.collect()}
            self.assertIn("1 job without a body", "\n".join(found.summary()))
        first, second = rows[job_id(0)], rows[job_id(1)]
        self.assertEqual((b"\0first", 7, 99), (bytes(first.body), first.retry, first.ttl))
        self.assertEqual((b"", "empty"), (bytes(second.body), second.queue))

    def counts(self, found: Chosen) -> tuple[int, int, int, int]:
        """The numbers of jobs and bytes."""
        return found.count, found.known, found.bodiless, found.bytes

    def test_once(self) -> None:
        """Jobs in the ledger are skipped, and counted."""
        self.record(2, 7)
        with chosen(self.spark, self.events(), "true", self.ledger, "all") as found:
            self.assertEqual((2, 1), (found.count, found.known))
            self.assertEqual({"all"}, {row.queue for row in found.jobs.collect()})

    def test_no_bodies(self) -> None:
        """If no body was logged, the error says how to log bodies."""
        where = "queue = 'mail' AND added_at > '2026-11-20 19:00:03'"
        choice = chosen(self.spark, self.events(), where, self.ledger)
        with choice as found, self.assertRaises(NoBodies) as raised:
            list(found.summary())
        self.assertIn("eventlog-body yes", str(raised.exception))

    def test_invalid_bodies(self) -> None:
        """A body that is not Base64, because somebody edited the log, counts as missing."""
        node = Node("a")
        node.add(0, job_id(0), body="%%%")
        with chosen(self.spark, self.ingested(node), "true", self.ledger) as found:
            self.assertEqual((0, 1), (found.count, found.bodiless))

    def test_wrong(self) -> None:
        """A wrong condition, a missing table, and a table with other content are errors."""
        choice = chosen(self.spark, self.events(), "colour = 'red'", self.ledger)
        with self.assertRaises(PySparkException), choice:
            self.fail("the condition was accepted")
        with self.assertRaises(NothingToRead):
            history(self.spark, f"{self.table}-no")
        other = str(self.folder / "other")
        self.spark.range(1).write.parquet(other)
        with self.assertRaises(BadTable):
            history(self.spark, other)


class LedgerTests(ReplayCase):
    """The record of replays."""

    def test_known(self) -> None:
        """The ledger contains the jobs of all completed replays, each once, and none at first."""
        self.assertEqual([], self.known())
        self.record(1, 2)
        self.record(2, 3)
        self.assertEqual([job_id(1), job_id(2), job_id(3)], self.known())

    def test_unfinished(self) -> None:
        """For an incomplete replay, the user is asked whether its jobs count."""
        for choice, expected in (("again", []), ("skip", [job_id(1)])):
            self.ledger.begin(self.spark.createDataFrame([(job_id(1),)], "job_id STRING"))
            self.assertEqual([], self.known())
            with self.assertRaises(Unfinished):
                self.ledger.decide_unfinished("stop")
            self.ledger.decide_unfinished(choice)
            self.ledger.decide_unfinished("stop")
            self.assertEqual(expected, self.known())
