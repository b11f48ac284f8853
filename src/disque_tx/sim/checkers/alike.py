"""New copies of a job are like those that there were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.core.jobs.job import Job
from disque_tx.messages.records import ACKED, WAIT_REPL
from disque_tx.sim.stage.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage

_LOOK_US: Final = 1_000_000
#: Each time a job is copied its life becomes shorter, by less than a second.
_LIFE_MS: Final = 6_000
#: A message that takes longer may bring older counters than those of the last look.
_LATE_MS: Final = 500

#: NACKs and other deliveries of a job, as one node counts them.
_Counters = tuple[int, int]


class CopiesAlike(Checker):
    """In runs in which nodes are lost, all copies of a job have the same queue, body, RETRY, DELAY,
    REPLICATE and end of life; and a new copy does not count fewer NACKs and deliveries than all the
    others had counted a second before, unless messages were on their way for that long. The life of
    a job that is on its way stands still."""

    def __init__(self) -> None:
        self._breaches: dict[bytes, str] = {}
        #: By job and by address of its holder, at the last look.
        self._counted: dict[bytes, dict[bytes, _Counters]] = {}

    def watch(self, run: Stage) -> None:
        """Begin."""
        if run.workload.losses:
            run.world.at(_LOOK_US, lambda: self._next(run))

    def _next(self, run: Stage) -> None:
        copies: dict[bytes, list[tuple[Machine, Job]]] = {}
        for machine, node in run.nodes():
            for job in node.jobs.table.values():
                if job.state not in (ACKED, WAIT_REPL) and not job.dummy:
                    copies.setdefault(job.id, []).append((machine, job))
        transit_ms = run.world.longest_transit_us // 1_000
        for job_id, found in copies.items():
            what = _difference(found, transit_ms)
            if not what and transit_ms < _LATE_MS:
                what = self._counted_less(job_id, found)
            if what and job_id not in self._breaches:
                self._breaches[job_id] = (
                    f"{job_id.decode('latin-1')}: {what} at {run.world.now_us / 1e6:.3f} s"
                )
        self._counted = {
            job_id: {machine.ip: (int(job.nacks), int(job.deliveries)) for machine, job in found}
            for job_id, found in copies.items()
        }
        if not run.over:
            run.world.at(_LOOK_US, lambda: self._next(run))

    def _counted_less(self, job_id: bytes, found: list[tuple[Machine, Job]]) -> str:
        before = self._counted.get(job_id)
        if before is None:
            return ""
        nacks = min(counters[0] for counters in before.values())
        deliveries = min(counters[1] for counters in before.values())
        for machine, job in found:
            if machine.ip not in before and (job.nacks < nacks or job.deliveries < deliveries):
                return f"the new copy at {machine.name} counts fewer deliveries than the others"
        return ""

    def judge(self, run: Stage) -> list[str]:
        """Jobs whose copies differed."""
        return list(self._breaches.values())


def _difference(found: list[tuple[Machine, Job]], transit_ms: int) -> str:
    """What differs between these copies of a job, empty for nothing. ``transit_ms``: as long as a
    message was on its way, by which a copy may live longer."""
    if len(found) < 2:
        return ""
    fields = [(j.queue, j.body, j.retry_s, j.delay_s, j.repl, j.ctime) for _, j in found]
    if len(set(fields)) > 1:
        return f"copies differ: {fields[0]}, {next(one for one in fields if one != fields[0])}"
    lives_ms = [int(job.expire_ms) - machine.clocks.steady_ms() for machine, job in found]
    longer_ms = max(lives_ms) - min(lives_ms)
    if longer_ms > _LIFE_MS + transit_ms:
        return f"one copy lives {longer_ms / 1000:.0f} s longer than another"
    return ""
