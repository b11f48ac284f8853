"""What nodes hold: their log equals memory, and in the end no work and no acknowledgement is
left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.messages import ACKED, ACTIVE, QUEUED, STATE_NAMES
from disque_tx.sim.run import Checker, waits_for_copies, work_left

if TYPE_CHECKING:
    from disque_tx.sim.machine import Machine
    from disque_tx.sim.run import Run

_EVERY_US: Final = 5_000_000


class LogEqualsMemory(Checker):
    """The log holds what is in memory: the jobs that can still be delivered, and no others."""

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


class Drained(Checker):
    """After healing, the cluster drains: every job is delivered, and no queue holds one.

    Jobs with RETRY 0 that were delivered and not acknowledged stay until their life ends, and so
    does a copy of one that was kept for others: both are no work for anybody.

    It also drains through nodes that are leaving and are not called back: whatever they hold is
    delivered by the others, whose clients ask for it, so that such a node can be switched off then.
    Excused is the record of an ASYNC job that a leaving node accepted for others, when more copies
    were wanted than there are nodes that stay: it goes on looking for a place for them, until the
    job's TTL.
    """

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


class AcksCollected(Checker):
    """After healing, acknowledgements are collected: no node keeps a job that all have finished."""

    def judge(self, run: Run) -> list[str]:
        """Nodes that still wait for another node to receive an acknowledgement."""
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
