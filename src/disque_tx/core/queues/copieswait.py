"""Jobs whose copies somebody waits for."""

from __future__ import annotations

from mypy_extensions import i64, trait

from disque_tx.core.base.client import Client
from disque_tx.core.jobs.job import Job


class CopiesWait:
    """A client that waits until enough nodes have a copy of ``job``, or nobody (``None``): a job
    that is to be kept elsewhere must be followed until it is there.

    ``created_ms``: when the job was made, from which its DELAY counts. ``due_ms``: when the client
    stops waiting, 0 for never. ``resend_ms``: when the nodes that did not answer get the job again;
    ``resends``: how often they did.
    """

    __slots__ = ("client", "created_ms", "due_ms", "job", "resend_ms", "resends")

    def __init__(self, client: Client | None, job: Job, now_ms: i64) -> None:
        self.client: Client | None = client
        self.job: Job = job
        self.created_ms: i64 = now_ms
        self.due_ms: i64 = 0
        self.resend_ms: i64 = now_ms
        self.resends: i64 = 0


@trait
class CopiesWatcher:
    """Who wants to know when jobs that no client waits for have their copies, or will not."""

    def copies_settled(self, job_id: bytes, made: bool) -> None:
        """The job has its copies, or was taken back."""
        raise NotImplementedError

    def needs_copies(self) -> bool:
        """Whether somebody was promised that the job has all its copies before it is delivered."""
        return True
