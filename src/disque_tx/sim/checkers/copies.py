"""When a client is told that its job is accepted, at least REPLICATE nodes have a copy.

Looked at in the moment in which the node lets the answer go: at the end of its turn. A node whose
memory was lost since it was asked to keep a copy had one, and so may one that is down then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class EnoughCopies(Checker):
    """Looks at :class:`disque_tx.sim.copies.Copies` in the end."""

    def judge(self, run: Run) -> list[str]:
        """Jobs that were accepted with too few copies."""
        breaches: list[str] = []
        for added in run.history.accepted():
            holders = run.copies.seen.get(added.job_id)
            if added.asynchronous or holders is None or added.job_id in run.early:
                continue
            excused = sum(
                (machine.ip in run.copies.down[added.job_id] and machine.ip not in holders)
                # It may have come back as another node, and keep a copy again.
                or run.plan.alive_since(machine.ip) > added.asked_us
                for machine in run.machines
            )
            if len(holders) + excused < added.replicate:
                breaches.append(
                    f"{added.job_id.decode()}: accepted with {len(holders)} copies of"
                    f" {added.replicate}"
                )
        return breaches
