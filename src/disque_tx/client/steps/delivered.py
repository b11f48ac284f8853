"""Jobs that a client has fetched, and what a program does with each."""

from __future__ import annotations

from typing import Any

from disque_tx.client.addresses import Address
from disque_tx.client.errors import BadJobId
from disque_tx.client.requests import encoding as requests
from disque_tx.client.steps.methods import Methods, operation
from disque_tx.client.steps.single import Steps, near
from disque_tx.client.values import Job, JobDetails


class Delivered(Methods):
    """A job delivered to this program. Unless it is acknowledged, it is delivered again, here or
    elsewhere, when its RETRY is over.

    ``address``: of the node that delivered it. Requests about the job go there, or to another node
    if that one cannot be reached.
    """

    __slots__ = ("_session", "address", "job")

    def __init__(self, session: Any, address: Address, job: Job) -> None:
        self._session = session
        self.address = address
        self.job = job

    def __repr__(self) -> str:
        return f"<TakenJob {self.id} of queue {self.queue!r}>"

    @property
    def data(self) -> bytes:
        """The body as passed to ``enqueue``; text is UTF-8."""
        return self.job.body

    @property
    def id(self) -> str:
        """The job's ID."""
        return self.job.id

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self.job.queue

    @operation
    def ack(self) -> Steps[bool]:
        """Acknowledge the job: it is done, and not delivered again. Returns whether the node knew
        it and had not acknowledged it before."""
        return (yield from near(self.address, requests.ack_jobs(self.id))) > 0

    @operation
    def fast_ack(self) -> Steps[bool]:
        """The job is done: delete it, without waiting until all nodes confirm it. Returns whether
        the node had it."""
        return (yield from near(self.address, requests.fast_ack(self.id))) > 0

    @operation
    def nack(self, delay_s: float | None = None, reason: str | None = None) -> Steps[bool]:
        """The job failed: it is to be delivered again. Returns whether it will be.

        ``delay_s``: after this many seconds, ``None``: as the policy of its queue says, or now.
        ``reason``: why, for its dead letter. A node of the original knows neither: it queues the
        job again now.
        """
        try:
            nack = requests.nack(self.id, delay_s=delay_s, reason=reason)
            return (yield from near(self.address, nack)) > 0
        except BadJobId:
            if delay_s is None and reason is None:
                raise
            return (yield from near(self.address, requests.nack(self.id))) > 0

    @operation
    def working(self, progress: float | None = None, note: str | None = None) -> Steps[int]:
        """The job takes longer: postpone its next delivery. Returns for how many seconds from now.

        ``progress``: how much of it is done, from 0 to 1; ``note``: what is worked on, up to 256
        bytes. The node shows both; a node of the original refuses them.

        :raises AlreadyAcknowledged: the job has been acknowledged.
        :raises UnknownJob: no node that was asked knows the job.
        :raises TooLate: half of its TTL is over.
        """
        return (
            yield from near(self.address, requests.working(self.id, progress=progress, note=note))
        )

    @operation
    def show(self) -> Steps[JobDetails | None]:
        """All that the node that delivered the job knows about it; ``None`` if nothing."""
        return (yield from near(self.address, requests.show(self.id)))
