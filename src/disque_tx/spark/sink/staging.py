"""Staged jobs: added, and not yet visible to workers.

They are added to a queue of their own, ``staged:`` before the name of theirs, which is paused, so
that nobody gets jobs from it. When all jobs of a write have been added, QMOVE moves them. If that
never happens, because the driver was killed, they stay there until they expire;
:func:`discard_staged` removes them earlier.

Each job becomes visible once, even when connections are lost meanwhile:

1. Where no reply came, the node is asked which of the jobs are still in the queue of staged jobs:
   these are moved again, as QMOVE leaves none behind that it moved.
2. A lost node gets some time to come back, because it alone knows what it did.
3. Only then another holder queues and moves the jobs. If the lost node had moved some and comes
   back, these may be delivered twice, as they may whenever a lost node comes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import ClientError, ConnectionLost
from disque_tx.client.options import TLS
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests import scans
from disque_tx.client.requests.encoding import Request, encoded
from disque_tx.client.requests.moving import queue_move
from disque_tx.client.values import JobDetails
from disque_tx.spark.errors import WriteRefused
from disque_tx.spark.options import cluster

#: Node → queue → IDs of the jobs that are staged for it.
Staged: TypeAlias = Mapping[Address, Mapping[bytes, Sequence[str]]]
_PREFIX: Final = b"staged:"
_PAGE_JOBS: Final = 500
#: Jobs of one QMOVE, and how long it may take.
_MOVED_AT_ONCE: Final = 500
_MOVE_S: Final = 60.0
#: How long to wait for a lost node to come back.
PATIENCE_S: Final = 10.0
_PAUSE_S: Final = 0.5
#: How often a node is asked to move the same jobs before it counts as lost.
_ATTEMPTS: Final = 5


def staging_queue(queue: bytes) -> bytes:
    """Where the jobs of a queue wait."""
    return _PREFIX + queue


def pause(queue: bytes) -> Request[str]:
    """Let nobody get the jobs that are staged for a queue, at any node."""
    return requests.pause(staging_queue(queue), "out", "bcast")


def withdraw(servers: Servers, jobs: Staged) -> None:
    """Remove these jobs, if they are still staged."""
    for node, queues in jobs.items():
        for ids in queues.values():
            servers.ask(node, [requests.ack_jobs(job_id) for job_id in ids])


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
        return sum(
            _discarded(nodes, node, staging_queue(encoded(queue))) for node in nodes.addresses
        )
    finally:
        nodes.close()


def _discarded(servers: Servers, node: Address, queue: bytes) -> int:
    scan = scans.job_scan(queue, ("active", "queued"), _PAGE_JOBS)
    found: set[str] = set()
    cursor = -1
    while cursor:
        cursor, page = servers.connection(node).call(scan.page(max(cursor, 0)))
        found.update(job.id for job in page)
    answers = servers.ask(node, [requests.ack_jobs(job_id) for job_id in sorted(found)])
    return sum(answer for answer in answers if isinstance(answer, int))


def publish(servers: Servers, jobs: Staged, sleep: Callable[[float], None] = time.sleep) -> None:
    """Move all these jobs to their queues; those that a node added are there.

    :raises WriteRefused: when some of them cannot be moved; the others are.
    """
    failed: dict[str, str] = {}
    for home, queue, ids in _moves(jobs):
        left = dict.fromkeys(ids, "")
        for node in (home, *(address for address in servers.addresses if address != home)):
            if left:
                found = _Moving(servers, node, queue, node != home, sleep).run(list(left))
                left = {job_id: left[job_id] or reason for job_id, reason in found.items()}
        failed.update(left)
    if failed:
        total = sum(len(ids) for _, _, ids in _moves(jobs))
        raise WriteRefused(
            f"{len(failed)} of {total} staged jobs could not be made visible; the others are."
            f" {next(iter(failed.values()))} Those that are still staged are removed or expire."
            " Find out which jobs are missing before writing again."
        )


def _moves(jobs: Staged) -> Iterator[tuple[Address, bytes, Sequence[str]]]:
    for node, queues in jobs.items():
        for queue, ids in queues.items():
            for start in range(0, len(ids), _MOVED_AT_ONCE):
                yield node, queue, ids[start : start + _MOVED_AT_ONCE]


@attrs.define
class _Moving:
    """Jobs of one queue at one node. ``takes_over``: it did not add them."""

    servers: Servers
    node: Address
    queue: bytes
    takes_over: bool
    sleep: Callable[[float], None]

    def run(self, ids: list[str]) -> dict[str, str]:
        """Move the jobs; returns those that could not be moved here, and why."""
        left = ids
        for _ in range(_ATTEMPTS):
            if self.takes_over:
                self.servers.ask(self.node, [requests.enqueue_jobs(*left)])
            (answer,) = self.servers.ask_once(self.node, [self._move(left)])
            if answer == len(left):
                return {}
            if isinstance(answer, ClientError) and not isinstance(answer, ConnectionLost):
                return dict.fromkeys(left, str(answer))
            may_be_moved = isinstance(answer, ConnectionLost) and answer.sent
            details = self._details(left)
            lost = [job for job in details.values() if isinstance(job, ConnectionLost)]
            if lost:
                return dict.fromkeys(left, str(lost[0]))
            unknown = [job_id for job_id, job in details.items() if job is None]
            left = [job_id for job_id, job in details.items() if self._is_staged(job)]
            moved = answer if isinstance(answer, int) else 0
            missing = 0 if may_be_moved else max(0, len(details) - len(left) - moved)
            if unknown and missing:
                # Of those that are not known any more, nobody knows which ones were moved.
                reason = f"They are no longer staged at {self.node}."
                return dict.fromkeys([*unknown[-missing:], *left], reason)
            if not left:
                return {}
        return dict.fromkeys(left, f"{self.node} did not move them, although asked repeatedly.")

    def _move(self, ids: Iterable[str]) -> Request[int]:
        request = queue_move(staging_queue(self.queue), self.queue, job_ids=ids)
        return attrs.evolve(request, wait_s=_MOVE_S)

    def _is_staged(self, job: object) -> bool:
        return (
            isinstance(job, JobDetails)
            and job.state != "acked"
            and encoded(job.queue or "") == staging_queue(self.queue)
        )

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
