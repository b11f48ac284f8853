"""No job is delivered before its DELAY is over, and none after its TTL.

Clocks may drift by 500 ppm. A message tells how long a job still lives, so a copy may live longer
by the time that its message was on the way, and by up to a second, for every hop it made. On disk
stands the time of day at which it ends: who restarts with a wrong clock cannot know better. DELAY
begins anew then, unless the life of the job, by that clock, would end first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.history import Added
    from disque_tx.sim.run import Run

_DRIFT: Final = 0.001
_HOP_S: Final = 1.0
#: A copy is sent to a node, given to another, and given back at the most.
_HOPS_MAX: Final = 4


class InTime(Checker):
    """Deliveries lie between DELAY and TTL of their job."""

    def judge(self, run: Run) -> list[str]:
        """Deliveries outside of their job's time."""
        breaches: list[str] = []
        names = {name for _, name, _ in run.plan.history}
        fooled = run.shape.appendonly and "clock_step" in names
        hops_s = _HOPS_MAX * (_HOP_S + run.world.longest_transit_us / 1e6)
        for delivery in run.history.delivered:
            added = run.history.added.get(delivery.body)
            if added is None:
                continue
            name = delivery.job_id.decode("latin-1")
            age_s = (delivery.at_us - added.asked_us) / 1e6
            early = age_s < added.delay_s * (1 - _DRIFT) - 0.001
            if early and not _nearly_over(run, added, age_s):
                breaches.append(f"{name}: DELAY {added.delay_s}, delivered after {age_s:.3f} s")
            made_us = added.accepted_us if added.accepted_us >= 0 else delivery.at_us
            lived_s = (delivery.sent_us - made_us) / 1e6
            if not fooled and lived_s > added.ttl_s * (1 + _DRIFT) + hops_s:
                breaches.append(f"{name}: TTL {added.ttl_s}, delivered after {lived_s:.3f} s")
        return breaches


def _nearly_over(run: Run, added: Added, age_s: float) -> bool:
    """Whether some clock was set so that DELAY had no room any more before the end of the job."""
    if not run.shape.appendonly:
        return False
    left_s = added.ttl_s - age_s
    room_s = 2 * added.delay_s + _HOP_S
    return any(
        -_HOP_S <= left_s - shift_us / 1e6 <= room_s
        for machine in run.machines
        for shift_us in machine.clocks.shifts_us
    )
