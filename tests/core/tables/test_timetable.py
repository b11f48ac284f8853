"""The table of schedules: what may be changed, and what is in force."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.tables.definition import (
    BODY_BYTES_MAX,
    DEFINITION,
    LAST,
    NAME_BYTES_MAX,
    SKIP,
    SKIPPED,
    Definition,
    read,
)
from disque_tx.core.tables.timetable import Timetable
from disque_tx.errors import CommandError
from disque_tx.messages.tables import Register
from tests.core.bench import ME, UNIX_S
from tests.core.peerbench import B


def definition(body: bytes = b"body", start_s: int = UNIX_S, **options: int) -> Definition:
    """A schedule of every day, with a job in queue ``q``."""
    request = AddRequest(b"q", body)
    for name, value in options.items():
        setattr(request, name, value)
    return Definition(b"@daily", b"Europe/Berlin", SKIP, request, start_s)


class TimetableCase(SynchronousTestCase):
    """An empty table."""

    def setUp(self) -> None:
        self.table = Timetable()

    def set(self, name: bytes = b"s", wanted: Definition | None = None) -> list[Register]:
        """A client sets a schedule."""
        changes = self.table.plan_set(name, wanted or definition(), ME)
        self.table.apply(changes, UNIX_S)
        return changes

    def refused(self, name: bytes = b"s", wanted: Definition | None = None) -> str:
        """Why this schedule cannot be set."""
        return str(self.assertRaises(CommandError, self.set, name, wanted).text)


class SetTests(TimetableCase):
    """What can be set."""

    def test_kept_as_given(self) -> None:
        """Any body and any options come out of the table as they were put in."""
        wanted = definition(bytes(range(256)) + b"\n", ttl_s=60, delay_s=5, maxlen=(1 << 62))
        (register,) = self.set(b"a \n\0", wanted)
        found = read(register)
        assert found is not None
        self.assertEqual(wanted.content(), found.content())
        self.assertEqual((UNIX_S, False), (found.start_s, found.paused))
        self.assertEqual([b"a \n\0"], self.table.names())

    def test_same_again(self) -> None:
        """A program that sets its schedules at each start changes nothing, and misses nothing."""
        self.set()
        self.assertEqual([], self.set(wanted=definition(start_s=UNIX_S + 99)))
        self.assertEqual(UNIX_S, self.table.position_s(b"s"))
        self.assertEqual(1, len(self.set(wanted=definition(b"other"))))

    def test_stays_paused(self) -> None:
        """What an operator paused does not go on because a program starts."""
        self.set()
        self.table.apply(self.table.plan_pause(b"s", True, ME, UNIX_S), UNIX_S)
        self.set(wanted=definition(b"other"))
        self.assertTrue(self.table.find(b"s").paused)

    def test_refused(self) -> None:
        """What could never be added, or is too long, is refused by name."""
        self.assertIn("needs a name", self.refused(b""))
        self.assertIn("longer than", self.refused(b"x" * (NAME_BYTES_MAX + 1)))
        body = b"x" * (BODY_BYTES_MAX + 1)
        self.assertIn("Body of a schedule", self.refused(wanted=definition(body)))
        self.assertIn("REPLICATE 1", self.refused(wanted=definition(retry_s=0)))
        self.assertIn("DELAY", self.refused(wanted=definition(ttl_s=5, delay_s=5)))
        long_queue = definition()
        long_queue.request.queue = b"x" * 2_000
        self.assertIn("Queue of a schedule", self.refused(wanted=long_queue))
        self.assertEqual([], self.table.names())

    def test_bounded(self) -> None:
        """The table does not grow forever; schedules that are there can be changed."""
        self.table.schedules_max = 2
        self.set(b"a")
        self.set(b"b")
        self.assertIn("2 schedules already", self.refused(b"c"))
        self.set(b"a", definition(b"other"))
        self.table.registers_max = 3
        self.assertIn("holds 3 entries already", self.refused(b"a", definition(b"third")))

    def test_bytes_bounded(self) -> None:
        """Long bodies fill the table, too; room is there again when schedules are deleted."""
        self.table.bytes_max = 2 * BODY_BYTES_MAX
        long = definition(b"x" * BODY_BYTES_MAX)
        self.set(b"a", long)
        self.assertIn("All schedules together", self.refused(b"b", long))
        self.table.apply(self.table.plan_del(b"a", ME, UNIX_S), UNIX_S)
        self.set(b"b", long)


class LastTests(TimetableCase):
    """The last occurrence that was made."""

    def made(self, time_s: int, node: bytes = ME) -> Register:
        """An occurrence is made."""
        (change,) = self.table.made(b"s", time_s, node, UNIX_S)
        return change

    def test_kept(self) -> None:
        """What was made is done with; a change of the schedule begins anew."""
        self.set()
        self.assertEqual((UNIX_S, 0), (self.table.position_s(b"s"), self.table.last_s(b"s")))
        self.made(UNIX_S + 60)
        self.assertEqual(UNIX_S + 60, self.table.position_s(b"s"))
        self.set(wanted=definition(b"other", UNIX_S + 30))
        self.assertEqual(UNIX_S + 30, self.table.position_s(b"s"))

    def test_later_wins(self) -> None:
        """Of two nodes that were apart, the one that went further counts, in any order."""
        self.set()
        other = Timetable()
        other.merge(self.table.registers.all(), UNIX_S)
        far = self.made(UNIX_S + 120)
        near = other.made(b"s", UNIX_S + 60, B, UNIX_S)[0]
        self.table.merge([near], UNIX_S)
        other.merge([far], UNIX_S)
        self.assertEqual(UNIX_S + 120, self.table.position_s(b"s"))
        self.assertEqual(UNIX_S + 120, other.position_s(b"s"))

    def test_counter_grows(self) -> None:
        """After a deletion, whose counter may be greater than the time, occurrences still count."""
        self.set()
        self.made(UNIX_S + 10**7)
        self.table.apply(self.table.plan_del(b"s", ME, UNIX_S), UNIX_S)
        self.assertEqual([], self.table.names())
        self.set(wanted=definition(start_s=UNIX_S))
        self.made(UNIX_S + 5)
        self.assertEqual(UNIX_S + 5, self.table.last_s(b"s"))

    def test_deleted(self) -> None:
        """A deleted schedule leaves two deletions, and nothing in force."""
        self.set()
        self.made(UNIX_S + 60)
        changes = self.table.plan_del(b"s", ME, UNIX_S)
        self.assertEqual({DEFINITION, LAST}, {change.name for change in changes})
        self.table.apply(changes, UNIX_S)
        self.assertFalse(self.table.active)
        self.assertEqual([], self.table.plan_del(b"s", ME, UNIX_S))

    def test_reverted(self) -> None:
        """What could not be saved is as it was before, and noticed as a change again."""
        self.set()
        before = self.table.apply(self.table.plan_del(b"s", ME, UNIX_S), UNIX_S)
        self.table.changed.clear()
        self.table.revert(before)
        self.assertEqual(([b"s"], [b"s"]), (self.table.names(), list(self.table.changed)))


class PauseTests(TimetableCase):
    """PAUSE and RESUME."""

    def pause(self, paused: bool, wall_s: int) -> int:
        """How many changes that made."""
        changes = self.table.plan_pause(b"s", paused, ME, wall_s)
        self.table.apply(changes, wall_s)
        return len(changes)

    def test_resumed_from_now(self) -> None:
        """What was due during a pause is not made up for."""
        self.set()
        self.assertEqual((1, 0), (self.pause(True, UNIX_S + 5), self.pause(True, UNIX_S + 6)))
        self.assertEqual(1, self.pause(False, UNIX_S + 500))
        self.assertEqual(UNIX_S + 500, self.table.position_s(b"s"))

    def test_unknown(self) -> None:
        """A schedule that does not exist is an error, not a success."""
        error = self.assertRaises(CommandError, self.pause, True, UNIX_S)
        self.assertEqual("NOSCHEDULE", error.code)


class ForeignTests(TimetableCase):
    """Registers of other nodes."""

    def test_unreadable(self) -> None:
        """A definition of a later version, or a damaged one, is kept and passed on, and not in
        force."""
        good = definition().value()
        values = [
            b"",
            b"x",
            b"2" + good[1:],
            good.replace(b"\n", b" "),
            good.replace(b"skip", b"?"),
        ]
        values += [good.replace(b" 0 ", b" 7 ", 1), good.replace(b"-1 -1", b"-1 70000000000", 1)]
        values.append(good.replace(b" -1 0\n", b" %d 0\n" % (1 << 63)))
        values.append(good.replace(b'"@daily"', b'"EVERY 0"'))
        for number, value in enumerate(values):
            name = b"%d" % number
            self.table.merge([Register(name, DEFINITION, value, 1, B)], UNIX_S)
            self.assertNotIn(name, self.table.definitions, value)
        self.table.merge([Register(b"s", b"colour", b"blue", 1, B)], UNIX_S)
        self.assertEqual(len(values) + 1, len(self.table.registers))
        self.assertFalse(self.table.active)

    def test_left_out(self) -> None:
        """What clients want left out is known to all nodes, and damaged or deleted counts as
        nothing."""
        self.set()
        self.table.apply(self.table.plan_skip(b"s", UNIX_S + 60, ME), UNIX_S)
        other = Timetable()
        other.merge(self.table.registers.all(), UNIX_S)
        self.assertEqual(UNIX_S + 60, other.skipped_s(b"s"))
        for counter, value in enumerate((b"1", b"x y", b"1 " + b"9" * 30), 100):
            other.merge([Register(b"s", SKIPPED, value, counter, B)], UNIX_S)
            self.assertEqual(0, other.skipped_s(b"s"))
        names = {change.name for change in self.table.plan_del(b"s", ME, UNIX_S)}
        self.assertEqual({DEFINITION, SKIPPED}, names)

    def test_unreadable_last(self) -> None:
        """A damaged occurrence counts as none."""
        self.set()
        shapes = (b"1", b"x y", b"1 x", b"x 1", b"1 2 3", b"1 " + b"9" * 30, b"1 " + b"9" * 18)
        endless = b"9" * 5_000
        for counter, value in enumerate((*shapes, b"1 " + endless, endless + b" 1"), 1):
            self.table.merge([Register(b"s", LAST, value, counter, B)], UNIX_S)
            self.assertEqual(0, self.table.last_s(b"s"))
