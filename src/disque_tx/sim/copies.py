"""Who has a copy of a job in the moment in which a node answers its client."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disque_tx.sim.process import Process
    from disque_tx.sim.run import Run


class Copies:
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
