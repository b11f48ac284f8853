"""When the node looks at a job next."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.job import BACKOFF, IN_FLIGHT
from disque_tx.core.state.store import WILLQUEUE_ADVANCE_MS, awake_ms, reminder_ms
from disque_tx.messages.records import ACKED, ACTIVE, BCAST_WILLQUEUE, QUEUED, WAIT_REPL
from tests.core.bench import ME, make_job
from tests.core.peerbench import B


class AwakeTests(SynchronousTestCase):
    """``awake_ms``, which SHOW gives as ``next-awake-within``."""

    def setUp(self) -> None:
        self.job = make_job(1)
        self.job.state = ACTIVE
        self.job.flags = 0
        self.job.expire_ms = 900_000
        self.job.qtime_ms = 500_000

    def test_end(self) -> None:
        """A job ends with its TTL, whatever else would be due later, or if nothing else is."""
        for qtime_ms, expected in ((0, 900_000), (899_999, 899_999), (900_001, 900_000)):
            self.job.qtime_ms = qtime_ms
            self.assertEqual(expected, awake_ms(self.job))

    def test_announced(self) -> None:
        """The other holders learn a moment before that a job is to be queued, if it says so, and
        only while it can be."""
        for flags in (0, BCAST_WILLQUEUE):
            for state in (WAIT_REPL, ACTIVE, QUEUED, ACKED):
                self.job.flags, self.job.state = flags, state
                early = flags and state in (ACTIVE, QUEUED)
                expected = 500_000 - (WILLQUEUE_ADVANCE_MS if early else 0)
                self.assertEqual(expected, awake_ms(self.job), (flags, state))

    def test_held_back(self) -> None:
        """The other holders of a job that is held back are notified before their RETRY is over; a
        job without others, or without RETRY, needs none of that."""
        self.job.place = BACKOFF
        self.job.moved_ms = 100_000
        for nodes, retry_s, expected in (
            ((ME, B), 300, 340_000),
            ((ME, B), 1_000, 500_000),
            ((ME,), 300, 500_000),
            ((ME, B), 0, 500_000),
        ):
            self.job.nodes, self.job.retry_s = nodes, retry_s
            self.assertEqual(expected, awake_ms(self.job), (len(nodes), retry_s))
        self.job.nodes, self.job.retry_s, self.job.place = (ME, B), 300, IN_FLIGHT
        self.assertEqual(500_000, awake_ms(self.job))

    def test_reminders(self) -> None:
        """They come at 80 % of RETRY, and at least half a second before its end."""
        found = [reminder_ms(retry_s) for retry_s in (1, 2, 3, 10)]
        self.assertEqual([500, 1_500, 2_400, 8_000], found)
