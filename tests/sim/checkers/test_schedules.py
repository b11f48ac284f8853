"""Jobs that schedules make."""

from __future__ import annotations

from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.recurring.occurrences import id_start, occurrence_key
from disque_tx.core.tables.definition import Definition
from disque_tx.core.tables.table import REPAIRED
from disque_tx.sim.checkers.tables.schedules import (
    OccurrencesKept,
    OccurrencesOnce,
    SchedulesGoOn,
)
from disque_tx.sim.stage.history import WatchedSchedule
from disque_tx.sim.world.world import EPOCH_US
from tests.sim.checkers.bench import CheckerCase, S

_NAME = b"one"
_ORIGIN = b"a" * 40
#: When the schedule was set; it is due every second from then on.
_START_S = EPOCH_US // S


class ScheduleCase(CheckerCase):
    """The nodes know of three occurrences, each half a second after its time."""

    def setUp(self) -> None:
        super().setUp()
        self.record = self.history.schedules
        self.record.used = True
        definition = Definition(b"EVERY 1", b"", b"all", AddRequest(b"q", b""), _START_S)
        definition.node = _ORIGIN
        self.watched = WatchedSchedule(_NAME, definition)
        self.watched.last_s = _START_S + 3
        self.watched.known_us = [(_START_S + n, n * S + S // 2) for n in (1, 2, 3)]
        self.record.watched[_NAME, 0, 1, _ORIGIN, _START_S] = self.watched

    def take(self, *seconds: int) -> None:
        """Clients get the jobs of these occurrences."""
        for second in seconds:
            job_id = id_start(occurrence_key(_NAME, _START_S + second), _ORIGIN) + b"-05a1"
            self.record.taken[job_id] = self.record.taken.get(job_id, 0) + 1


class KeptTests(ScheduleCase):
    """No occurrence is lost."""

    def test_missing(self) -> None:
        """Each occurrence without a job breaks the promise, up to the last one that nodes know."""
        self.take(1)
        self.assertEqual(2, self.found(OccurrencesKept()))
        self.take(2, 3)
        self.assertEqual(0, self.found(OccurrencesKept()))

    def test_not_deleted(self) -> None:
        """Schedules that cannot be deleted break it, too."""
        self.take(1, 2, 3)
        self.record.ended = False
        self.assertEqual(1, self.found(OccurrencesKept()))

    def test_lost(self) -> None:
        """A job may be lost with its copies, not with one of them; one that was made afterwards may
        not."""
        self.take(2)
        first, second = self.run_.machines[:2]
        first._since_us = 2 * S
        self.assertEqual(2, self.found(OccurrencesKept()))
        second._since_us = 2 * S
        self.assertEqual(1, self.found(OccurrencesKept()))

    def test_seen_late(self) -> None:
        """A job may have been made, and lost, before a node was seen to know of it."""
        self.watched.known_us = [(_START_S + 1, S), (_START_S + 3, 9 * S)]
        for machine in self.run_.machines:
            machine._since_us = 5 * S
        self.assertEqual(0, self.found(OccurrencesKept()))

    def test_replaced(self) -> None:
        """A definition that was replaced and came back is not missed meanwhile."""
        self.watched.known_us = [(_START_S + 1, S), (_START_S + 3, 9 * S)]
        other = WatchedSchedule(_NAME, self.watched.definition)
        other.known_us = [(_START_S + 2, 2 * S)]
        self.record.watched[_NAME, 0, 2, _ORIGIN, _START_S] = other
        self.assertEqual(1, self.found(OccurrencesKept()))

    def test_not_known_to_be_replaced(self) -> None:
        """What another definition makes where it is not known to be replaced is not missed; one
        that had ended before excuses nothing."""
        rare = Definition(b"EVERY 900", b"", b"all", AddRequest(b"q", b""), _START_S)
        other = WatchedSchedule(_NAME, rare)
        other.last_s, other.known_us = _START_S, [(_START_S, 0)]
        self.record.watched[_NAME, 0, 0, _ORIGIN, _START_S] = other
        self.assertEqual(3, self.found(OccurrencesKept()))
        other.last_s = _START_S + 3
        self.assertEqual(0, self.found(OccurrencesKept()))

    def test_clock(self) -> None:
        """Nothing is promised when a clock was set."""
        self.run_.machines[0].clocks.shifts_us.add(S)
        self.assertEqual(0, self.found(OccurrencesKept()))

    def test_no_schedules(self) -> None:
        """A run without schedules promises nothing about them."""
        self.record.used = False
        self.assertEqual(0, self.found(OccurrencesKept()))
        self.assertEqual(0, self.found(OccurrencesOnce()))


class OnceTests(ScheduleCase):
    """No job is made up, and none twice."""

    def test_twice(self) -> None:
        """Without a fault, no job is delivered again."""
        self.take(1, 2, 3)
        self.assertEqual(0, self.found(OccurrencesOnce()))
        self.take(2)
        self.assertEqual(1, self.found(OccurrencesOnce()))
        self.fault("kill")
        self.assertEqual(0, self.found(OccurrencesOnce()))

    def test_leaving(self) -> None:
        """When a node has just begun to leave, or not to, two may take themselves for the first
        one."""
        self.take(1, 2, 2, 3)
        for changed_s, found in ((0.5, 0), (2.5, 0), (-0.5, 1), (4, 1)):
            checker = OccurrencesOnce()
            checker.changed_us = [int(changed_s * S)]
            self.assertEqual(found, self.found(checker), changed_s)

    def test_two_definitions(self) -> None:
        """An occurrence that two definitions have, of which one takes the place of the other, may
        be made by both."""
        other = WatchedSchedule(_NAME, self.watched.definition)
        other.last_s, other.known_us = _START_S + 1, [(_START_S + 1, S)]
        self.record.watched[_NAME, 0, 2, _ORIGIN, _START_S] = other
        self.take(1, 1, 2, 3)
        self.assertEqual(0, self.found(OccurrencesOnce()))
        self.take(1)
        self.assertEqual(1, self.found(OccurrencesOnce()))

    def test_repaired(self) -> None:
        """What a repair makes of a definition is the same one: an occurrence is made once."""
        definition = Definition(b"EVERY 1", b"", b"all", AddRequest(b"q", b""), _START_S)
        definition.node, definition.counter = _ORIGIN, REPAIRED
        other = WatchedSchedule(_NAME, definition, 1)
        other.last_s, other.known_us = _START_S + 5, [(_START_S + 5, 6 * S)]
        self.record.watched[_NAME, 1, 1, _ORIGIN, _START_S] = other
        self.take(1, 2, 3, 4, 5)
        self.assertEqual(0, self.found(OccurrencesOnce()))
        self.take(1)
        self.assertEqual(1, self.found(OccurrencesOnce()))

    def test_lost_answer(self) -> None:
        """A job is delivered again if a client did not get it, or its acknowledgement was
        dropped."""
        self.take(2, 2)
        self.run_.lost = 1
        self.assertEqual(0, self.found(OccurrencesOnce()))

    def test_made_up(self) -> None:
        """A job at a time at which none is due breaks the promise."""
        self.take(0)
        self.assertEqual(1, self.found(OccurrencesOnce()))

    def test_late(self) -> None:
        """Without a fault, so does one that came some seconds late."""
        last_s, known_us = self.watched.known_us[-1]
        self.watched.known_us[-1] = (last_s, known_us + 3 * S)
        self.assertEqual(0, self.found(OccurrencesOnce()))
        self.watched.known_us[-1] = (last_s, known_us + 3 * S + 1)
        self.assertEqual(1, self.found(OccurrencesOnce()))
        self.record.short_us = [known_us]
        self.assertEqual(0, self.found(OccurrencesOnce()))
        self.record.short_us = []
        self.fault("stall")
        self.assertEqual(0, self.found(OccurrencesOnce()))


class GoOnTests(ScheduleCase):
    """One clock is wrong for a while."""

    def setUp(self) -> None:
        super().setUp()
        self.run_.shape.bulk = "all"
        self.fault("one_clock")

    def test_stands_still(self) -> None:
        """A schedule that is in force and makes nothing for long breaks the promise."""
        self.watched.force_us = 4 * S
        self.assertEqual(0, self.found(SchedulesGoOn()))
        self.watched.force_us = 60 * S
        self.assertEqual(1, self.found(SchedulesGoOn()))

    def test_excuses(self) -> None:
        """Other faults may stop schedules, and so may nodes that have none."""
        self.watched.force_us = 60 * S
        self.run_.shape.bulk = "some"
        self.assertEqual(0, self.found(SchedulesGoOn()))
        self.run_.shape.bulk = "all"
        self.fault("partition")
        self.assertEqual(0, self.found(SchedulesGoOn()))
