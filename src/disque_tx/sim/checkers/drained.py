"""After healing, the cluster drains: every job is delivered, and no queue holds one.

Jobs with RETRY 0 that were delivered and not acknowledged stay until their life ends, and so does a
copy of one that was kept for others: both are no work for anybody.

It also drains through nodes that are leaving and are not called back: whatever they hold is
delivered by the others, whose clients ask for it, so that such a node can be switched off then.
Excused is the record of an ASYNC job that a leaving node accepted for others, when more copies were
wanted than there are nodes that stay: it goes on looking for a place for them, until the job's TTL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.messages import STATE_NAMES
from disque_tx.sim.checker import Checker
from disque_tx.sim.remaining import waits_for_copies, work_left

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class Drained(Checker):
    """What the nodes hold in the end."""

    def judge(self, run: Run) -> list[str]:
        """Jobs that are still there."""
        breaches: list[str] = []
        for machine, node in run.nodes():
            left = [job for job in node.jobs.table.values() if work_left(run, node, job)]
            for job in left[:3]:
                breaches.append(
                    f"{job.id.decode('latin-1')}: still {STATE_NAMES[job.state].decode()} on"
                    f" {machine.ip.decode()} in the end, {len(left)} jobs in all there"
                )
            if waits_for_copies(run, node):
                breaches.append(f"{machine.ip.decode()} still waits for copies in the end")
        return breaches
