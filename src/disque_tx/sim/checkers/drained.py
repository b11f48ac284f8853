"""After healing, the cluster drains: every job is delivered, and no queue holds one.

Jobs with RETRY 0 that were delivered and not acknowledged stay until their life ends, and so does a
copy of one that was kept for others: both are no work for anybody.

It also drains through nodes that are leaving and are not called back: whatever they hold is
delivered by the others, whose clients ask for it, so that such a node can be switched off then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.messages import ACTIVE, QUEUED, STATE_NAMES, WAIT_REPL
from disque_tx.sim.checkers import Checker

if TYPE_CHECKING:
    from disque_tx.core.job import Job
    from disque_tx.sim.run import Run


class Drained(Checker):
    """What the nodes hold in the end."""

    def judge(self, run: Run) -> list[str]:
        """Jobs that are still there."""
        breaches: list[str] = []
        for machine, node in run.nodes():
            left = [job for job in node.jobs.table.values() if work_left(job)]
            for job in left[:3]:
                breaches.append(
                    f"{job.id.decode('latin-1')}: still {STATE_NAMES[job.state].decode()} on"
                    f" {machine.ip.decode()} in the end, {len(left)} jobs in all there"
                )
            if node.waiters.copies or node.replication.asynchronous:
                breaches.append(f"{machine.ip.decode()} still waits for copies in the end")
        return breaches


def work_left(job: Job) -> bool:
    """Whether something should still happen with the job."""
    if job.state in (QUEUED, WAIT_REPL):
        return True
    return job.state == ACTIVE and job.retry_s > 0
