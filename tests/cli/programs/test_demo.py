"""The output of the demonstration, and what its clients do."""

from __future__ import annotations

import threading

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs import demo
from disque_tx.cli.programs.demo import DemoCounts, introduction, progress_line
from tests.cli.livenode import VerbCase


class IntroductionTests(SynchronousTestCase):
    """What is said before anything starts."""

    def test_how_long(self) -> None:
        """Whoever has typed ``make demo`` knows what happens to the machine, and for how long."""
        for stays in (False, True):
            self.assertIn("for 6 seconds", introduction(stays))
            self.assertIn("Nothing is left behind", introduction(stays))
        self.assertNotIn("Ctrl-C", introduction(False))
        self.assertIn("Ctrl-C", introduction(True))


class ProgressTests(SynchronousTestCase):
    """The progress line."""

    def test_rate(self) -> None:
        """The rate is the average since the start, and is not shown in the first moment."""
        counts = DemoCounts()
        counts.added = counts.done = 245
        self.assertNotIn("jobs/s", progress_line(counts, 0.002))
        counts.added, counts.done = 6100, 6000
        line = progress_line(counts, 2.0)
        self.assertTrue(line.endswith("6100 added      6000 done      3000 jobs/s"), line)
        self.assertIn(f"[{'#' * 10}{' ' * 20}]", line)


class ClientTests(VerbCase):
    """The producer and the worker of the demonstration."""

    def setUp(self) -> None:
        super().setUp()
        self.counts = DemoCounts()

    def produced(self, count: int) -> None:
        """Let the producer add so many jobs, and end it."""
        producer = threading.Thread(target=demo._produce, args=(self.node.port, self.counts))
        producer.start()
        for _ in range(5_000):
            if self.counts.added >= count:
                break
            producer.join(0.005)
        self.counts.stop = True
        producer.join()

    def test_every_job(self) -> None:
        """At the end every job that was added is fetched and acknowledged, and the figures on the
        screen are those of the node."""
        self.produced(900)
        self.assertGreaterEqual(self.counts.added, 900)
        self.assertEqual((self.counts.added, 0), (self.length("demo"), self.counts.added % 50))
        demo._consume(self.node.port, self.counts)
        self.assertEqual((self.counts.added, 0), (self.counts.done, self.length("demo")))
        self.assertEqual("0", self.client.info("jobs")["registered_jobs"])

    def test_no_heap(self) -> None:
        """A producer whose worker is behind waits for it: a thousand jobs are no load for the
        machine on which somebody only looks."""
        self.produced(1_050)
        self.assertEqual(1_050, self.counts.added)

    def test_lost(self) -> None:
        """Clients of a daemon that has ended end as well, without a traceback."""
        self.node.stop()
        for work in (demo._produce, demo._consume):
            demo._until_lost(work, self.node.port, DemoCounts())
        self.assertFalse(self.node._thread.is_alive())
