"""What the log holds is what is in memory: the jobs that can still be delivered, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.messages import ACTIVE, QUEUED
from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.machine import Machine
    from disque_tx.sim.run import Run

_EVERY_US: Final = 5_000_000


class LogEqualsMemory(Checker):
    """Looks every few seconds, and at the end, at nodes whose disk is fine."""

    def __init__(self) -> None:
        self._breaches: list[str] = []

    def watch(self, run: Run) -> None:
        """Look again and again."""
        run.world.at(_EVERY_US, lambda: self._look(run))

    def _look(self, run: Run) -> None:
        for machine in run.machines:
            self._compare(run, machine)
        if not run.over:
            run.world.at(_EVERY_US, lambda: self._look(run))

    def _compare(self, run: Run, machine: Machine) -> None:
        process = machine.process
        if process is None or not process.logs:
            return
        logged = process.replayed()
        alive = {
            job.id: job for job in process.node.jobs.table.values() if job.state in (ACTIVE, QUEUED)
        }
        for job_id in process.expired - alive.keys():
            logged.pop(job_id, None)
        where = f"{machine.ip.decode()} at {run.world.now_us / 1e6:.3f} s"
        for job_id in [*logged.keys() - alive.keys()][:3]:
            self._breaches.append(f"{job_id.decode('latin-1')}: in the log only, {where}")
        for job_id in [*alive.keys() - logged.keys()][:3]:
            self._breaches.append(f"{job_id.decode('latin-1')}: in memory only, {where}")
        for job_id in alive.keys() & logged.keys():
            job, record = alive[job_id], logged[job_id]
            if (job.queue, job.body, job.retry_s) != (record.queue, record.body, record.retry_s):
                self._breaches.append(f"{job_id.decode('latin-1')}: differs in the log, {where}")

    def judge(self, run: Run) -> list[str]:
        """What differed, the first few of each look."""
        for machine in run.machines:
            self._compare(run, machine)
        return self._breaches[:10]
