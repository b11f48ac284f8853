"""How jobs of frameworks are added."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.integrations.adding import JobTerms, names_by_priority, priority_name


class TermsTests(SynchronousTestCase):
    """Delays and lives."""

    def test_delay(self) -> None:
        """A job is never delivered early, and its life begins after its delay."""
        terms = JobTerms(retry_s=5, ttl_s=100)
        found = [terms.options(delay_s) for delay_s in (0, -1, 0.1, 2, 2.5)]
        self.assertEqual([None, None, 1, 2, 3], [options.delay_s for options in found])
        self.assertEqual([100, 100, 101, 102, 103], [options.ttl_s for options in found])
        self.assertEqual({5}, {options.retry_s for options in found})

    def test_defaults(self) -> None:
        """Who says nothing has jobs that come back after a minute, and are kept for ten days."""
        options = JobTerms().options()
        found = (options.retry_s, options.ttl_s, options.delay_s, options.replicate)
        self.assertEqual((60, 10 * 86_400, None, None), found)

    def test_longest(self) -> None:
        """A delay that no job can have is the longest one that it can."""
        options = JobTerms().options(1e12)
        self.assertEqual(2**32 - 1, options.ttl_s)
        self.assertEqual(2**32 - 2, options.delay_s)

    def test_life(self) -> None:
        """A job may have a life of its own."""
        for ttl_s, whole_s in ((2.1, 3), (2, 2), (1, 1), (0.2, 1), (0, 1), (-5, 1)):
            self.assertEqual(whole_s, JobTerms().options(ttl_s=ttl_s).ttl_s)

    def test_bad(self) -> None:
        """A number that is out of its range is named."""
        wrong: dict[str, Any] = {"retry_s": 0, "ttl_s": 1.5, "replicate": 70_000}
        for name, value in wrong.items():
            error = self.assertRaises(ValueError, lambda n=name, v=value: JobTerms(**{n: v}))
            self.assertIn(name, str(error))


class PriorityTests(SynchronousTestCase):
    """Names of queues."""

    def test_order(self) -> None:
        """The most urgent queue is the first; jobs without a priority are in the queue itself."""
        names = names_by_priority("q", 2)
        self.assertEqual([priority_name("q", step) for step in (2, 1, 0)], names)
        self.assertEqual("q", names[-1])
        self.assertEqual(priority_name("q", 9), priority_name("q", 99))
        self.assertEqual("q", priority_name("q", -5))
