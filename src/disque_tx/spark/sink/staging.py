"""Staged jobs: added, and not yet visible to workers.

A staged job is added with a DELAY one second shorter than its TTL. When all jobs of a write have
been added, ENQUEUE makes them visible. If that never happens, because the driver was killed, they
expire; in the last second of their TTL they can be fetched, as no DELAY may be longer. Until then
:func:`discard_staged` finds and removes them.

Each job becomes visible exactly once, even when connections are lost meanwhile. ENQUEUE must not
simply be repeated: a job that was queued, and perhaps fetched, would be queued a second time, or
the reply would be 0 as if it had never existed. So:

1. Where no reply came, the job itself is inspected: one that was never queued is tried again, any
   other one is visible already.
2. A lost node gets some time to come back, because it alone knows what it did.
3. Only then, or where a node does not know a job any more, another holder is asked to queue it. If
   the lost node had queued the job and comes back, the job may be delivered twice, as it may
   whenever a lost node comes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import ClientError, ConnectionLost
from disque_tx.client.options import TLS
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests import scans
from disque_tx.client.requests.encoding import encoded
from disque_tx.client.values import JobDetails
from disque_tx.spark.errors import WriteRefused
from disque_tx.spark.options import cluster

_PAGE_JOBS: Final = 500
#: Tolerance for rounding to seconds and for the jitter of requeue times.
_SLACK_MS: Final = 3000


def is_staged(job: JobDetails) -> bool:
    """Whether a job is staged: not queued yet, and not due before it is about to expire.

    A job that was delivered is queued again within its RETRY.
    """
    if job.next_requeue_ms is None or not job.delay_s:
        return False
    left_ms = job.ttl_s * 1000 - job.next_requeue_ms
    return was_never_queued(job) and -_SLACK_MS < left_ms < _SLACK_MS


def was_never_queued(job: JobDetails) -> bool:
    """Whether a staged job was never queued, judged at any holder: its next delivery is farther
    away than RETRY, and any queueing would have moved it closer."""
    return (
        job.state == "active"
        and job.next_requeue_ms is not None
        and job.next_requeue_ms > job.retry_s * 1000 + _SLACK_MS
    )


def withdraw(servers: Servers, jobs: Mapping[Address, Iterable[str]]) -> int:
    """Remove those of these jobs that are still staged from all nodes that hold them; returns how
    many."""
    removed = 0
    for node, ids in jobs.items():
        details = servers.ask(node, [requests.show(job_id) for job_id in ids])
        staged = [job.id for job in details if isinstance(job, JobDetails) and is_staged(job)]
        answers = servers.ask(node, [requests.ack_jobs(job_id) for job_id in staged])
        removed += sum(answer for answer in answers if isinstance(answer, int))
    return removed


def discard_staged(
    servers: str,
    queue: str,
    password: str | None = None,
    tls: TLS | None = None,
) -> int:
    """Remove staged jobs of a queue that a killed write left; returns how many.

    ``servers``: as the option ``disque.servers``. Not to be used while a staged write to this
    queue runs.

    :raises BadOption: for malformed addresses.
    :raises ConnectionLost, Refused: when a node cannot be asked.
    """
    nodes = cluster(servers, password, tls).servers()
    try:
        return sum(_discarded(nodes, node, queue) for node in nodes.addresses)
    finally:
        nodes.close()


def _discarded(servers: Servers, node: Address, queue: str) -> int:
    scan = scans.job_scan(encoded(queue), ("active",), _PAGE_JOBS)
    found: set[str] = set()
    cursor = -1
    while cursor:
        cursor, page = servers.connection(node).call(scan.page(max(cursor, 0)))
        found.update(job.id for job in page if is_staged(job))
    return withdraw(servers, {node: sorted(found)})


#: How long to wait for a lost node to come back.
PATIENCE_S: Final = 10.0
_PAUSE_S: Final = 0.5
#: Connections to one node that may be lost in a row before the node counts as lost.
_ATTEMPTS: Final = 5


def queue_all(
    servers: Servers,
    jobs: Mapping[Address, Sequence[str]],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Queue all these jobs; ``jobs``: IDs by the node at which they were added.

    :raises WriteRefused: when some of them cannot be queued; the others are.
    """
    failed: dict[str, str] = {}
    for home, ids in jobs.items():
        others = [address for address in servers.addresses if address != home]
        reasons: dict[str, str] = {}
        left = list(ids)
        for node in (home, *others):
            if left:
                found = _Queueing(servers, node, sleep).run(left)
                left = list(found)
                for job_id, reason in found.items():
                    reasons.setdefault(job_id, reason)
        failed.update((job_id, reasons[job_id]) for job_id in left)
    if failed:
        total = sum(map(len, jobs.values()))
        raise WriteRefused(
            f"{len(failed)} of {total} staged jobs could not be made visible; the others are."
            f" {next(iter(failed.values()))} Those that are still staged are removed or expire."
            " Find out which jobs are missing before writing again."
        )


