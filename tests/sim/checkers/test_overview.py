"""What clients get to know about queues."""

from __future__ import annotations

from disque_tx.sim.checkers.overview import CountsTrue, EndingsTrue, FlushedGone
from disque_tx.sim.stage.history import Added, Counted, RecordedFlush, Waited
from tests.sim.checkers.bench import HERE, THERE, CheckerCase, S


class OverviewTests(CheckerCase):
    """What clients get to know about queues."""

    def setUp(self) -> None:
        super().setUp()
        self.run_.shape.bulk = "all"
        self.run_.world.now_us = 60 * S
        added = Added(b"D", b"q", HERE, S, 1, 5, 7_200, 0, False, S, S, b"D")
        self.history.added[b"D"] = added

    def wait(self, at_s: float, answer: bytes) -> Waited:
        """A WAITJOB, sent at the beginning, is answered at that time."""
        waited = Waited(b"D", HERE, S, 9_000, int(at_s * S), answer)
        self.history.waits.append(waited)
        return waited

    def flush(self, at_s: float, reply: int = 1) -> None:
        """A QFLUSH of the queue, for the one job at this node."""
        us = int(at_s * S)
        there = {HERE: {b"D"}}
        flushed = RecordedFlush(b"q", b"queued", False, us, HERE, us + 1_000, reply, there)
        self.history.flushes.append(flushed)

    def test_reason(self) -> None:
        """A job has ended only if somebody asked for that, or its queue was emptied."""
        self.wait(5, b"ACKED")
        self.assertEqual(1, self.found(EndingsTrue()))
        self.request(b"ACKJOB", 4)
        self.assertEqual(0, self.found(EndingsTrue()))
        self.history.job_requests.clear()
        self.flush(4)
        self.assertEqual(0, self.found(EndingsTrue()))

    def test_expired(self) -> None:
        """A job expires when its life is over, to the second, and no clock was wrong."""
        waited = self.wait(5, b"EXPIRED")
        self.assertEqual(1, self.found(EndingsTrue()))
        self.fault("clock_step")
        self.assertEqual(0, self.found(EndingsTrue()))
        self.run_.plan.history.clear()
        waited.answered_us = 7_200 * S + 1
        self.assertEqual(0, self.found(EndingsTrue()))

    def test_unanswered(self) -> None:
        """Nobody waits until the time-out for a job that this node had acknowledged."""
        self.wait(9, b"")
        self.assertEqual(0, self.found(EndingsTrue()))
        self.request(b"ACKJOB", 4, THERE)
        self.assertEqual(0, self.found(EndingsTrue()))
        self.request(b"ACKJOB", 4)
        self.assertEqual(1, self.found(EndingsTrue()))

    def test_delivered_after(self) -> None:
        """A job that was reported as done is not delivered by the same node."""
        self.request(b"ACKJOB", 4)
        self.wait(5, b"ACKED")
        self.deliver(6, THERE)
        self.assertEqual(0, self.found(EndingsTrue()))
        self.deliver(6)
        self.assertEqual(1, self.found(EndingsTrue()))

    def test_dead(self) -> None:
        """Without a policy there are no dead letters."""
        self.wait(5, b"DEAD")
        self.assertEqual(1, self.found(EndingsTrue()))

    def test_flushed(self) -> None:
        """A job that was in the queue when QFLUSH came is not delivered, unless it had left it."""
        self.run_.lost = 1
        self.flush(4)
        self.deliver(9)
        self.assertEqual(1, self.found(FlushedGone()))
        self.request(b"NACK", 4)
        self.assertEqual(0, self.found(FlushedGone()))

    def test_flushed_number(self) -> None:
        """The answers to QFLUSH add up to what the nodes have counted."""
        self.flush(4, reply=3)
        self.assertEqual(1, self.found(FlushedGone()))
        self.fault("kill")
        self.assertEqual(0, self.found(FlushedGone()))

    def test_counted(self) -> None:
        """A job that nobody touched is counted, and once."""
        values = dict.fromkeys((b"queued", b"delayed", b"backoff", b"in-flight", b"loaded"), 0)
        values[b"nodes"] = len(self.run_.machines)
        self.history.counts.append(Counted(b"q", True, 5 * S, 5 * S + 1_000, values))
        for jobs, breaches in ((0, 1), (1, 0), (2, 1)):
            values[b"queued"] = jobs
            self.assertEqual(breaches, self.found(CountsTrue()), jobs)
