"""A job as its handler and the worker see it, and what the worker needs of a client."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Protocol

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from disque_tx.client import AddOptions, Job, JobDetails
from disque_tx.client.leases import Lease
from disque_tx.client.requests.encoding import progress_words


class DeliveredJob(Protocol):
    """A delivered job; requests about it go to the node that delivered it."""

    @property
    def job(self) -> Job:
        """What was delivered."""

    def working(self, progress: float | None = None, note: str | None = None) -> Deferred[int]:
        """WORKING; fires with RETRY in seconds."""

    def show(self) -> Deferred[JobDetails | None]:
        """SHOW, of the node that delivered it."""


class WorkerClient(Protocol):
    """The part of :class:`disque_tx.client.DisqueClient` that a worker uses. Each request returns a
    Deferred that may fail with a ``ClientError``."""

    def take(
        self,
        *queues: str,
        match: Sequence[str] = (),
        except_: str | Sequence[str] = (),
        count: int = 1,
        timeout_s: float | None = None,
        no_hang: bool = False,
    ) -> Deferred[Any]:
        """GETJOB; fires with a list of :class:`DeliveredJob`. After it is cancelled, jobs that
        still arrive are given back."""

    def add_job_with(self, queue: str, body: bytes, options: AddOptions, /) -> Deferred[str]:
        """ADDJOB; fires with the ID."""

    def set_name(self, name: str, /) -> object:
        """Name the connections, for CLIENT LIST. The result is ignored."""

    def ack_taken(self, jobs: Sequence[Any], /) -> Deferred[int]:
        """ACKJOB for several jobs."""

    def nack_taken(self, jobs: Sequence[Any], /, *, reason: str | None = None) -> Deferred[int]:
        """NACK for several jobs, for one reason; fires with how many will be delivered again."""

    def execute(self, *words: str | bytes | int | float) -> Deferred[Any]:
        """Any other command; fires with its reply, strings as bytes."""


@attrs.frozen
class ProgressReport:
    """How far a job is: ``fraction`` of the work, from 0 to 1, and a ``note``."""

    fraction: float
    note: str


class Context:
    """A job as its handler sees it.

    ``attempt``: which delivery this is, from 1 on. ``worker``: the name of the worker.
    ``lease_lost``: the job may be delivered to another worker, or is acknowledged or gone: a
    handler that takes long can check this and stop. ``reported``: its progress, ``None`` as long as
    the handler reports none; any thread may set it.
    """

    __slots__ = ("job", "lease_lost", "reported", "worker")

    def __init__(self, job: Job, worker: str) -> None:
        self.job = job
        self.worker = worker
        self.lease_lost = False
        self.reported: ProgressReport | None = None

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
        """The body, unchanged."""
        return self.job.body

    def progress(self, fraction: float, note: str = "") -> None:
        """Report how far the job is, as often as you like: about once a second the latest report is
        sent to the node, which shows it. Handlers of any kind may call this, in any thread.

        ``fraction``: of the work, from 0 to 1. ``note``: what is worked on, up to 256 bytes.

        :raises ValueError: the fraction or the note is not valid.
        """
        progress_words(fraction, note)
        self.reported = ProgressReport(float(fraction), note)

    @property
    def attempt(self) -> int:
        """1 for the first delivery."""
        return self.job.nacks + self.job.additional_deliveries + 1


class HeldJob:
    """A job that this worker holds: delivered, and neither acknowledged nor given back.

    ``task``: the name of its handler, for the log; empty while that is not known.
    ``add_options``: the options it was added with, ``None`` until they are known. ``lease``: when a
    WORKING is due, and the job's RETRY. ``timer``: sends it. ``heartbeat``: the WORKING that has no
    answer yet. ``sent_s``: when the last one was sent, ``told``: the progress that was reported
    last. ``reply``: the queue for the result, if one was asked for.
    ``retries_max``: how many nacks and additional deliveries it may have. ``reason``: why it is
    given back, for nodes that keep that; ``None`` for no reason.
    """

    __slots__ = (
        "heartbeat",
        "reason",
        "context",
        "lease",
        "reply",
        "retries_max",
        "delivered",
        "sent_s",
        "task",
        "told",
        "add_options",
        "timer",
    )

    def __init__(self, delivered: DeliveredJob, context: Context, retries_max: int) -> None:
        self.delivered = delivered
        self.context = context
        self.retries_max = retries_max
        self.task = ""
        self.lease = Lease()
        self.add_options: AddOptions | None = None
        self.timer: IDelayedCall | None = None
        self.heartbeat: Deferred[None] | None = None
        self.sent_s: float | None = None
        self.told: ProgressReport | None = None
        self.reply: str | None = None
        self.reason: str | None = None


current: ContextVar[Context] = ContextVar("disque_job")


def current_job() -> Context:
    """The job that the calling handler works on.

    :raises LookupError: outside of a handler, and in a handler of batches.
    """
    return current.get()
