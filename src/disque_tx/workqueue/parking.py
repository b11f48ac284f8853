"""Jobs that wait in Disque, not yet deliverable, while items are moved there.

A job is *parked* by adding it with a long DELAY, and *released* with ENQUEUE before the DELAY is
over. Until then no worker gets it, and it can be found by the item in its body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from disque_tx.client.options import AddOptions
from disque_tx.workqueue.errors import MoveRefused
from disque_tx.workqueue.items import Item, job_body, parse_job_body

if TYPE_CHECKING:
    from disque_tx.client import DisqueClient
    from disque_tx.client.values import JobDetails

#: The DELAY of parked jobs. A move that was killed must be started again within this time.
PARK_S: Final = 3600
#: Nodes of this priority (HELLO) have failed or leave.
_UNUSABLE: Final = 100
#: By how much a delivery may come later than RETRY.
_JITTER_MS: Final = 5000


def parking_options(
    retry_s: int = 300, ttl_s: int = 86_400, replicate: int | None = None
) -> AddOptions:
    """The options of parked jobs. ``replicate``: copies, ``None`` for the node's default.

    :raises MoveRefused: when delivered jobs could not be distinguished from parked ones, or jobs
        might expire before they are released.
    """
    if not 0 <= retry_s <= PARK_S // 2:
        raise MoveRefused(
            f"A RETRY of {retry_s} s is not from 0 to {PARK_S // 2} s: a job that was delivered"
            " could not be distinguished from one that was not."
        )
    if ttl_s < 2 * PARK_S:
        raise MoveRefused(
            f"A TTL of {ttl_s} s is too short: jobs wait for up to {PARK_S} s while they"
            f" are moved. Give {2 * PARK_S} s or more."
        )
    return AddOptions(delay_s=PARK_S, retry_s=retry_s, ttl_s=ttl_s, replicate=replicate)


class Parking:
    """Parks and releases jobs. ``client``: adds jobs. ``member``: makes a client of the one node at
    an address. ``options``: made by :func:`parking_options`."""

    def __init__(
        self,
        client: DisqueClient,
        member: Callable[[str], DisqueClient],
        queue: str,
        options: AddOptions,
    ) -> None:
        self._client = client
        self._member = member
        self._queue = queue
        self._options = options
        self._members: dict[str, DisqueClient] = {}

    async def open(self) -> None:
        """Find the nodes of the cluster.

        :raises ClientError: when no node can be reached.
        """
        hello = await self._client.hello()
        for node in hello.nodes:
            if node.id == hello.id and len(hello.nodes) == 1:
                self._members[node.id[:8]] = self._client
            elif node.priority < _UNUSABLE and node.ip:
                host = f"[{node.ip}]" if ":" in node.ip else node.ip
                self._members[node.id[:8]] = self._member(f"{host}:{node.port}")

    async def close(self) -> None:
        """Close the clients of single nodes."""
        for member in self._members.values():
            if member is not self._client:
                await member.close()

    async def park(self, item: Item) -> str:
        """Add a job that is not delivered yet. Returns its ID."""
        return await self._client.add_job_with(self._queue, job_body(item), self._options)

    async def release(self, job_id: str) -> None:
        """Queue a job now, if it is parked."""
        node = self._at(job_id)
        job = await node.show(job_id)
        if job is not None and self._is_parked(job):
            await node.enqueue_jobs(job_id)

    async def drop(self, job_id: str) -> None:
        """Acknowledge a job whose item was completed on Redis."""
        await self._at(job_id).ack_jobs(job_id)

    async def find(self, items: Mapping[str, object]) -> dict[str, str]:
        """Item ID → job ID, for those of ``items`` that some node knows a job of.

        Reads all jobs of the queue.

        :raises ClientError: when a node does not answer, because it might know such a job.
        """
        found: dict[str, str] = {}
        for member in self._members.values():
            async for job in member.job_scan(queue=self._queue, states=("active", "queued")):
                decoded = parse_job_body(job.body or b"")
                if decoded is not None and decoded[0] in items and job.delay_s == PARK_S:
                    found[decoded[0]] = job.id
        return found

    def _at(self, job_id: str) -> DisqueClient:
        """The node that created a job; the job's ID contains the beginning of the node's."""
        return self._members.get(job_id[2:10], self._client)

    def _is_parked(self, job: JobDetails) -> bool:
        """Whether the job was never queued. One that was is queued again within its RETRY."""
        if job.state != "active" or job.next_requeue_ms is None:
            return False
        return job.next_requeue_ms > job.retry_s * 1000 + _JITTER_MS
