"""Repairing a shared table: it can be changed again, and all nodes have the same one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.policies.policies import Policies
from disque_tx.core.tables import registers as limits
from disque_tx.core.tables.definition import DEFINITION, SKIP, Definition
from disque_tx.core.tables.policytable import PolicyTable
from disque_tx.core.tables.table import SharedTable
from disque_tx.core.tables.timetable import Timetable
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import CAN_REPAIR, CAN_TABLES
from disque_tx.messages.nodes import Link
from disque_tx.messages.tables import Register, TableChange, TableDigest, TablePull
from tests.core.bench import ME, UNIX_S
from tests.core.peerbench import B, C
from tests.core.tables.test_exchange import ExchangeCase
from tests.core.tables.test_registers import LISTS, NOW_S, contents


def table_of(registers: list[Register], wall_s: int = NOW_S) -> PolicyTable:
    """A table that has got these."""
    table = PolicyTable(Policies())
    table.merge(registers, wall_s)
    return table


def repair(table: SharedTable, wall_s: int = NOW_S) -> list[Register]:
    """Repair the table; the changes that this is."""
    changes = table.plan_repair(wall_s)
    table.apply(changes, wall_s)
    return changes


def meet(one: SharedTable, other: SharedTable, wall_s: int = NOW_S) -> None:
    """Two nodes get each other's registers."""
    mine, others = one.registers.all(), other.registers.all()
    one.merge(others, wall_s)
    other.merge(mine, wall_s)


class RepairTests(ExchangeCase):
    """A table of policies."""

    def test_usable_again(self) -> None:
        """A table whose counters were run to their end can be changed again, here and at a node
        that has nothing of it."""
        table = self.node.policy_table
        table.load([Register(b"q", b"ttl", b"5", limits.COUNTER_MAX, B)], limits.COUNTER_MAX, 1)
        self.assertRaises(CommandError, table.plan_set, b"q", [(b"ttl", b"6")], ME)
        repair(table)
        self.assertEqual(5, self.ttl())
        self.set(b"6")
        self.assertEqual(6, self.ttl())
        other = table_of(table.registers.all())
        self.assertEqual(0, other.refused.total)
        self.assertEqual({b"ttl": b"6"}, other._policies.values(b"q"))

    def test_unequal_tables_agree(self) -> None:
        """Nodes that differed forever, as some had refused what others had taken, have the same
        table after the repair."""
        far = Register(b"far", b"ttl", b"5", limits.COUNTER_MAX, B)
        one, other = table_of([]), table_of([])
        other.load([far], limits.COUNTER_MAX, NOW_S)
        meet(one, other)
        self.assertEqual(1, one.refused.total)
        one.apply(one.plan_set(b"q", [(b"ttl", b"1")], ME), NOW_S)
        repair(one)
        meet(one, other)
        self.assertEqual(1, one.refused.total)
        self.assertEqual(contents(one.registers), contents(other.registers))
        self.assertEqual(2, len(one.registers))

    @given(LISTS, LISTS, st.booleans())
    def test_wins(self, one: list[Register], other: list[Register], before: bool) -> None:
        """A repair wins on every node against whatever the node had, also on one that was away
        and comes with it later; and what is set after the repair wins against that."""
        repaired, away, third = table_of(one), table_of(other), table_of([])
        changes = repair(repaired)
        set_later = repaired.plan_set(b"later", [(b"ttl", b"9")], ME)
        repaired.apply(set_later, NOW_S)
        for pair in ((third, away), (repaired, third))[:: 1 if before else -1]:
            meet(*pair)
        meet(repaired, away)
        meet(repaired, third)
        self.assertEqual(contents(repaired.registers), contents(away.registers))
        self.assertEqual(contents(repaired.registers), contents(third.registers))
        for change in [*changes, *set_later]:
            found = away.registers.get(change.pattern, change.name)
            assert found is not None
            self.assertEqual(change.fields(), found.fields())

    @given(LISTS, LISTS)
    def test_two_at_once(self, one: list[Register], other: list[Register]) -> None:
        """Two nodes that are repaired at once have the same table afterwards."""
        first, second = table_of(one), table_of(other)
        repair(first)
        repair(second)
        meet(first, second)
        self.assertEqual(contents(first.registers), contents(second.registers))

    def test_same_by_two(self) -> None:
        """Two nodes with the same table that are repaired at once do the same: nothing travels."""
        first = table_of([Register(b"q", b"ttl", b"5", 7, B)])
        second = table_of(first.registers.all())
        repair(first)
        repair(second)
        self.assertEqual(first.registers.digest, second.registers.digest)

    def test_deleted_stays(self) -> None:
        """What was deleted before the repair does not come back with a node that was away."""
        old = Register(b"q", b"ttl", b"5", 7, B)
        table = table_of([old, Register(b"q", b"ttl", b"", 8, B, NOW_S)])
        repair(table)
        self.assertFalse(table.merge([old], NOW_S))

    def test_generations_bounded(self) -> None:
        """Nobody can use up the generations either: a repair beyond the clock is refused, and one
        at its bound can be followed by another a second later."""
        table, wall_s = table_of([]), 1_795_176_084
        most = wall_s + limits.GENERATION_AHEAD_MAX
        self.assertFalse(
            table.merge([Register(b"q", b"ttl", b"5", 1, B, generation=most + 1)], wall_s, B)
        )
        self.assertEqual({B: 1}, table.refused.by_sender)
        self.assertTrue(
            table.merge([Register(b"q", b"ttl", b"5", 1, B, generation=most)], wall_s, B)
        )
        (change,) = repair(table, wall_s)
        other = table_of([])
        self.assertTrue(other.merge([change], wall_s + 1))

    def test_counters_bounded(self) -> None:
        """The counters of the new generation are bounded like those of the first."""
        table = table_of([Register(b"q", b"ttl", b"5", 1, B)])
        table.registers.begin(0, limits.COUNTER_MAX)
        repair(table)
        far = Register(b"q", b"ttl", b"6", limits.COUNTER_MAX, B, generation=1)
        self.assertFalse(table.merge([far], NOW_S, B))


