"""INFO's totals are what they say (:class:`disque_tx.core.totals.Totals`).

What is promised: at the end of every turn ``queued`` is the number of jobs in queues, and of jobs
in the state queued, and ``in_hand`` that of jobs in clients' hands, under any fault; looked at
every second of the run and in the end. In a run without faults, in which every request was
answered, the nodes together count as ``delivered`` and ``nacked`` what clients saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.messages import QUEUED
from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run

_EVERY_US: Final = 1_000_000


class TotalsFit(Checker):
    """What nodes count, against what they hold and what clients saw."""

    def __init__(self) -> None:
        self._breaches: list[str] = []

    def watch(self, run: Run) -> None:
        """Look again and again while clients act."""
        run.world.at(_EVERY_US, lambda: self._look(run))

    def _look(self, run: Run) -> None:
        for machine, node in run.nodes():
            totals = node.totals
            jobs = list(node.jobs.table.values())
            lengths = sum(queue.jobs.size for queue in node.queues.table.values())
            queued = sum(job.state == QUEUED for job in jobs)
            in_hand = sum(job.in_hand for job in jobs)
            if not totals.queued == lengths == queued or totals.in_hand != in_hand:
                self._breaches.append(
                    f"{machine.ip.decode()} at {run.world.now_us / 1e6:.3f} s counts"
                    f" {totals.queued} queued and {totals.in_hand} in hand; its queues hold"
                    f" {lengths}, {queued} jobs are queued and {in_hand} in hand"
                )
        if run.busy:
            run.world.at(_EVERY_US, lambda: self._look(run))

    def judge(self, run: Run) -> list[str]:
        """Nodes that count wrong."""
        self._look(run)
        breaches = list(self._breaches)
        if run.plan.history or run.lost:
            return breaches
        history = run.history
        nacks = sum(deed.reply for deed in history.deeds if deed.word == b"NACK")
        for name, seen in (("delivered", len(history.delivered)), ("nacked", nacks)):
            counted = sum(int(getattr(node.totals, name)) for _, node in run.nodes())
            if counted != seen:
                breaches.append(f"the nodes count {counted} {name}, clients saw {seen}")
        return breaches
