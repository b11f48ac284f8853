"""Copies that were lost with their nodes are made again, and bring no job back that is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.sim.machines.copies import (
    hosts_of_jobs,
    jobs_believed_of_originals,
    jobs_held_by_ours,
    jobs_lacking_copies,
)
from disque_tx.sim.stage.checker import Checker, WatchingChecker

if TYPE_CHECKING:
    from disque_tx.sim.stage.stage import Stage

_LOOK_US: Final = 1_000_000
#: Jobs are looked through every ten seconds while some lack copies, and a holder that makes none is
#: followed by the next one after ten seconds.
_LACKING_US: Final = 30_000_000
#: After that time an acknowledgement is everywhere, and before that no fault.
_SPREAD_US: Final = 3_000_000
#: Copies that are made for each that was lost, and besides: nodes that confirm late are replaced.
_MADE_PER_LOST: Final = 1.1
_MADE_MORE: Final = 5


class _EachSecond(WatchingChecker):
    """Looks in runs in which nodes are lost, and it is defined who makes copies then: nodes of
    ours, if there are no others or others as originals are."""

    period_us = _LOOK_US

    def concerns(self, run: Stage) -> bool:
        return run.workload.losses and (run.shape.bulk == "all" or run.workload.mixed)


class CopiesMadeAgain(_EachSecond):
    """While no node is lost or comes back, no job lacks copies for long.

    Excused are jobs that were never acknowledged to their producer: they were withdrawn, perhaps
    not at all nodes that had a copy; and beside originals, which make no copies, the jobs that only
    these have, and those that ours believe they have.
    """

    def __init__(self) -> None:
        self._since: dict[bytes, int] = {}
        self._breaches: dict[bytes, str] = {}
        self._faults = 0

    def look(self, run: Stage) -> None:
        now_us = run.world.now_us
        if not run.plan.all_up() or len(run.plan.history) != self._faults:
            self._faults = len(run.plan.history)
            self._since.clear()
        found = jobs_lacking_copies(run.machines)
        if run.workload.mixed:
            found &= jobs_held_by_ours(run.machines)
            found -= jobs_believed_of_originals(run.machines)
        lacking = {job_id for job_id in found if not _withdrawn(run, job_id)}
        for job_id in list(self._since):
            if job_id not in lacking:
                del self._since[job_id]
        for job_id in sorted(lacking):
            since_us = self._since.setdefault(job_id, now_us)
            if now_us - since_us > _LACKING_US and job_id not in self._breaches:
                self._breaches[job_id] = (
                    f"{job_id.decode('latin-1')}: lacks copies since {since_us / 1e6:.3f} s"
                )

    def judge(self, run: Stage) -> list[str]:
        """Jobs that lacked copies for too long."""
        return list(self._breaches.values())


def _withdrawn(run: Stage, job_id: bytes) -> bool:
    """Whether the producer of the job was not told that it was accepted."""
    for _, node in run.nodes():
        job = node.jobs.get(job_id)
        if job is not None:
            added = run.history.added.get(job.body)
            return added is not None and added.accepted_us < 0
    return False


class SpreadAgain(_EachSecond):
    """While no host is lost or comes back, the copies of a job are not all on one host for long, if
    they were on several before."""

    def __init__(self) -> None:
        self._several: set[bytes] = set()
        self._since: dict[bytes, int] = {}
        self._breaches: dict[bytes, str] = {}
        self._faults = 0

    def look(self, run: Stage) -> None:
        if not run.plan.daemons:
            return
        now_us = run.world.now_us
        if not run.plan.all_up() or len(run.plan.history) != self._faults:
            self._faults = len(run.plan.history)
            self._since.clear()
        hosts = hosts_of_jobs(run.machines)
        alone = {job_id for job_id, places in hosts.items() if len(places) == 1} & self._several
        self._several |= {job_id for job_id, places in hosts.items() if len(places) > 1}
        for job_id in list(self._since):
            if job_id not in alone:
                del self._since[job_id]
        for job_id in sorted(alone):
            since_us = self._since.setdefault(job_id, now_us)
            if now_us - since_us > _LACKING_US and not _withdrawn(run, job_id):
                self._breaches[job_id] = (
                    f"{job_id.decode('latin-1')}: on one host only since {since_us / 1e6:.3f} s"
                )

    def judge(self, run: Stage) -> list[str]:
        """Jobs that stayed on one host."""
        return list(self._breaches.values())


class NoneMadeTwice(Checker):
    """When nothing but losses happens, no more copies are made again than were lost, but for a few:
    of several nodes that could make a copy one does, and the others wait."""

    def judge(self, run: Stage) -> list[str]:
        """A run in which copies were made twice."""
        if not run.plan.copies_lost or {name for _, name, _ in run.plan.history} != {"one_lost"}:
            return []
        made = sum(int(node.totals.copies_made) for _, node in run.nodes())
        allowed = int(run.plan.copies_lost * _MADE_PER_LOST) + _MADE_MORE
        if made <= allowed:
            return []
        return [f"{made} copies made again where {run.plan.copies_lost} were lost"]


class EmptiedNodes(Checker):
    """A node that has given its jobs away holds none; without other faults it manages that in
    time."""

    def judge(self, run: Stage) -> list[str]:
        """Nodes that held jobs."""
        late = (
            []
            if {name for _, name, _ in run.plan.history} - {"evacuated"}
            else run.plan.not_emptied
        )
        return [*(f"{one} was held by an empty node" for one in run.plan.held_when_empty), *late]


class EndedStaysEnded(_EachSecond):
    """A job that was acknowledged while all nodes were up and no fault was under way, some time
    before and after, is not delivered any more, although new copies are made of jobs."""

    def __init__(self) -> None:
        #: The seconds in which that was so.
        self._calm: set[int] = set()

    def look(self, run: Stage) -> None:
        if run.plan.all_up() and run.plan.is_quiet:
            self._calm.add(run.world.now_us // _LOOK_US)

    def judge(self, run: Stage) -> list[str]:
        """Deliveries of jobs that were done."""
        if not self._calm:
            return []
        acked = run.history.asked(b"ACKJOB")
        return [
            f"{delivery.job_id.decode('latin-1')}: acknowledged at {request.node.decode()} at"
            f" {request.answered_us / 1e6:.3f} s, delivered by {delivery.node.decode()} at"
            f" {delivery.sent_us / 1e6:.3f} s"
            for delivery in run.history.delivered
            for request in acked.get(delivery.job_id, ())
            if request.reply == 1
            and request.answered_us + _SPREAD_US < delivery.sent_us
            and self._was_calm(request.answered_us)
        ]

    def _was_calm(self, at_us: int) -> bool:
        first, last = at_us // _LOOK_US - 1, (at_us + _SPREAD_US) // _LOOK_US + 1
        return all(second in self._calm for second in range(first, last + 1))