class OlderNodesTests(ExchangeCase):
    """B knows what a repair is, C has tables only."""

    def setUp(self) -> None:
        super().setUp()
        self.show(B, CAN_TABLES | CAN_REPAIR)
        self.set(b"5")
        self.node.exchange.announce(repair(self.node.policy_table))
        self.clear_sent()

    def test_not_exchanged(self) -> None:
        """A node of an older version, which would not know which register is later, gets nothing
        of the repaired table, and nodes that know it get all."""
        self.set(b"6")
        self.node.exchange.greet(self.link_to(C))
        self.node.exchange.greet(self.link_to(B))
        for peer in (B, C):
            self.receive(peer, TablePull(b"", b""))
            self.receive(peer, TableDigest(1, 1))
        sent = [type(message) for message in self.sent_to(B)]
        self.assertEqual([TableChange, TableDigest, TableChange, TablePull], sent)
        self.assertEqual([], self.sent_to(C))

    def test_not_taken(self) -> None:
        """What is set at an older node holds there alone, for all keys alike, until it is
        upgraded; then it takes part again."""
        change = [Register(b"other", b"ttl", b"9", 99, C)]
        self.receive(C, TableChange(list(change)))
        self.assertEqual({}, self.node.policies.values(b"other"))
        self.show(C, CAN_TABLES | CAN_REPAIR)
        self.receive(C, TableChange(list(change)))
        self.assertEqual({b"ttl": b"9"}, self.node.policies.values(b"other"))

    def link_to(self, peer: bytes) -> Link:
        """This node's link to another one."""
        link = self.node.membership.nodes[peer].link
        assert link is not None
        return link


class ScheduleTests(ExchangeCase):
    """A table of schedules."""

    def setUp(self) -> None:
        super().setUp()
        self.table = Timetable()
        wanted = Definition(b"EVERY 10", b"", SKIP, AddRequest(b"q", b"body"), UNIX_S)
        self.table.apply(self.table.plan_set(b"s", wanted, ME), UNIX_S)
        self.table.made(b"s", UNIX_S + 10, ME, UNIX_S + 10)

    def test_nothing_made_again(self) -> None:
        """Occurrences that were made before the repair are not made again by a node that has got
        the definition, and not yet the last occurrence; those to come keep their times."""
        changes = repair(self.table, UNIX_S + 12)
        self.assertEqual(UNIX_S + 10, self.table.last_s(b"s"))
        other = Timetable()
        other.merge([one for one in changes if one.name == DEFINITION], UNIX_S + 12)
        for table in (self.table, other):
            self.assertEqual(UNIX_S + 10, table.position_s(b"s"))
            recurrence = table.definitions[b"s"].recurrence
            self.assertEqual(UNIX_S + 20, recurrence.after(self.node.recurring.calendar, UNIX_S))
        self.table.made(b"s", UNIX_S + 20, ME, UNIX_S + 20)
        other.merge(self.table.registers.all(), UNIX_S + 20)
        self.assertEqual(UNIX_S + 20, other.last_s(b"s"))

    def test_left_out_still(self) -> None:
        """An occurrence that clients want left out is so after the repair."""
        self.table.apply(self.table.plan_skip(b"s", UNIX_S + 20, ME), UNIX_S + 11)
        other = Timetable()
        other.merge(repair(self.table, UNIX_S + 12), UNIX_S + 12)
        self.assertEqual(UNIX_S + 20, self.table.skipped_s(b"s"))
        self.assertEqual(UNIX_S + 20, other.skipped_s(b"s"))

    def test_last_run_up(self) -> None:
        """A last occurrence whose counter was run to its end does not keep later ones from being
        noted once the table is repaired."""
        value = b"%d %d" % (self.table.definitions[b"s"].counter, UNIX_S + 10)
        far = Register(b"s", b"last", value, limits.COUNTER_MAX, B)
        self.table.load([*self.table.registers.all(), far], limits.COUNTER_MAX, UNIX_S)
        repair(self.table, UNIX_S + 12)
        (change,) = self.table.made(b"s", UNIX_S + 20, ME, UNIX_S + 20)
        self.assertEqual((UNIX_S + 20, 1), (change.counter, change.generation))

    def test_clock_was_wrong(self) -> None:
        """A last occurrence in the future, from a clock that was wrong, does not become a start
        that all have to wait for."""
        self.table.made(b"s", UNIX_S + 3_600, ME, UNIX_S + 3_600)
        repair(self.table, UNIX_S + 12)
        self.assertEqual(UNIX_S, self.table.definitions[b"s"].start_s)
        self.assertEqual(UNIX_S + 3_600, self.table.last_s(b"s"))
