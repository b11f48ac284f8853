"""What should still happen with a job: a run is over when nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.messages import ACTIVE, QUEUED, WAIT_REPL

if TYPE_CHECKING:
    from disque_tx.core.job import Job
    from disque_tx.core.node import Node
    from disque_tx.sim.run import Run


def work_left(run: Run, node: Node, job: Job) -> bool:
    """Whether something should still happen with the job on that node."""
    if job.state == WAIT_REPL:
        return not _without_place(run, node, job)
    return job.state == QUEUED or (job.state == ACTIVE and job.retry_s > 0)


def waits_for_copies(run: Run, node: Node) -> bool:
    """Whether the node should still place copies, or learn of some."""
    if node.replication.asynchronous:
        return True
    waits = node.waiters.copies.values()
    return any(not _without_place(run, node, wait.job) for wait in waits)


def _without_place(run: Run, node: Node, job: Job) -> bool:
    """Whether nobody waits for the job's copies on a leaving node, and too few nodes stay."""
    wait = node.waiters.copies.get(job.id)
    staying = sum(not other.membership.leaving for _, other in run.nodes())
    return (
        node.membership.leaving and wait is not None and wait.client is None and staying < job.repl
    )
