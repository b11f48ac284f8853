"""Results that can be read as often as one likes for their time: kept as jobs nobody fetches.

A result is a job in a queue of its own, whose name is its key. It is copied to several nodes as any
job is, and queued, so seen by QPEEK, at one of them: so all nodes are asked. Its TTL is how long it
is kept. When its node dies, another one with a copy queues it after :data:`RETRY_S`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from disque_tx.client.blocking import Disque
from disque_tx.client.options import AddOptions
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.integrations.cluster import ask_all

#: How long a result may be missing after its node has died.
RETRY_S: Final = 10
_STAMP: Final = 16
_NEWEST: Final = -1
_ALL: Final = 100


class Results:
    """The results of a framework. ``prefix``: of the queues. ``wall_s``: of two results with one
    key, the newer one is read."""

    def __init__(
        self,
        client: Disque,
        prefix: str,
        replicate: int | None = None,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._replicate = replicate
        self._wall_s = wall_s

    def put(self, key: str, value: bytes, ttl_s: int) -> None:
        """Keep a value for that long."""
        options = result_options(self._replicate, ttl_s)
        self._client.add_job_with(self._prefix + key, stamped(value, self._wall_s()), options)

    def get(self, key: str) -> bytes | None:
        """The value, ``None`` if there is none.

        :raises ClientError: no node could be asked.
        """
        return newest(ask_all(self._client, peek(self._prefix + key)))

    def delete(self, key: str) -> None:
        """Forget the value."""
        for jobs in ask_all(self._client, requests.queue_peek(self._prefix + key, _ALL)):
            if jobs:
                self._client.ack_jobs(*[job.id for job in jobs])


def result_options(replicate: int | None, ttl_s: int) -> AddOptions:
    """How the job of a result is added."""
    return AddOptions(replicate=replicate, retry_s=RETRY_S, ttl_s=max(1, ttl_s))


def peek(queue: str) -> Request[list[Any]]:
    """The request that looks for a result at one node."""
    return requests.queue_peek(queue, _NEWEST)


def stamped(value: bytes, wall_s: float) -> bytes:
    """The body of the job: the time in microseconds, then the value."""
    return b"%0*d" % (_STAMP, int(wall_s * 1e6)) + value


def newest(answers: list[list[Any]]) -> bytes | None:
    """The newest of the values that nodes have."""
    bodies = [bytes(job.body) for jobs in answers for job in jobs]
    return max(bodies)[_STAMP:] if bodies else None
