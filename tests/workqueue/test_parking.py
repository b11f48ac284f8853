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
from disque_tx.workqueue.errors import MoveRefused
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


class Member(OneNode):
    """A client of one node of a cluster. ``added``: what was added with ADDJOB; ``closed``: how
    often it was closed."""

    def __init__(self, address: str = "", nodes: tuple[NodeInfo, ...] = ()) -> None:
        super().__init__(details())
        self.address = address
        self.nodes = nodes
        self.added: list[tuple[object, ...]] = []
        self.closed = 0

    async def hello(self) -> Hello:
        """The reply of the first node."""
        return Hello(NODE_ID, self.nodes)

    async def add_job_with(self, *words: object) -> str:
        """Record the words."""
        self.added.append(words)
        return JOB_ID

    async def close(self) -> None:
        """Record it."""
        self.closed += 1


class ClusterTests(SynchronousTestCase):
    """Jobs are looked for, released and dropped at the node that has created them."""

    def setUp(self) -> None:
        self.client = Member(nodes=(
            NodeInfo("b" * 40, "10.0.0.2", 7712, 1), NodeInfo("a" * 40, "::1", 7711, 1),
            NodeInfo("c" * 40, "10.0.0.3", 7713, 100), NodeInfo("d" * 40, "", 7714, 1),
            NodeInfo("e" * 40, "10.0.0.5", 7715, 99),
        ))  # fmt: skip
        self.members: list[Member] = []
        client: Any = self.client
        self.options = parking_options(replicate=2)
        self.parking = Parking(client, self.member, "q", self.options)
        self.result(self.parking.open())

    def member(self, address: str) -> Any:
        """A client of this node alone."""
        self.members.append(Member(address))
        return self.members[-1]

    def result(self, of: Any) -> Any:
        """The result of a coroutine."""
        return self.successResultOf(Deferred.fromCoroutine(of))

    def test_nodes(self) -> None:
        """Nodes that have failed or leave, or whose address is not known, are not asked."""
        addresses = [one.address for one in self.members]
        self.assertEqual(["10.0.0.2:7712", "[::1]:7711", "10.0.0.5:7715"], addresses)

    def test_creator(self) -> None:
        """The node whose ID begins as that of the job is asked; if it is not there, any other."""
        creator = self.members[1]
        self.result(self.parking.release(JOB_ID))
        self.result(self.parking.drop(JOB_ID))
        self.assertEqual(([JOB_ID], [JOB_ID]), (creator.enqueued, creator.acked))
        other = JOB_ID.replace("aaaaaaaa", "cccccccc")
        self.result(self.parking.release(other))
        self.result(self.parking.drop(other))
        self.assertEqual(([], [other]), (self.client.enqueued, self.client.acked))
        self.assertEqual([[], []], [self.members[at].acked for at in (0, 2)])

    def test_parked(self) -> None:
        """An item becomes a job that no worker gets for an hour, with the options of the move."""
        item = Item("item", b"data")
        self.assertEqual(JOB_ID, self.result(self.parking.park(item)))
        self.assertEqual([("q", job_body(item), self.options)], self.client.added)
        shown = (self.options.delay_s, self.options.retry_s, self.options.ttl_s)
        self.assertEqual((3600, 300, 86_400, 2), (*shown, self.options.replicate))

    def test_close(self) -> None:
        """The connections to single nodes are closed, and that of the program stays open."""
        self.result(self.parking.close())
        self.assertEqual([1, 1, 1, 0], [one.closed for one in (*self.members, self.client)])

    def test_options(self) -> None:
        """Options with which a move might do an item twice are refused, and the text has limits
        that are not."""
        for retry_s in (-1, 1801):
            error = self.assertRaises(MoveRefused, parking_options, retry_s)
            self.assertIn(f"A RETRY of {retry_s} s is not from 0 to 1800 s", str(error))
        error = self.assertRaises(MoveRefused, parking_options, 300, 7199)
        self.assertIn("A TTL of 7199 s is too short: jobs wait for up to 3600 s", str(error))
        self.assertIn("Give 7200 s or more.", str(error))
        for retry_s, ttl_s in ((0, 7200), (1800, 7201)):
            options = parking_options(retry_s, ttl_s)
            self.assertEqual((retry_s, ttl_s), (options.retry_s, options.ttl_s))


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

    def test_boundary(self) -> None:
        """A delivery may come up to five seconds later than RETRY; a job that is due later than
        that was never delivered."""
        for next_ms, expected in ((305_000, False), (305_001, True)):
            self.assertIs(expected, self.is_released(details(next_requeue_ms=next_ms)))

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
