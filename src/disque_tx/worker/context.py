"""What a handler knows of the job it does, and what the worker remembers of it."""

from __future__ import annotations

from contextvars import ContextVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from disque_tx.client import Job
from disque_tx.client.options import AddOptions
from disque_tx.worker.ports import Taken


class Context:
    """A job as its handler sees it.

    ``attempt``: which delivery this is, from 1 on. ``worker``: the name of the worker.
    ``lease_lost``: from now on somebody else may be given this job, or it is acknowledged or
    gone: a handler that takes long may look and stop.
    """

    __slots__ = ("job", "lease_lost", "worker")

    def __init__(self, job: Job, worker: str) -> None:
        self.job = job
        self.worker = worker
        self.lease_lost = False

    def __repr__(self) -> str:
        return f"<Context {self.id} of queue {self.queue!r}, attempt {self.attempt}>"

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self.job.queue

    @property
    def id(self) -> str:
        """The ID of the job."""
        return self.job.id

    @property
    def body(self) -> bytes:
        """The body, as it was added."""
        return self.job.body

    @property
    def attempt(self) -> int:
        """1 for the first delivery."""
        return self.job.nacks + self.job.additional_deliveries + 1


class Held:
    """A job between its delivery and its end.

    ``task``: the name of what does it, for the log; empty while that is not known.
    ``retry_s``, and ``terms``, which is all it was added with: ``None`` until a node told it.
    ``timer``: the next WORKING. ``beating``: the WORKING that has no answer yet. ``leased``:
    whether to send more. ``reply``: the queue where somebody waits for the result.
    ``retries_max``: how many nacks and additional deliveries it may have.
    """

    __slots__ = (
        "beating",
        "context",
        "leased",
        "reply",
        "retries_max",
        "retry_s",
        "taken",
        "task",
        "terms",
        "timer",
    )

    def __init__(self, taken: Taken, context: Context, retries_max: int) -> None:
        self.taken = taken
        self.context = context
        self.retries_max = retries_max
        self.task = ""
        self.retry_s: int | None = None
        self.terms: AddOptions | None = None
        self.timer: IDelayedCall | None = None
        self.beating: Deferred[None] | None = None
        self.leased = True
        self.reply: str | None = None


current: ContextVar[Context] = ContextVar("disque_job")


def current_job() -> Context:
    """The job that the calling handler does.

    :raises LookupError: outside of a handler, and in one that does a batch.
    """
    return current.get()
