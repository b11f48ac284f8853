"""WORKING is heeded by every holder, whatever their IDs and wherever the job is queued."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages import QUEUED
from tests import profiles  # noqa: F401
from tests.core.joined import STEP_MS, Joined

node_ids = st.binary(min_size=20, max_size=20).map(lambda raw: raw.hex().encode())
unique_parts = st.text("0123456789abcdefABCXYZ+/", min_size=24, max_size=24)
#: Requeue times vary by half of this.
_JITTER_MS = 500


class HeededTests(SynchronousTestCase):
    """Three holders of one job."""

    @given(
        st.lists(node_ids, min_size=3, max_size=3, unique=True),
        unique_parts,
        st.integers(1, 2),
        st.integers(0, 200),
        st.booleans(),
        st.integers(0, 2),
        st.randoms(use_true_random=False),
    )
    def test_nobody_queues_it_before_retry(
        self,
        ids: list[bytes],
        unique: str,
        retry_s: int,
        steps: int,
        taken: bool,
        worker: int,
        random: Random,
    ) -> None:
        """After an answered WORKING no other holder has the job in its queue, nor queues it before
        RETRY; or two workers would have it."""
        job_id = b"D-%s-%s-003d" % (ids[0][:8], unique.encode())
        joined = Joined(ids, job_id, random)
        joined.add(0, 3, retry_s)
        if taken:
            joined.take(0)
        for _ in range(steps):
            joined.step()
        self.assertEqual(retry_s, joined.nodes[worker].working(job_id))
        joined.settle()
        quiet_ms = retry_s * 1000 - _JITTER_MS // 2 - STEP_MS
        for _ in range(quiet_ms // STEP_MS):
            for node in joined.nodes:
                job = node.jobs.get(job_id)
                assert job is not None
                self.assertNotEqual(QUEUED, job.state)
            joined.step()
