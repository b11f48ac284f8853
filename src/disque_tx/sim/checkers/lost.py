"""Nothing accepted is lost, as long as one of the nodes that had a copy lived.

A job with RETRY 0 is at most once: it may be lost by a fault, and is judged only in runs without.
On disk stands the time of day at which a job ends: who restarts with a clock that was set to a time
after that drops it, and cannot know better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.history import Added
    from disque_tx.sim.machine import Machine
    from disque_tx.sim.run import Run


class NothingLost(Checker):
    """Every accepted job was delivered, or its life ended, or all its copies died."""

    def judge(self, run: Run) -> list[str]:
        """Jobs that nobody ever got."""
        delivered = run.history.by_body()
        return [
            f"{added.job_id.decode()}: accepted at {added.accepted_us / 1e6:.3f} s by"
            f" {added.node.decode()}, never delivered; copies at"
            f" {b' '.join(sorted(added.holders)).decode() or 'no node'}"
            for added in run.history.accepted()
            if added.body not in delivered and not self._excused(run, added)
        ]

    def _excused(self, run: Run, added: Added) -> bool:
        if added.accepted_us + (added.ttl_s + 1) * 1_000_000 < run.world.now_us:
            return True
        if added.retry_s == 0:
            return bool(run.plan.history) or run.evicts
        if added.outside and added.asynchronous:
            return bool(run.plan.history)  # no copy is known of
        return not any(
            run.plan.alive_since(machine.ip) <= added.asked_us and not _fooled(run, added, machine)
            for machine in run.machines
            if machine.ip in added.holders
        )


def _fooled(run: Run, added: Added, machine: Machine) -> bool:
    """Whether the life of the job was ever over by the wall clock of the machine."""
    left_us = added.asked_us + added.ttl_s * 1_000_000 - run.world.now_us
    return run.shape.appendonly and max(machine.clocks.shifts_us, default=0) >= left_us
