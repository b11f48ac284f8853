"""When a client is told that its job is accepted, at least REPLICATE nodes have a copy.

Looked at in the moment in which the node lets the answer go: at the end of its turn. A node whose
memory was lost since it was asked to keep a copy had one, and so may one that is down then.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from disque_tx.sim.checkers import Checker

if TYPE_CHECKING:
    from disque_tx.sim.process import Process
    from disque_tx.sim.run import Run


class EnoughCopies(Checker):
    """``seen``: ID of a job for which nobody waits any more → who had a copy then; ``down``: who
    did not run then."""

    def __init__(self) -> None:
        self.seen: dict[bytes, frozenset[bytes]] = {}
        self.down: dict[bytes, frozenset[bytes]] = {}
        self._waiting: dict[bytes, dict[bytes, None]] = {}

    def watch(self, run: Run) -> None:
        """Look at every turn in which the client of a job is answered."""
        for machine in run.machines:
            machine.on_turn.append(partial(self._turn, run))

    def _turn(self, run: Run, process: Process) -> None:
        waiting = process.node.waiters.copies
        before = self._waiting.get(process.ip, {})
        if not before and not waiting:
            return
        for job_id in before:
            if job_id not in waiting:
                self.seen[job_id] = self.holders(run, job_id)
                self.down[job_id] = frozenset(m.ip for m in run.machines if m.process is None)
        self._waiting[process.ip] = dict.fromkeys(waiting)

    @staticmethod
    def holders(run: Run, job_id: bytes) -> frozenset[bytes]:
        """The machines that have a copy now."""
        return frozenset(
            machine.ip
            for machine in run.machines
            if machine.process is not None
            and (job := machine.process.node.jobs.get(job_id)) is not None
            and not job.dummy
        )

    def judge(self, run: Run) -> list[str]:
        """Jobs that were accepted with too few copies."""
        breaches: list[str] = []
        for added in run.history.accepted():
            holders = self.seen.get(added.job_id)
            if added.asynchronous or holders is None or added.job_id in run.early:
                continue
            excused = sum(
                (machine.ip in self.down[added.job_id] and machine.ip not in holders)
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
