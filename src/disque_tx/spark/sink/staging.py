"""Jobs that are there and not yet shown.

A staged job is added with a DELAY one second shorter than its TTL. When all jobs of a write are
there, ENQUEUE shows them (:mod:`disque_tx.spark.sink.showing`). If nobody comes to do that, because
the driver was killed, they expire; in the last second of their TTL they can be fetched, as no DELAY
may be longer. Until then :func:`discard_staged` finds and removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.options import TLS
from disque_tx.client.requests import encoded
from disque_tx.client.values import JobDetails
from disque_tx.spark.options import cluster
from disque_tx.spark.servers import Servers

_PAGE_JOBS: Final = 500
#: What rounding to seconds and a spread of requeue times make of one second.
_SLACK_MS: Final = 3000


def is_staged(job: JobDetails) -> bool:
    """Whether a job waits to be shown: not queued yet, and not before it is about to expire.

    A job that was delivered comes again within its RETRY.
    """
    if job.next_requeue_ms is None or not job.delay_s:
        return False
    left_ms = job.ttl_s * 1000 - job.next_requeue_ms
    return was_never_queued(job) and -_SLACK_MS < left_ms < _SLACK_MS


def was_never_queued(job: JobDetails) -> bool:
    """Whether a job that was staged still is, at whichever holder this was asked: its next delivery
    is farther away than RETRY, to which any queueing would have brought it."""
    return (
        job.state == "active"
        and job.next_requeue_ms is not None
        and job.next_requeue_ms > job.retry_s * 1000 + _SLACK_MS
    )


def take_back(servers: Servers, jobs: Mapping[Address, Iterable[str]]) -> int:
    """Remove those of these jobs that are staged, from all nodes that hold them; how many."""
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

    :raises BadOption: for addresses that are none.
    :raises ConnectionLost, Refused: when a node cannot be asked.
    """
    nodes = cluster(servers, password, tls).servers()
    try:
        return sum(_discarded(nodes, node, queue) for node in nodes.addresses)
    finally:
        nodes.close()


def _discarded(servers: Servers, node: Address, queue: str) -> int:
    scan = requests.job_scan(encoded(queue), ("active",), _PAGE_JOBS)
    found: set[str] = set()
    cursor = -1
    while cursor:
        cursor, page = servers.pipe(node).call(scan.page(max(cursor, 0)))
        found.update(job.id for job in page if is_staged(job))
    return take_back(servers, {node: sorted(found)})
