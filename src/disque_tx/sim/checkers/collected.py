"""After healing, acknowledgements are collected: nobody remembers a job that all are done with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.messages import ACKED
from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class Collected(Checker):
    """Acknowledged jobs in the end, dummy acknowledgements among them."""

    def judge(self, run: Run) -> list[str]:
        """Nodes that still wait for somebody to hear of an acknowledgement."""
        breaches: list[str] = []
        for machine, node in run.nodes():
            left = [job for job in node.jobs.table.values() if job.state == ACKED]
            for job in left[:3]:
                kind = "dummy acknowledgement" if job.dummy else "acknowledged job"
                breaches.append(
                    f"{job.id.decode('latin-1')}: {kind} still on {machine.ip.decode()} in the end,"
                    f" after {job.gc_retry} attempts, {len(left)} in all there"
                )
            if node.jobs.acked != len(left):
                breaches.append(f"{machine.ip.decode()} counts {node.jobs.acked} acknowledged jobs")
        return breaches
