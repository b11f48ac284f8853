"""No two jobs have the same ID."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class UniqueIds(Checker):
    """Every ID belongs to one body."""

    def judge(self, run: Run) -> list[str]:
        """IDs that were given twice."""
        bodies: dict[bytes, bytes] = {}
        breaches: list[str] = []
        pairs = [(added.job_id, added.body) for added in run.history.accepted()]
        pairs += [(delivery.job_id, delivery.body) for delivery in run.history.delivered]
        for job_id, body in pairs:
            if bodies.setdefault(job_id, body) != body:
                breaches.append(f"{job_id.decode('latin-1')}: the ID of two jobs")
        return breaches
