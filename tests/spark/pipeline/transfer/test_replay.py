"""Which jobs of history come back."""

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
    """A body as logs have it."""
    return b64encode(body).decode()


class ReplayCase(PipelineCase):
    """Tests with a ledger."""

    def setUp(self) -> None:
        super().setUp()
        self.ledger = Ledger(self.spark, str(self.folder / "ledger"))

    def noted(self, *numbers: int) -> None:
        """These jobs were replayed."""
        jobs = self.spark.createDataFrame(
            [(job_id(number),) for number in numbers], "job_id STRING"
        )
        self.ledger.finish(self.ledger.begin(jobs))

    def known(self) -> list[str]:
        """What the ledger knows."""
        return sorted(row.job_id for row in self.ledger.known().collect())


class ChoiceTests(ReplayCase):
    """Choosing."""

    def events(self) -> str:
        """A table: three jobs with bodies, one of them acknowledged, and one without."""
        node = Node("a")
        node.add(0, job_id(0), body=encoded(b"\0first"), retry_s=7, ttl_s=99)
        node.add(1, job_id(1), body=encoded(b""), queue="empty")
        node.add(2, job_id(2), body=encoded(b"third"))
        node.work(3, job_id(2))
        node.add(4, job_id(3))
        # An acknowledgement that two nodes tell makes two events and one job.
        other = Node("b")
        other.tell(3.5, "acked", job_id(2))
        return self.ingested(node, other)

    def test_events(self) -> None:
        """Jobs are chosen by what became of them, and keep their body, RETRY and TTL."""
        with chosen(self.spark, self.events(), "outcome = 'pending'", self.ledger) as found:
            self.assertEqual((2, 0, 1, 6), self.counts(found))
            rows = {row.job_id: row for row in found.jobs.collect()}
            self.assertIn("1 jobs have no body", "\n".join(found.summary()))
        first, second = rows[job_id(0)], rows[job_id(1)]
        self.assertEqual((b"\0first", 7, 99), (bytes(first.body), first.retry, first.ttl))
        self.assertEqual((b"", "empty"), (bytes(second.body), second.queue))

    def counts(self, found: Chosen) -> tuple[int, int, int, int]:
        """The numbers."""
        return found.count, found.known, found.bodiless, found.bytes

    def test_once(self) -> None:
        """What the ledger knows is left out, and counted."""
        self.noted(2, 7)
        with chosen(self.spark, self.events(), "true", self.ledger, "all") as found:
            self.assertEqual((2, 1), (found.count, found.known))
            self.assertEqual({"all"}, {row.queue for row in found.jobs.collect()})

    def test_no_bodies(self) -> None:
        """Where no body was logged, it is said how to have them."""
        where = "queue = 'mail' AND added_at > '2026-11-20 19:00:03'"
        choice = chosen(self.spark, self.events(), where, self.ledger)
        with choice as found, self.assertRaises(NoBodies) as raised:
            list(found.summary())
        self.assertIn("eventlog-body yes", str(raised.exception))

    def test_foreign_bodies(self) -> None:
        """A body that is no Base64, of a log that somebody edited, is none."""
        node = Node("a")
        node.add(0, job_id(0), body="%%%")
        with chosen(self.spark, self.ingested(node), "true", self.ledger) as found:
            self.assertEqual((0, 1), (found.count, found.bodiless))

    def test_wrong(self) -> None:
        """A condition that is none, no table, and a table of something else."""
        choice = chosen(self.spark, self.events(), "colour = 'red'", self.ledger)
        with self.assertRaises(PySparkException), choice:
            self.fail("was understood")
        with self.assertRaises(NothingToRead):
            history(self.spark, f"{self.table}-no")
        other = str(self.folder / "other")
        self.spark.range(1).write.parquet(other)
        with self.assertRaises(BadTable):
            history(self.spark, other)


class LedgerTests(ReplayCase):
    """The memory of replays."""

    def test_known(self) -> None:
        """It knows the jobs of all replays that ended well, each once, and none at first."""
        self.assertEqual([], self.known())
        self.noted(1, 2)
        self.noted(2, 3)
        self.assertEqual([job_id(1), job_id(2), job_id(3)], self.known())

    def test_unfinished(self) -> None:
        """A replay that did not end well counts as the user says, who is asked for it."""
        for choice, expected in (("again", []), ("skip", [job_id(1)])):
            self.ledger.begin(self.spark.createDataFrame([(job_id(1),)], "job_id STRING"))
            self.assertEqual([], self.known())
            with self.assertRaises(Unfinished):
                self.ledger.settle("stop")
            self.ledger.settle(choice)
            self.ledger.settle("stop")
            self.assertEqual(expected, self.known())
