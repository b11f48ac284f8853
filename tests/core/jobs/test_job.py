"""The state transitions of jobs, queue order, and job IDs."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.job import (
    ACK,
    HOLD,
    QUEUE,
    before,
    life_minutes,
    life_s_max,
    life_s_min,
    may_repeat,
    valid_id,
)
from disque_tx.errors import LocalError
from disque_tx.messages.records import ACKED, ACTIVE, QUEUED, WAIT_REPL, JobRecord
from tests.core.bench import make_job

#: Cluster protocol, section 10.1: (state, event) → state, everything that may happen.
ALLOWED = {
    (WAIT_REPL, QUEUE): QUEUED,
    (WAIT_REPL, HOLD): ACTIVE,
    (WAIT_REPL, ACK): ACKED,
    (ACTIVE, QUEUE): QUEUED,
    (ACTIVE, ACK): ACKED,
    (QUEUED, HOLD): ACTIVE,
    (QUEUED, ACK): ACKED,
}


class TransitionTests(SynchronousTestCase):
    """``Job.step``."""

    def test_all(self) -> None:
        """The life cycle's transitions happen; any other raises and changes nothing."""
        for state in (WAIT_REPL, ACTIVE, QUEUED, ACKED):
            for event in (QUEUE, HOLD, ACK):
                job = make_job(1)
                job.state = state
                expected = ALLOWED.get((state, event))
                if expected is None:
                    error = self.assertRaises(LocalError, job.step, event)
                    self.assertIn(job.id.decode(), str(error))
                    self.assertEqual(state, job.state)
                else:
                    job.step(event)
                    self.assertEqual(expected, job.state)


class OrderTests(SynchronousTestCase):
    """``before``."""

    def test_creation_time_then_id(self) -> None:
        """Older jobs come first; of the same moment, the smaller ID (client protocol, 13.2)."""
        self.assertTrue(before(make_job(2, 1), make_job(1, 2)))
        self.assertFalse(before(make_job(1, 2), make_job(2, 1)))
        self.assertTrue(before(make_job(1, 5), make_job(2, 5)))
        self.assertFalse(before(make_job(2, 5), make_job(1, 5)))
        self.assertFalse(before(make_job(1, 5), make_job(1, 5)))


class IdTests(SynchronousTestCase):
    """What is a valid job ID, and what its last digits mean (client protocol, 6.3)."""

    def test_valid(self) -> None:
        """Only the length and four fixed bytes are checked."""
        good = b"D-a267464b-WepcnCEsLGzTE3WERFhKyqDG-05a1"
        self.assertTrue(valid_id(good))
        self.assertTrue(valid_id(b"D-" + b"\0" * 8 + b"-" + b"\xff" * 24 + b"-zzzz"))
        for bad in (b"", good[:-1], good + b"x", b"d" + good[1:], good.replace(b"-", b"_")):
            self.assertFalse(valid_id(bad), bad)
        for place in (1, 10, 35):
            self.assertFalse(valid_id(good[:place] + b"x" + good[place + 1 :]), place)

    def test_life(self) -> None:
        """The last four digits are the TTL in minutes, hexadecimal in either case; other characters
        count as 0."""
        for digits, minutes in (
            (b"0000", 0),
            (b"05a1", 1_441),
            (b"05A1", 1_441),
            (b"ffff", 65_535),
            (b"FfFf", 65_535),
            (b"g1@`", 0x0100),
            (b"\xff\0-1", 1),
            (b"/:@G", 0),
        ):
            for before_it in (b"x", b"f"):
                job_id = b"D-" + before_it * 34 + digits
                self.assertEqual(minutes, life_minutes(job_id), job_id)

    def test_may_repeat(self) -> None:
        """An odd TTL field marks jobs that may be delivered again; other characters count as 0."""
        odd = b"13579bdfBDF"
        for digit in b"0123456789abcdefABCDEFgz\0\xff":
            job_id = b"D-a267464b-WepcnCEsLGzTE3WERFhKyqDG-05a" + bytes([digit])
            self.assertEqual(digit in odd, may_repeat(job_id), digit)


class ValueTests(SynchronousTestCase):
    """What a job holds in few bytes comes out as it was put in."""

    def test_id_and_body(self) -> None:
        """ID and body are one object inside, and two values to everybody."""
        for body in (b"", b"b", bytes(range(256))):
            job = make_job(1)
            job_id = job.id
            job.body = body
            self.assertEqual((job_id, body, len(body)), (job.id, job.body, job.body_bytes))
            other = make_job(2)
            job.id = other.id
            self.assertEqual((other.id, body), (job.id, job.body))
            self.assertEqual((other.hashed, 40), (job.hashed, len(job.id)))

    def test_no_job_id(self) -> None:
        """A body behind something that is no ID could not be found again."""
        self.assertRaises(
            LocalError,
            lambda: JobRecord(b"D-1", b"q", b"b", (), 1, 0, delay_s=0, retry_s=0, repl=1),
        )

    def test_numbers(self) -> None:
        """Counters and lives at both ends of their ranges."""
        job = make_job(1)
        for count in (0, 1, 0x7FFF, 0x8000, 0xFFFF):
            job.nacks, job.deliveries = count, 0xFFFF - count
            self.assertEqual((count, 0xFFFF - count), (job.nacks, job.deliveries))
        for life_s in (0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF):
            job.life_ms = life_s * 1000
            self.assertEqual(life_s * 1000, job.life_ms)

    def test_life(self) -> None:
        """The last bit of the minutes tells RETRY 0, so an ID goes with the TTLs of two minutes and
        a bit; the highest one with all TTLs from there on."""
        for minutes, shortest_s, longest_s in ((0x5A0, 86_400, 86_520), (0x5A1, 86_400, 86_520)):
            job_id = b"D-a267464b-WepcnCEsLGzTE3WERFhKyqDG-%04x" % minutes
            self.assertEqual((shortest_s, longest_s), (life_s_min(job_id), life_s_max(job_id)))
        endless = b"D-a267464b-WepcnCEsLGzTE3WERFhKyqDG-ffff"
        self.assertGreater(life_s_max(endless), 0xFFFF * 60)
