"""How long jobs of the log live and are delayed, by what their IDs and records say."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.job import (
    Job,
    delay_left_ms,
    life_s_max,
    life_s_min,
    made_by,
    may_repeat,
    whole_life_s,
)
from disque_tx.messages.limits import SECONDS_MAX
from tests.core.bench import UNIX_S


def named(digits: bytes) -> bytes:
    """An ID with these last digits."""
    return b"D-aaaaaaaa-000000000000000000000001-" + digits


class IdTests(SynchronousTestCase):
    """What an ID says of the life of its job, and of who made it."""

    def test_range(self) -> None:
        """The last bit is no part of the minutes, and the longest ID stands for all that is
        longer."""
        for digits, least, most in (
            (b"0000", 0, 120),
            (b"0001", 0, 120),
            (b"0002", 120, 240),
            (b"0003", 120, 240),
            (b"fffd", 65_532 * 60, 65_534 * 60),
            (b"fffe", 65_534 * 60, SECONDS_MAX),
            (b"ffff", 65_534 * 60, SECONDS_MAX),
        ):
            job_id = named(digits)
            self.assertEqual((least, most), (life_s_min(job_id), life_s_max(job_id)), digits)
        self.assertEqual([False, True], [may_repeat(named(one)) for one in (b"0002", b"0003")])

    def test_whole_life(self) -> None:
        """Two clocks are believed as far as the ID allows."""
        job_id = named(b"0003")
        found = [whole_life_s(job_id, seconds) for seconds in (-5, 119, 120, 200, 240, 241)]
        self.assertEqual([120, 120, 120, 200, 240, 240], found)

    def test_made_by(self) -> None:
        """The node that made a job is known by the first eight digits of its ID."""
        self.assertTrue(made_by(b"a" * 40, named(b"05a1")))
        self.assertTrue(made_by(b"a" * 8 + b"b" * 32, named(b"05a1")))
        self.assertFalse(made_by(b"a" * 7 + b"b" * 33, named(b"05a1")))
        self.assertFalse(made_by(b"b" + b"a" * 39, named(b"05a1")))

    def test_made_by_short(self) -> None:
        """Neither the ID of a node that is not known nor what is no job ID is read beyond its
        end."""
        self.assertFalse(made_by(b"", named(b"05a1")))
        self.assertFalse(made_by(b"a" * 7, named(b"05a1")))
        self.assertFalse(made_by(b"a" * 40, b"D-aaaaaaa"))
        self.assertTrue(made_by(b"a" * 8, b"D-aaaaaaaa"))


class DelayTests(SynchronousTestCase):
    """What is left of DELAY after a restart."""

    def left_ms(self, delay_s: int, life_s: int, left_ms: int, mine: bool = True) -> int:
        """For how long a job with this life is delayed, of which so much is left. Its ID says the
        same life, if that is whole minutes."""
        job = Job(
            named(b"%04x" % (life_s // 60 | 1)),
            b"q",
            b"body",
            (),
            UNIX_S * 1_000_000_000,
            UNIX_S + life_s,
            delay_s=delay_s,
            retry_s=60,
            repl=1,
        )
        job.life_ms = life_s * 1_000
        return int(delay_left_ms(job, mine, left_ms))

    def test_whole(self) -> None:
        """A job is delayed for its whole DELAY when there is time enough for its delivery, at most
        as long again as the DELAY."""
        self.assertEqual(100_000, self.left_ms(100, 1_000, 1_000_000))
        self.assertEqual(100_000, self.left_ms(100, 1_000, 200_000))
        self.assertEqual(99_999, self.left_ms(100, 1_000, 199_999))
        self.assertEqual(0, self.left_ms(100, 1_000, 100_000))
        self.assertEqual(0, self.left_ms(100, 1_000, 50_000))

    def test_half(self) -> None:
        """Half of the time behind a long DELAY is kept for the delivery; a life that is shorter
        than its DELAY keeps none."""
        self.assertEqual(500_000, self.left_ms(800, 1_000, 600_000))
        self.assertEqual(1_000, self.left_ms(1_000, 1_000, 1_000))
        self.assertEqual(2_000, self.left_ms(1_200, 1_000, 2_000))

    def test_other(self) -> None:
        """Of a job of another node the ID counts, for its clock may be another one; a copy may
        have been ten seconds on its way."""
        self.assertEqual(100_000, self.left_ms(100, 600, 200_000, False))
        self.assertEqual(500_000, self.left_ms(500, 600, 600_000, False))
        self.assertEqual(455_000, self.left_ms(500, 600, 500_000, False))
