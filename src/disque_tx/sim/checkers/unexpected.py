"""Nothing is delivered that nobody added, and every job arrives as it was added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class NothingUnexpected(Checker):
    """Bodies, queues and IDs are those of an ADDJOB."""

    def judge(self, run: Run) -> list[str]:
        """Deliveries that fit no ADDJOB."""
        breaches: list[str] = []
        for delivery in run.history.delivered:
            added = run.history.added.get(delivery.body)
            name = delivery.job_id.decode("latin-1")
            if added is None:
                breaches.append(f"{name}: delivered with a body nobody added")
            elif added.queue != delivery.queue:
                breaches.append(f"{name}: delivered from another queue than it was added to")
            elif added.job_id and added.job_id != delivery.job_id:
                breaches.append(f"{name}: added as {added.job_id.decode('latin-1')}")
        return breaches