@attrs.define
class _Queueing:
    """Jobs at one node."""

    servers: Servers
    node: Address
    sleep: Callable[[float], None]

    def run(self, ids: Sequence[str]) -> dict[str, str]:
        """Queue the jobs; returns those that could not be queued here, and why."""
        failed: dict[str, str] = {}
        left = list(ids)
        for _ in range(_ATTEMPTS):
            if not left:
                break
            requested = [requests.enqueue_jobs(job_id) for job_id in left]
            replies = self.servers.ask_once(self.node, requested)
            answers = dict(zip(left, replies, strict=True))
            unclear = [job_id for job_id, answer in answers.items() if _may_be_executed(answer)]
            for job_id, answer in answers.items():
                if job_id not in unclear and answer != 1:
                    failed[job_id] = self._reason(job_id, answer)
            left = self._not_queued(unclear, failed)
        for job_id in left:
            failed[job_id] = f"The connection to {self.node} was lost repeatedly."
        return self._without_queued(failed)

    def _reason(self, job_id: str, answer: int | ClientError) -> str:
        if isinstance(answer, ClientError):
            return str(answer)
        return f"{job_id} is no longer staged at {self.node}."

    def _not_queued(self, unclear: Sequence[str], failed: dict[str, str]) -> list[str]:
        """The unclear jobs for which ENQUEUE must be sent again. Jobs that this node cannot be
        asked about are added to ``failed``."""
        again: list[str] = []
        for job_id, job in self._details(unclear).items():
            if isinstance(job, ClientError):
                failed[job_id] = str(job)
            elif job is not None and was_never_queued(job):
                again.append(job_id)
        return again

    def _details(self, ids: Sequence[str]) -> dict[str, JobDetails | None | ClientError]:
        """The node's details of these jobs, once it is back."""
        asked = [requests.show(job_id) for job_id in ids]
        waited_s = 0.0
        while True:
            answers = self.servers.ask(self.node, asked)
            is_away = any(isinstance(answer, ConnectionLost) for answer in answers)
            if not is_away or waited_s >= PATIENCE_S:
                return dict(zip(ids, answers, strict=True))
            self.sleep(_PAUSE_S)
            waited_s += _PAUSE_S

    def _without_queued(self, failed: dict[str, str]) -> dict[str, str]:
        """Without those that were queued or acknowledged in the meantime."""
        answers = self.servers.ask(self.node, [requests.show(job_id) for job_id in failed])
        return {
            job_id: reason
            for (job_id, reason), job in zip(failed.items(), answers, strict=True)
            if not (isinstance(job, JobDetails) and job.state in ("queued", "acked"))
        }


def _may_be_executed(answer: object) -> bool:
    """Whether the request may have been executed, without an answer."""
    return isinstance(answer, ConnectionLost) and answer.sent
