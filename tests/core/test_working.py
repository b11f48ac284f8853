"""Every holder obeys WORKING, whatever their IDs and wherever the job is queued."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.records import QUEUED
from tests import profiles  # noqa: F401
from tests.core.joined import STEP_MS, ConnectedNodes

node_ids = st.binary(min_size=20, max_size=20).map(lambda raw: raw.hex().encode())
unique_parts = st.text("0123456789abcdefABCXYZ+/", min_size=24, max_size=24)
#: Requeue times vary by half of this.
_JITTER_MS = 500


class WorkingTests(SynchronousTestCase):
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
        delivered: bool,
        worker: int,
        random: Random,
    ) -> None:
        """After WORKING succeeds, no other holder has the job queued, or queues it before RETRY;
        otherwise two workers would process it."""
        job_id = b"D-%s-%s-003d" % (ids[0][:8], unique.encode())
        cluster = ConnectedNodes(ids, job_id, random)
        cluster.add(0, 3, retry_s)
        if delivered:
            cluster.get(0)
        for _ in range(steps):
            cluster.step()
        self.assertEqual(retry_s, cluster.nodes[worker].working(job_id))
        cluster.settle()
        quiet_ms = retry_s * 1000 - _JITTER_MS // 2 - STEP_MS
        for _ in range(quiet_ms // STEP_MS):
            for node in cluster.nodes:
                job = node.jobs.get(job_id)
                assert job is not None
                self.assertNotEqual(QUEUED, job.state)
            cluster.step()
