"""Every occurrence of a schedule becomes a job: none is lost, none is made up, and without faults
each is delivered once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from disque_tx.core.recurring.occurrences import id_start, occurrence_key
from disque_tx.core.tables.calendar import Calendar
from disque_tx.sim.actors.schedules import REPLICATE
from disque_tx.sim.stage.checker import Checker, WatchingChecker
from disque_tx.sim.stage.history import ScheduleRecord, WatchedSchedule
from disque_tx.sim.world.world import EPOCH_US

if TYPE_CHECKING:
    from disque_tx.sim.stage.stage import Stage


def _times(watched: WatchedSchedule, until_s: int) -> list[int]:
    """The times of all occurrences of a definition until then."""
    times: list[int] = []
    calendar, recurrence = Calendar(), watched.definition.recurrence
    time_s = int(recurrence.after(calendar, watched.definition.start_s))
    while time_s <= until_s:
        times.append(time_s)
        time_s = int(recurrence.after(calendar, time_s))
    return times


def _id_start(watched: WatchedSchedule, time_s: int) -> bytes:
    return id_start(occurrence_key(watched.name, time_s), watched.definition.node)


class OccurrencesKept(Checker):
    """What the nodes know as made was delivered, unless more nodes lost their memory since it was
    due than there were copies; or a clock was set, for what is missed for too long is left out; or
    another definition was in force at the same time, which came back from a disk, or was not known
    to be replaced everywhere."""

    def judge(self, run: Stage) -> list[str]:
        """Occurrences that were never delivered."""
        record = run.history.schedules
        if not record.used or any(machine.clocks.shifts_us for machine in run.machines):
            return []
        if not record.ended:
            return ["the schedules could not be deleted"]
        taken = {job_id[:35] for job_id in record.taken}
        return [
            f"{watched.name.decode()}: the occurrence at {time_s} was never delivered"
            for watched in record.watched.values()
            for time_s in _times(watched, watched.last_s)
            if _id_start(watched, time_s) not in taken
            and not self._lost(run, time_s)
            and not self._replaced(record, watched, time_s)
        ]

    @staticmethod
    def _lost(run: Stage, time_s: int) -> bool:
        """Whether all nodes that had a copy may have lost their memory since it was made, which is
        not before it was due."""
        asked_us = (time_s - 1) * 1_000_000 - EPOCH_US
        broken = sum(run.plan.alive_since(machine.ip) > asked_us for machine in run.machines)
        return broken >= min(REPLICATE, len(run.machines))

    @staticmethod
    def _replaced(record: ScheduleRecord, watched: WatchedSchedule, time_s: int) -> bool:
        """Whether another definition was in force before the occurrence was known as made: it came
        into force meanwhile, or made what was due then or later, because a node did not know yet,
        or no more, that it had been replaced."""
        known_us = min(known_us for last_s, known_us in watched.known_us if last_s >= time_s)
        first_us = watched.known_us[0][1]
        return any(
            other.known_us[0][1] < known_us
            and (first_us < other.known_us[0][1] or other.last_s >= time_s)
            for other in record.watched.values()
            if other is not watched and other.name == watched.name and other.known_us
        )


#: How long a schedule may make nothing while nodes find out whose clock is wrong.
_STILL_US: Final = 10_000_000


class SchedulesGoOn(Checker):
    """One clock that is set wrong, and put right again, stops no schedule of three nodes or more:
    what is in force for longer than it takes to find that out makes jobs."""

    def judge(self, run: Stage) -> list[str]:
        """Schedules that stood still."""
        record = run.history.schedules
        able = all(run.shape.has_own(number) for number in range(len(run.machines)))
        if not record.used or not able or {n for _, n, _ in run.plan.history} != {"one_clock"}:
            return []
        return [
            f"{watched.name.decode()}: in force at {watched.force_us / 1e6:.3f} s, made nothing"
            f" since {made_us / 1e6:.3f} s"
            for watched in record.watched.values()
            if watched.known_us
            and watched.force_us - (made_us := watched.known_us[-1][1]) > _STILL_US
        ]


_LOOK_US: Final = 100_000
#: How long it takes until all nodes know that one leaves, or stays, and until all that take
#: themselves for the first one have made an occurrence.
_KNOWN_US: Final = 2_000_000
_MADE_US: Final = 1_000_000


class OccurrencesOnce(WatchingChecker):
    """No job is made at a time at which none is due. In a run without faults every occurrence is
    delivered once, or once for each definition that has it, if one takes the place of another one,
    which the repair of a table does not do; and none is made late, unless too many nodes were
    leaving to make its copies. Excused is one that was due when some nodes did not know yet that
    another one leaves, or stays: two may make it."""

    period_us = _LOOK_US

    def __init__(self) -> None:
        self._leaving: list[bytes] = []
        self.changed_us: list[int] = []

    def concerns(self, run: Stage) -> bool:
        """Nodes may leave in any run."""
        return True

    def look(self, run: Stage) -> None:
        """See which nodes leave."""
        leaving = [machine.ip for machine, node in run.nodes() if node.membership.leaving]
        if leaving != self._leaving:
            self._leaving = leaving
            self.changed_us.append(run.world.now_us)

    def _in_change(self, watched: WatchedSchedule, time_s: int) -> bool:
        """Whether the occurrence may have been made when not all nodes knew who leaves."""
        due_us = time_s * 1_000_000 - EPOCH_US
        made_us = next((at_us for last_s, at_us in watched.known_us if last_s >= time_s), due_us)
        return any(
            due_us - _KNOWN_US < at_us < max(made_us, due_us) + _MADE_US
            for at_us in self.changed_us
        )

    def judge(self, run: Stage) -> list[str]:
        """Jobs that are too many, or that came too late."""
        record = run.history.schedules
        if not record.used:
            return []
        due: Counter[bytes] = Counter()
        excused: set[bytes] = set()
        for watched in record.watched.values():
            for time_s in _times(watched, max(watched.last_s, watched.definition.start_s) + 60):
                job_id = _id_start(watched, time_s)
                due[job_id] = max(due[job_id], 1) if watched.repaired else due[job_id] + 1
                if self._in_change(watched, time_s):
                    excused.add(job_id)
        breaches = [
            f"{job_id.decode()} belongs to no occurrence"
            for job_id in record.taken
            if job_id[:35] not in due and not run.plan.history
        ]
        if run.plan.history or run.lost or run.evicts:
            return breaches
        for job_id, times in record.taken.items():
            if times > max(1, due[job_id[:35]]) and job_id[:35] not in excused:
                breaches.append(f"{job_id.decode()}: delivered {times} times without any fault")
        return breaches + self._late(record)

    @staticmethod
    def _late(record: ScheduleRecord) -> list[str]:
        """Occurrences that the nodes knew of late: true time and their clocks differ by less."""
        breaches: list[str] = []
        for watched in record.watched.values():
            for (first_s, first_us), (last_s, last_us) in zip(
                watched.known_us, watched.known_us[1:], strict=False
            ):
                late_us = last_us - first_us - (last_s - first_s) * 1_000_000
                short = any(first_us <= at_us <= last_us for at_us in record.short_us)
                if late_us > 3_000_000 and not short:
                    breaches.append(f"{watched.name.decode()}: {last_s} came {late_us} us late")
        return breaches
