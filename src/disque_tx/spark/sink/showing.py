"""Showing staged jobs: each exactly once, also when connections are lost meanwhile.

ENQUEUE must not be repeated blindly: what was queued, and perhaps fetched, would be queued a second
time, or answer 0 as if it had never been there. So:

1. Where no answer came, the job itself is looked at: one that was never queued is tried again, any
   other one is shown.
2. A node that is lost is given some time to come back, because it alone knows what it did.
3. Only then, or where a node does not know a job any more, another holder is asked to queue it. If
   the lost node had queued the job and comes back, the job may be delivered twice, as it may
   whenever a lost node comes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.errors import ClientError, ConnectionLost
from disque_tx.client.values import JobDetails
from disque_tx.spark.errors import WriteRefused
from disque_tx.spark.servers import Servers
from disque_tx.spark.sink.staging import was_never_queued

#: How long a lost node has to come back.
PATIENCE_S: Final = 10.0
_PAUSE_S: Final = 0.5
#: Connections that may be lost in a row, at one node, before it counts as lost itself.
_ATTEMPTS: Final = 5


def show_all(
    servers: Servers,
    jobs: Mapping[Address, Sequence[str]],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Queue all these jobs; ``jobs``: IDs by the node at which they were added.

    :raises WriteRefused: when some of them cannot be; the others are shown.
    """
    failed: dict[str, str] = {}
    for home, ids in jobs.items():
        others = [address for address in servers.addresses if address != home]
        reasons: dict[str, str] = {}
        left = list(ids)
        for node in (home, *others):
            if left:
                found = _Showing(servers, node, sleep).run(left)
                left = list(found)
                for job_id, reason in found.items():
                    reasons.setdefault(job_id, reason)
        failed.update((job_id, reasons[job_id]) for job_id in left)
    if failed:
        total = sum(map(len, jobs.values()))
        raise WriteRefused(
            f"{len(failed)} of {total} staged jobs could not be shown; the others are."
            f" {next(iter(failed.values()))} Those that are still staged are removed or expire."
            " Find out which jobs are missing before writing again."
        )


@attrs.define
class _Showing:
    """Jobs at one node."""

    servers: Servers
    node: Address
    sleep: Callable[[float], None]

    def run(self, ids: Sequence[str]) -> dict[str, str]:
        """Queue the jobs; those that could not be queued here, and why."""
        failed: dict[str, str] = {}
        left = list(ids)
        for _ in range(_ATTEMPTS):
            if not left:
                break
            requested = [requests.enqueue_jobs(job_id) for job_id in left]
            replies = self.servers.ask_once(self.node, requested)
            answers = dict(zip(left, replies, strict=True))
            unclear = [job_id for job_id, answer in answers.items() if _may_be_done(answer)]
            for job_id, answer in answers.items():
                if job_id not in unclear and answer != 1:
                    failed[job_id] = self._reason(job_id, answer)
            left = self._not_queued(unclear, failed)
        for job_id in left:
            failed[job_id] = f"The connection to {self.node} is lost again and again."
        return self._without_shown(failed)

    def _reason(self, job_id: str, answer: int | ClientError) -> str:
        if isinstance(answer, ClientError):
            return str(answer)
        return f"{job_id} is not waiting at {self.node} any more."

    def _not_queued(self, unclear: Sequence[str], failed: dict[str, str]) -> list[str]:
        """Those of these jobs that are to be queued again; ``failed``: takes those of which this
        node cannot be asked."""
        again: list[str] = []
        for job_id, job in self._details(unclear).items():
            if isinstance(job, ClientError):
                failed[job_id] = str(job)
            elif job is not None and was_never_queued(job):
                again.append(job_id)
        return again

    def _details(self, ids: Sequence[str]) -> dict[str, JobDetails | None | ClientError]:
        """What the node knows of these jobs, once it is back."""
        asked = [requests.show(job_id) for job_id in ids]
        waited_s = 0.0
        while True:
            answers = self.servers.ask(self.node, asked)
            is_away = any(isinstance(answer, ConnectionLost) for answer in answers)
            if not is_away or waited_s >= PATIENCE_S:
                return dict(zip(ids, answers, strict=True))
            self.sleep(_PAUSE_S)
            waited_s += _PAUSE_S

    def _without_shown(self, failed: dict[str, str]) -> dict[str, str]:
        """Without those that somebody has queued, or done, in the meantime."""
        answers = self.servers.ask(self.node, [requests.show(job_id) for job_id in failed])
        return {
            job_id: reason
            for (job_id, reason), job in zip(failed.items(), answers, strict=True)
            if not (isinstance(job, JobDetails) and job.state in ("queued", "acked"))
        }


def _may_be_done(answer: object) -> bool:
    """Whether the request may have been executed, without an answer."""
    return isinstance(answer, ConnectionLost) and answer.sent
