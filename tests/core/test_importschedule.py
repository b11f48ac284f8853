"""How often a queue requests jobs from other nodes, and how many (cluster protocol, 11.1 to
11.3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.importschedule import ImportSchedule
from tests import profiles  # noqa: F401
from tests.core.peerbench import B, C


class RateTests(SynchronousTestCase):
    """Section 11.2."""

    def test_rate(self) -> None:
        """Jobs of this period and the previous one, per second, rounded up."""
        imports = ImportSchedule(0)
        for now_ms in (100, 200, 300, 1_100, 1_200):
            imports.note(B, now_ms)
        self.assertEqual(3, imports.rate(2_000))
        self.assertEqual(2, imports.rate(2_600))

    def test_burst(self) -> None:
        """Jobs that arrive at the start of a period do not cause a division by zero."""
        imports = ImportSchedule(0)
        imports.note(B, 0)
        self.assertEqual(20, imports.rate(0))

    def test_end(self) -> None:
        """Five seconds after the start of the last period the rate is zero."""
        imports = ImportSchedule(0)
        imports.note(B, 0)
        self.assertEqual((1, 0), (imports.rate(5_000), imports.rate(5_001)))

    def test_no_imports(self) -> None:
        """Requests alone do not count as imports."""
        self.assertEqual(0, ImportSchedule(0).rate(10))


class RequestTests(SynchronousTestCase):
    """How many jobs are requested: never more than an original can send."""

    @given(st.integers(0, 2_000), st.integers(0, 50))
    def test_range(self, jobs: int, givers: int) -> None:
        """The number is always between 5 and 100."""
        imports = ImportSchedule(0)
        for _ in range(jobs):
            imports.note(B, 10)
        self.assertTrue(5 <= imports.request(givers, 60) <= 100)

    def test_shared(self) -> None:
        """Several senders share what is needed per second."""
        imports = ImportSchedule(0)
        for _ in range(80):
            imports.note(B, 0)
        self.assertEqual((80, 40), (imports.request(1, 1_000), imports.request(2, 1_000)))


class PauseTests(SynchronousTestCase):
    """The intervals between requests (section 11.3)."""

    def waits(self, imports: ImportSchedule, everybody: bool, count: int) -> list[int]:
        """Milliseconds between ``count`` requests that are each sent as soon as allowed."""
        at_ms, waits = 0, []
        for _ in range(count):
            before_ms = at_ms
            if everybody:
                imports.asked_all_ms, imports.all_attempts = at_ms, imports.all_attempts + 1
                while not imports.may_ask_all(at_ms):
                    at_ms += 1
            else:
                imports.asked_givers_ms = at_ms
                imports.givers_attempts += 1
                while not imports.may_ask_givers(at_ms):
                    at_ms += 1
            waits.append(at_ms - before_ms - 1)
        return waits

    def test_everybody(self) -> None:
        """Requests to all nodes go out at once, then after 4, 8, 16, 30, 30 seconds,
        indefinitely."""
        imports = ImportSchedule(0)
        self.assertTrue(imports.may_ask_all(0))
        waits = self.waits(imports, True, 6)
        self.assertEqual([4_000, 8_000, 16_000, 30_000, 30_000, 30_000], waits)
        imports.all_attempts = 1_000_000
        self.assertFalse(imports.may_ask_all(imports.asked_all_ms + 30_000))

    def test_givers(self) -> None:
        """Requests to recent senders go out after 50, 100, ... 1600, 2000 milliseconds,
        indefinitely."""
        imports = ImportSchedule(0)
        self.assertTrue(imports.may_ask_givers(0))
        waits = self.waits(imports, False, 8)
        self.assertEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000], waits)
        imports.givers_attempts = 1_000_000
        self.assertFalse(imports.may_ask_givers(imports.asked_givers_ms + 2_000))

    def test_job_arrives(self) -> None:
        """A job resets the interval for its sender, and a new sender the interval for all nodes."""
        imports = ImportSchedule(0)
        imports.asked_all_ms = imports.asked_givers_ms = 0
        imports.all_attempts = imports.givers_attempts = 4
        imports.note(B, 0)
        self.assertEqual((0, 0), (imports.all_attempts, imports.givers_attempts))
        imports.all_attempts = 4
        imports.note(B, 0)
        self.assertEqual(4, imports.all_attempts)

    def test_next(self) -> None:
        """The node wakes up exactly when the next request may be sent."""
        imports = ImportSchedule(0)
        self.assertEqual(1, imports.next_ms(0))
        imports.asked_all_ms = 0
        self.assertEqual(2_001, imports.next_ms(0))
        imports.note(B, 0)
        imports.asked_givers_ms = 100
        self.assertEqual(126, imports.next_ms(100))
        self.assertTrue(imports.may_ask_givers(126))

    def test_givers_are_forgotten(self) -> None:
        """A node that has sent nothing for five seconds is no recent sender."""
        imports = ImportSchedule(0)
        imports.note(B, 0)
        imports.note(C, 1_000)
        self.assertEqual([B, C], imports.recent_givers(5_000))
        self.assertEqual([C], imports.recent_givers(5_001))
        self.assertEqual({C: 1_000}, imports.givers)
