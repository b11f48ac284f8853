"""Which jobs count as parked while items are moved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.values import Hello, JobDetails, NodeInfo
from disque_tx.workqueue.items import Item, job_body
from disque_tx.workqueue.parking import PARK_S, Parking, parking_options

NODE_ID = "a" * 40
JOB_ID = "D-aaaaaaaa-I7AaGuir60UxcQsPD43BwS6e-05a1"


def details(**changed: Any) -> JobDetails:
    """A parked job, with these changes."""
    job = JobDetails(
        id=JOB_ID,
        queue="q",
        state="active",
        replicate=1,
        ttl_s=86_400,
        ctime=0,
        delay_s=PARK_S,
        retry_s=300,
        nacks=0,
        additional_deliveries=0,
        nodes_delivered=(),
        nodes_confirmed=(),
        next_requeue_ms=PARK_S * 1000,
        next_awake_ms=None,
        body=job_body(Item("item", b"data")),
    )
    return attrs.evolve(job, **changed)


class OneNode:
    """A client of a node with one job. ``enqueued``, ``acked``: the IDs of jobs sent with ENQUEUE
    and ACKJOB."""

    def __init__(self, job: JobDetails) -> None:
        self.job = job
        self.enqueued: list[str] = []
        self.acked: list[str] = []

    async def hello(self) -> Hello:
        """The reply of a node that is alone."""
        return Hello(NODE_ID, (NodeInfo(NODE_ID, "", 7711, 1),))

    async def show(self, job_id: str) -> JobDetails | None:
        """The details of the job."""
        return self.job if job_id == self.job.id else None

    async def enqueue_jobs(self, *ids: str) -> int:
        """Record the IDs."""
        self.enqueued += ids
        return len(ids)

    async def ack_jobs(self, *ids: str) -> int:
        """Record the IDs."""
        self.acked += ids
        return len(ids)

    async def job_scan(self, **filters: Any) -> AsyncIterator[JobDetails]:
        """The only job."""
        yield self.job


class ParkingTests(SynchronousTestCase):
    """A delivered job must not be queued again, because a worker processes it."""

    def opened(self, job: JobDetails) -> tuple[Any, OneNode]:
        """Open parking on a node with this job."""
        node = OneNode(job)
        client: Any = node
        parking = Parking(client, lambda address: client, "q", parking_options())
        self.successResultOf(Deferred.fromCoroutine(parking.open()))
        return parking, node

    def is_released(self, job: JobDetails) -> bool:
        """Whether a release queues the job."""
        parking, node = self.opened(job)
        self.successResultOf(Deferred.fromCoroutine(parking.release(job.id)))
        return node.enqueued == [job.id]

    @given(st.integers(0, PARK_S // 2), st.integers(0, 999))
    def test_delivered(self, retry_s: int, jitter_ms: int) -> None:
        """A delivered job is queued again within its RETRY, which may be up to half the parking
        time; it is not released."""
        delivered_ms = retry_s * 1000 + jitter_ms - 500
        self.assertFalse(self.is_released(details(retry_s=retry_s, next_requeue_ms=delivered_ms)))
        self.assertTrue(self.is_released(details(retry_s=retry_s)))

    def test_other_states(self) -> None:
        """Jobs that are queued, acknowledged or never queued again are not released."""
        for changed in ({"state": "queued"}, {"state": "acked"}, {"next_requeue_ms": None}):
            self.assertFalse(self.is_released(details(**changed)), changed)

    def test_found(self) -> None:
        """Only jobs added by a move are found, because others may have added jobs with the same
        item."""
        wanted = {"item": None}
        for job, expected in (
            (details(), {"item": JOB_ID}),
            (details(delay_s=0), {}),
            (details(body=b"something else"), {}),
            (details(body=job_body(Item("another", b"data"))), {}),
            (details(body=None), {}),
        ):
            parking, _ = self.opened(job)
            found = self.successResultOf(Deferred.fromCoroutine(parking.find(wanted)))
            self.assertEqual(expected, found)
