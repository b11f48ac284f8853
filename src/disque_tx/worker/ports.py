"""What the worker needs of a client: ``disque_tx.client.DisqueClient`` has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from disque_tx.client import AddOptions, Job, JobDetails


class Taken(Protocol):
    """A delivered job; requests about it go to the node that delivered it."""

    @property
    def job(self) -> Job:
        """What was delivered."""

    def working(self) -> Deferred[int]:
        """WORKING; RETRY in seconds."""

    def show(self) -> Deferred[JobDetails | None]:
        """SHOW, of the node that delivered it."""


class Client(Protocol):
    """Requests, each with a Deferred answer that may fail with a ``ClientError``."""

    def take(
        self,
        *queues: str,
        count: int = 1,
        timeout_s: float | None = None,
        no_hang: bool = False,
    ) -> Deferred[Any]:
        """GETJOB; a list of :class:`Taken`. Cancelled: jobs that arrive yet are given back."""

    def add_job_with(self, queue: str, body: bytes, options: AddOptions, /) -> Deferred[str]:
        """ADDJOB; the ID."""

    def set_name(self, name: str, /) -> object:
        """Name the connections, for CLIENT LIST. What comes of it is of no account."""

    def ack_taken(self, jobs: Sequence[Any], /) -> Deferred[int]:
        """ACKJOB for many."""

    def nack_taken(self, jobs: Sequence[Any], /) -> Deferred[int]:
        """NACK for many; how many were queued again."""
