"""Jobs that are added with keys are added once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.run import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class OneJobPerKey(Checker):
    """Without partitions, and with at most one node down at a time, no key has two jobs.

    In a partition each side may have one: then the counters of the nodes say so. Faults that delay
    or lose messages can look like a partition to the nodes.
    """

    def judge(self, run: Run) -> list[str]:
        """Keys with several jobs."""
        jobs = {key: set(ids) for key, ids in run.history.keys.items()}
        for delivery in run.history.delivered:
            if run.workload.keys:
                jobs.setdefault(delivery.body, set()).add(delivery.job_id)
        doubled = {key: ids for key, ids in jobs.items() if len(ids) > 1}
        faults = {name for _, name, _ in run.plan.history}
        if faults <= {"one_down"}:
            return [
                f"{key.decode()}: {len(ids)} jobs with one key,"
                f" {b' and '.join(sorted(ids)).decode()}"
                for key, ids in doubled.items()
            ]
        if faults != {"partition"}:
            return []
        counted = sum(
            node.totals.keys_dropped + node.totals.keys_doubled for _, node in run.nodes()
        )
        further = sum(len(ids) - 1 for ids in doubled.values())
        if further > counted:
            return [f"{further} jobs have the key of another one, {counted} are counted"]
        return []


class AnsweredExist(Checker):
    """Without partitions, and with at most one node down at a time, every ID that was answered for
    a key belongs to a job, which is delivered.

    Excused is what may be delivered once at the most, was evicted, or may have been lost by as many
    nodes as had copies. In a partition a job that has
    its key later than another one ends, though its ID was answered.
    """

    def judge(self, run: Run) -> list[str]:
        """IDs that were answered and of which no client got a job."""
        faults = {name for _, name, _ in run.plan.history}
        if not faults <= {"one_down"}:
            return []
        delivered = {delivery.job_id for delivery in run.history.delivered}
        return [
            f"{key.decode()}: {job_id.decode()} was answered, never delivered"
            for key, ids in run.history.keys.items()
            for job_id in sorted(ids - delivered)
            if not _lost(run, key)
        ]


def _lost(run: Run, key: bytes) -> bool:
    """Whether nobody promised that the job is delivered."""
    added = run.history.added[key]
    if run.evicts or added.retry_s == 0:
        return True
    broken = sum(run.plan.alive_since(machine.ip) > added.asked_us for machine in run.machines)
    return broken >= added.replicate
