"""The options a job was added with, and how they are reconstructed later."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.options import AddOptions, current_options, options_from_id, original_options
from disque_tx.client.values import JobDetails
from disque_tx.wire.jobs.jobid import ttl_field

_TTLS = st.integers(1, 2**32 - 1)
_RETRIES = st.integers(0, 2**32 - 1)


def details(ttl_s: int, retry_s: int, age_s: float, made_s: float = 1e9) -> JobDetails:
    """A job of this age, as its node shows it."""
    job_id = "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI" + ttl_field(ttl_s, retry_s).decode()
    left_s = max(0, int(ttl_s - age_s))
    counters = (0, 0, (), (), None, None, b"")
    return JobDetails(job_id, "q", "active", 1, left_s, int(made_s * 1e9), 0, retry_s, *counters)


def added(retry_s: int | None, ttl_s: int, replicate: int | None = None) -> AddOptions:
    """Options with only these set."""
    return AddOptions(retry_s=retry_s, ttl_s=ttl_s, replicate=replicate)


class AddOptionsTests(SynchronousTestCase):
    """``AddOptions``, and their reconstruction."""

    @given(_TTLS, _RETRIES, st.floats(0, 0.999))
    def test_whole(self, ttl_s: int, retry_s: int, part: float) -> None:
        """At any age the original TTL of a job is reconstructed within two seconds."""
        age_s = ttl_s * part
        found = original_options(details(ttl_s, retry_s, age_s), lambda: 1e9 + age_s)
        self.assertEqual((retry_s, 1), (found.retry_s, found.replicate))
        assert found.ttl_s is not None
        self.assertLessEqual(abs(found.ttl_s - ttl_s), 2)

    def test_exact(self) -> None:
        """Where clocks agree, it is exactly the one that the job was added with."""
        for ttl_s in (1, 59, 60, 119, 120, 239, 240, 86_400, 86_519, 65_533 * 60 + 59, 2**32 - 1):
            for age_s in (0, ttl_s // 2, ttl_s - 1):
                now_s = 1e9 + age_s
                found = original_options(details(ttl_s, 60, age_s), partial(float, now_s))
                self.assertEqual(ttl_s, found.ttl_s)

    @given(_TTLS, _RETRIES, st.integers(-(10**6), 10**6))
    def test_other_clock(self, ttl_s: int, retry_s: int, off_s: int) -> None:
        """However wrong the local clock is, the TTL is at most two minutes too long, and never
        shorter than the remaining one."""
        found = original_options(details(ttl_s, retry_s, 0.0), lambda: 1e9 + off_s).ttl_s
        assert found is not None
        self.assertGreaterEqual(found, ttl_s)
        if ttl_s < 65534 * 60:
            self.assertLessEqual(found - ttl_s, 120)

    @given(_TTLS, _RETRIES)
    def test_id(self, ttl_s: int, retry_s: int) -> None:
        """The ID alone shows whether a job is delivered at most once."""
        found = options_from_id(details(ttl_s, retry_s, 0.0).id)
        self.assertEqual(retry_s == 0, found.at_most_once)

    def test_left(self) -> None:
        """The remaining TTL is at least one second, because ADDJOB refuses less."""
        self.assertEqual(added(9, 50, 1), current_options(details(60, 9, 10.0)))
        self.assertEqual(added(9, 1, 1), current_options(details(60, 9, 70.0)))
        self.assertEqual(AddOptions(), options_from_id("no ID"))

    def test_copies(self) -> None:
        """The number of copies can be changed, except for a job that is delivered at most once."""
        self.assertEqual(added(9, 60, 2), added(9, 60, 1).with_replicate(2))
        self.assertEqual(added(9, 60, 3), added(9, 60, 3).with_replicate(None))
        self.assertEqual(added(0, 60, 1), added(0, 60).with_replicate(2))

    def test_retried(self) -> None:
        """A job whose ADDJOB was lost may be added again, unless it is delivered at most once."""
        self.assertTrue(added(9, 60).retried_if_safe().retry_adds)
        self.assertFalse(added(0, 60).retried_if_safe().retry_adds)
