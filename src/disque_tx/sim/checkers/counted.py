"""The count of memory is what jobs and queues cost, and nobody waits whom nobody will serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.core.memory import QUEUE_BYTES, job_bytes
from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class Counted(Checker):
    """What the nodes count in the end, and the clients they still know."""

    def judge(self, run: Run) -> list[str]:
        """Nodes whose books do not fit what they hold."""
        breaches: list[str] = []
        for machine, node in run.nodes():
            stored = sum(job_bytes(job) for job in node.jobs.table.values())
            stored += sum(QUEUE_BYTES + len(queue.name) for queue in node.queues.table.values())
            if node.memory.used != stored:
                breaches.append(
                    f"{machine.ip.decode()} counts {node.memory.used} bytes and holds {stored}"
                )
            jobs = {job.id for job in node.jobs.table.values()}
            for job_id in node.waiters.copies:
                if job_id not in jobs:
                    breaches.append(f"{job_id.decode('latin-1')}: gone, and its client waits")
        return breaches
