"""How often a queue requests jobs from other nodes, and how many (cluster protocol, 11.1 to
11.3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.queues.demand import QueueDemand
from tests import profiles  # noqa: F401
from tests.core.peerbench import B, C


class RateTests(SynchronousTestCase):
    """Section 11.2."""

    def test_rate(self) -> None:
        """Jobs of this period and the previous one, per second, rounded up."""
        schedule = QueueDemand(0)
        for now_ms in (100, 200, 300, 1_100, 1_200):
            schedule.note(B, now_ms)
        self.assertEqual(3, schedule.rate(2_000))
        self.assertEqual(2, schedule.rate(2_600))

    def test_burst(self) -> None:
        """Jobs that arrive at the start of a period do not cause a division by zero."""
        schedule = QueueDemand(0)
        schedule.note(B, 0)
        self.assertEqual(20, schedule.rate(0))

    def test_end(self) -> None:
        """Five seconds after the start of the last period the rate is zero."""
        schedule = QueueDemand(0)
        schedule.note(B, 0)
        self.assertEqual((1, 0), (schedule.rate(5_000), schedule.rate(5_001)))

    def test_no_imports(self) -> None:
        """Requests alone do not count as imports."""
        self.assertEqual(0, QueueDemand(0).rate(10))


class RequestTests(SynchronousTestCase):
    """How many jobs are requested: never more than an original can send."""

    @given(st.integers(0, 2_000), st.integers(0, 50))
    def test_range(self, jobs: int, givers: int) -> None:
        """The number is always between 5 and 100."""
        schedule = QueueDemand(0)
        for _ in range(jobs):
            schedule.note(B, 10)
        self.assertTrue(5 <= schedule.request(givers, 60) <= 100)

    def test_shared(self) -> None:
        """Several senders share what is needed per second."""
        schedule = QueueDemand(0)
        for _ in range(80):
            schedule.note(B, 0)
        self.assertEqual((80, 40), (schedule.request(1, 1_000), schedule.request(2, 1_000)))


class PauseTests(SynchronousTestCase):
    """The intervals between requests (section 11.3)."""

    def waits(self, schedule: QueueDemand, everybody: bool, count: int) -> list[int]:
        """Milliseconds between ``count`` requests that are each sent as soon as allowed."""
        at_ms, waits = 0, []
        for _ in range(count):
            before_ms = at_ms
            if everybody:
                schedule.asked_all_ms, schedule.all_attempts = at_ms, schedule.all_attempts + 1
                while not schedule.may_ask_all(at_ms):
                    at_ms += 1
            else:
                schedule.asked_givers_ms = at_ms
                schedule.givers_attempts += 1
                while not schedule.may_ask_givers(at_ms):
                    at_ms += 1
            waits.append(at_ms - before_ms - 1)
        return waits

    def test_everybody(self) -> None:
        """Requests to all nodes go out at once, then after 4, 8, 16, 30, 30 seconds,
        indefinitely."""
        schedule = QueueDemand(0)
        self.assertTrue(schedule.may_ask_all(0))
        waits = self.waits(schedule, True, 6)
        self.assertEqual([4_000, 8_000, 16_000, 30_000, 30_000, 30_000], waits)
        schedule.all_attempts = 1_000_000
        self.assertFalse(schedule.may_ask_all(schedule.asked_all_ms + 30_000))

    def test_givers(self) -> None:
        """Requests to recent senders go out after 50, 100, ... 1600, 2000 milliseconds,
        indefinitely."""
        schedule = QueueDemand(0)
        self.assertTrue(schedule.may_ask_givers(0))
        waits = self.waits(schedule, False, 8)
        self.assertEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000], waits)
        schedule.givers_attempts = 1_000_000
        self.assertFalse(schedule.may_ask_givers(schedule.asked_givers_ms + 2_000))

    def test_job_arrives(self) -> None:
        """A job resets the interval for its sender, and a new sender the interval for all nodes."""
        schedule = QueueDemand(0)
        schedule.asked_all_ms = schedule.asked_givers_ms = 0
        schedule.all_attempts = schedule.givers_attempts = 4
        schedule.note(B, 0)
        self.assertEqual((0, 0), (schedule.all_attempts, schedule.givers_attempts))
        schedule.all_attempts = 4
        schedule.note(B, 0)
        self.assertEqual(4, schedule.all_attempts)

    def test_next(self) -> None:
        """The node wakes up exactly when the next request may be sent."""
        schedule = QueueDemand(0)
        self.assertEqual(1, schedule.next_ms(0))
        schedule.asked_all_ms = 0
        self.assertEqual(2_001, schedule.next_ms(0))
        schedule.note(B, 0)
        schedule.asked_givers_ms = 100
        self.assertEqual(126, schedule.next_ms(100))
        self.assertTrue(schedule.may_ask_givers(126))
        self.assertEqual(5_001, schedule.next_ms(5_000))

    def test_givers_are_forgotten(self) -> None:
        """A node that has sent nothing for five seconds is no recent sender."""
        schedule = QueueDemand(0)
        schedule.note(B, 0)
        schedule.note(C, 1_000)
        self.assertEqual([B, C], schedule.recent_givers(5_000))
        self.assertEqual([C], schedule.recent_givers(5_001))
        self.assertEqual({C: 1_000}, schedule.givers)
