"""Whether a node still has something to do, so that a run is not over yet."""

from __future__ import annotations

from disque_tx.core.jobs.job import Job
from disque_tx.core.node import Node
from disque_tx.messages.records import ACTIVE, QUEUED, WAIT_REPL
from disque_tx.sim.stage.stage import Stage


def work_left(run: Stage, node: Node, job: Job) -> bool:
    """Whether something should still happen with the job on that node."""
    if job.state == WAIT_REPL:
        return not _without_place(run, node, job)
    if job.state == ACTIVE and job.retry_s > 0:
        return not letter_without_place(run, job.id, job.repl)
    return job.state == QUEUED


def views_differ(run: Stage) -> bool:
    """Whether the table of some node lists another node than those that run."""
    members = {node.id for _, node in run.nodes()}
    return any(set(node.membership.nodes) - members for _, node in run.nodes())


def waits_for_copies(run: Stage, node: Node) -> bool:
    """Whether the node should still place copies, or learn of some."""
    if node.replication.asynchronous:
        return True
    waits = node.waiters.copies.values()
    return any(not _without_place(run, node, wait.job) for wait in waits)


def _without_place(run: Stage, node: Node, job: Job) -> bool:
    """Whether no client waits for the job's copies, and too few nodes stay in the cluster."""
    wait = node.waiters.copies.get(job.id)
    return wait is not None and wait.client is None and _staying(run) < job.repl


def letter_without_place(run: Stage, job_id: bytes, copies: int) -> bool:
    """Whether some node holds the job back because too few nodes stay in the cluster for the
    ``copies`` of its dead letter."""
    return _staying(run) < copies and any(
        held is not None
        and held.backoff
        and (policy := node.policies.of(held.queue)) is not None
        and 0 < policy.max_deliveries <= held.nacks + held.deliveries
        for _, node in run.nodes()
        for held in [node.jobs.get(job_id)]
    )


def _staying(run: Stage) -> int:
    """How many nodes are not leaving."""
    return sum(not other.membership.leaving for _, other in run.nodes())
