"""The tables that all nodes share."""

from __future__ import annotations

from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.tables.definition import DEFINITION, Definition
from disque_tx.messages.tables import POLICIES, SCHEDULES, Register
from disque_tx.sim.checkers.tables.tables import ChangesKept, LastChangeCounts, SameTables
from disque_tx.sim.stage.history import TableChange, TableRepair
from tests.sim.checkers.bench import HERE, CheckerCase, S


class TableTests(CheckerCase):
    """Changes and repairs."""

    def setUp(self) -> None:
        super().setUp()
        for machine in self.run_.machines:
            machine.start()

    def put(self, place: int, counter: int, deleted_s: int = 0, generation: int = 0) -> None:
        """A node gets a change."""
        process = self.run_.machines[place].process
        assert process is not None
        value = b"" if deleted_s else b"%d" % counter
        register = Register(
            b"p", b"ttl", value, counter, b"a" * 40, deleted_s, generation=generation
        )
        process.node.policy_table.merge([register], deleted_s)

    def answered(self, counter: int, value: bytes = b"1", generation: int = 0) -> None:
        """A client at the first node has the answer to a change."""
        version = generation, counter
        change = TableChange(b"p", [b"ttl"], value, 5 * S, POLICIES, True, 5 * S)
        change.versions, change.node = {b"ttl": version}, HERE
        self.history.table_changes.append(change)

    def test_same(self) -> None:
        """A node with another table than the others breaks the promise."""
        tables = [n for n in range(len(self.run_.machines)) if self.run_.shape.has_own(n)]
        self.assertEqual(0, self.found(SameTables()))
        self.put(tables[0], 1)
        self.assertEqual(len(tables) - 1, self.found(SameTables()))
        for place in tables[1:]:
            self.put(place, 1)
        self.assertEqual(0, self.found(SameTables()))

    def test_kept(self) -> None:
        """A change that is lost, or an older one in its place, breaks the promise; a later one does
        not."""
        self.answered(2)
        self.assertEqual(1, self.found(ChangesKept()))
        self.put(0, 1)
        self.assertEqual(1, self.found(ChangesKept()))
        self.put(0, 3)
        self.assertEqual(0, self.found(ChangesKept()))

    def test_generations(self) -> None:
        """A repaired table is later than any change before, whatever their counters are."""
        self.answered(1, generation=1)
        self.put(0, 9)
        self.assertEqual(1, self.found(ChangesKept()))
        self.put(0, 1, generation=1)
        self.assertEqual(0, self.found(ChangesKept()))

    def test_deleted(self) -> None:
        """A deletion may have been dropped, but nothing older may be there again."""
        self.answered(2, b"")
        self.assertEqual(0, self.found(ChangesKept()))
        self.put(0, 1)
        self.assertEqual(1, self.found(ChangesKept()))

    def test_other_disk(self) -> None:
        """What was on a disk that does not exist any more may be lost."""
        self.answered(2)
        self.run_.machines[0].disk.wipe()
        self.assertEqual(0, self.found(ChangesKept()))

    def test_schedules(self) -> None:
        """The same holds for schedules, which are recognised by the bodies of their jobs."""
        process = self.run_.machines[0].process
        assert process is not None
        wanted = Definition(b"EVERY 60", b"", b"skip", AddRequest(b"q", b"7"), 1)
        changes = process.node.timetable.plan_set(b"p", wanted, process.node.id)
        change = TableChange(b"p", [DEFINITION], b"7", 0, SCHEDULES)
        self.assertTrue(change.is_in(changes[0]))
        change.value = b"8"
        self.assertFalse(change.is_in(changes[0]))
        change.answered, change.versions, change.node = True, {DEFINITION: (0, 1)}, HERE
        self.history.table_changes.append(change)
        self.assertEqual(1, self.found(ChangesKept()))
        process.node.timetable.apply(changes, 1)
        self.assertEqual(0, self.found(ChangesKept()))

    def test_last_change(self) -> None:
        """Without faults the value that was set last is in force, but for a repair at that time."""
        self.put(0, 2)
        self.answered(2, b"2")
        self.assertEqual(0, self.found(LastChangeCounts()))
        self.answered(3, b"3")
        self.assertEqual(1, self.found(LastChangeCounts()))
        repair = TableRepair(POLICIES, 5 * S)
        self.history.repairs.append(repair)
        self.assertEqual(0, self.found(LastChangeCounts()))
        repair.asked_us = 9 * S
        self.assertEqual(1, self.found(LastChangeCounts()))
        self.fault("kill")
        self.assertEqual(0, self.found(LastChangeCounts()))

    def test_last_repair(self) -> None:
        """A repair in the end leaves every node what all had, after faults, too."""
        self.fault("kill")
        tables = [n for n in range(len(self.run_.machines)) if self.run_.shape.has_own(n)]
        self.history.repairs.append(TableRepair(POLICIES, 0, {(b"p", b"ttl"): (b"2",)}))
        self.assertEqual(len(tables), self.found(LastChangeCounts()))
        for place in tables:
            self.put(place, 2)
        self.assertEqual(0, self.found(LastChangeCounts()))
