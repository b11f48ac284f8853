"""Registers: whichever way changes travel, all nodes have the same table in the end."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.tables import registers as table
from disque_tx.core.tables.registers import DELETION_KEPT_S, Registers, hash64, is_later
from disque_tx.errors import CommandError
from disque_tx.messages.tables import Register
from tests import profiles  # noqa: F401

A, B = b"a" * 40, b"b" * 40
#: The wall clock of the tests; deletions are around it.
NOW_S = 10_000_000


@st.composite
def some_registers(draw: st.DrawFn) -> Register:
    """A register of few keys, so that many are the same."""
    deleted_s = draw(st.sampled_from((0, 0, NOW_S, NOW_S - 1)))
    return Register(
        draw(st.sampled_from((b"a*", b"b"))),
        draw(st.sampled_from((b"ttl", b"retry"))),
        b"" if deleted_s else draw(st.sampled_from((b"1", b"2"))),
        draw(st.integers(1, 4)),
        draw(st.sampled_from((A, B))),
        deleted_s,
    )


LISTS = st.lists(some_registers(), max_size=12)


def register(
    value: bytes = b"1", counter: int = 1, deleted_s: int = 0, name: bytes = b"ttl"
) -> Register:
    """A register of one pattern."""
    return Register(b"q", name, b"" if deleted_s else value, counter, A, deleted_s)


def merged(changes: Iterable[Register], into: Registers | None = None) -> Registers:
    """The table after these changes."""
    found = into or Registers()
    for change in changes:
        found.put(change, NOW_S)
    return found


def contents(registers: Registers) -> list[tuple[object, ...]]:
    """Everything that a table holds, and its digest."""
    return [one.fields() for one in registers.all()] + [(registers.digest, registers.greatest)]


class MergeTests(SynchronousTestCase):
    """Merging two tables."""

    @given(LISTS, LISTS)
    def test_commutative(self, one: list[Register], other: list[Register]) -> None:
        """Two nodes that get each other's changes have the same table."""
        self.assertEqual(contents(merged(one + other)), contents(merged(other + one)))

    @given(LISTS, LISTS, LISTS)
    def test_associative(self, a: list[Register], b: list[Register], c: list[Register]) -> None:
        """It does not matter over which nodes changes arrive."""
        left = merged([*merged(a).all(), *merged(b).all()])
        right = merged([*merged(b).all(), *merged(c).all()])
        one = merged(c, left)
        other = merged([*merged(a).all(), *right.all()])
        one.greatest = other.greatest = 0  # of registers that lost, it is not passed on
        self.assertEqual(contents(one), contents(other))

    @given(LISTS)
    def test_idempotent(self, changes: list[Register]) -> None:
        """A change that arrives twice changes nothing the second time."""
        once = merged(changes)
        before = contents(once)
        self.assertEqual([False] * len(changes), [once.put(one, NOW_S) for one in changes])
        self.assertEqual(before, contents(once))

    @given(LISTS)
    def test_digest(self, changes: list[Register]) -> None:
        """The digest that is kept up to date is that of all registers."""
        registers = merged(changes)
        total = sum(hash64(one) for one in registers.all()) % (1 << 64)
        self.assertEqual(total, registers.digest)

    @given(some_registers(), some_registers())
    def test_order(self, one: Register, other: Register) -> None:
        """Of two different registers one is later, for everybody."""
        same = one.fields()[2:] == other.fields()[2:]
        self.assertEqual(0 if same else 1, is_later(one, other) + is_later(other, one))

    def test_counter_decides(self) -> None:
        """The last writer wins, not the one with the greater value."""
        registers = merged([register(b"9", counter=1), register(b"1", counter=2)])
        self.assertEqual([b"1"], [one.value for one in registers.all()])
        self.assertEqual(3, registers.next_counter())


class DeletionTests(SynchronousTestCase):
    """Deletions are registers, too, for a time."""

    def test_kept(self) -> None:
        """A node that was away does not bring back what was deleted meanwhile."""
        registers = merged([register(counter=1), register(counter=2, deleted_s=NOW_S)])
        self.assertFalse(registers.put(register(counter=1), NOW_S))
        self.assertFalse(registers.drop_old(NOW_S + DELETION_KEPT_S - 1))
        self.assertEqual(1, len(registers))

    def test_dropped(self) -> None:
        """After seven days nothing is left of a deletion, and the counter goes on."""
        registers = merged([register(counter=2, deleted_s=NOW_S)])
        self.assertTrue(registers.drop_old(NOW_S + DELETION_KEPT_S))
        self.assertEqual((0, 0, 3), (len(registers), registers.digest, registers.next_counter()))

    def test_too_old(self) -> None:
        """A deletion that others still have is not taken again once it was dropped, but deletes
        what is there."""
        old = register(counter=2, deleted_s=NOW_S - DELETION_KEPT_S)
        registers = Registers()
        self.assertFalse(registers.put(old, NOW_S))
        registers.put(register(counter=1), NOW_S)
        self.assertTrue(registers.put(old, NOW_S))
        self.assertTrue(registers.drop_old(NOW_S))
        self.assertEqual(0, len(registers))

    def test_set_again(self) -> None:
        """A setting that was deleted and set again stays."""
        registers = merged([register(counter=1, deleted_s=NOW_S), register(counter=2)])
        self.assertFalse(registers.drop_old(NOW_S + DELETION_KEPT_S))
        self.assertEqual(1, len(registers))

    def test_deleted_again(self) -> None:
        """A setting that was deleted, set and deleted again is kept from the last deletion on."""
        later_s = NOW_S + DELETION_KEPT_S // 2
        changes = (register(counter=2), register(counter=3, deleted_s=later_s))
        registers = merged([register(counter=1, deleted_s=NOW_S), *changes])
        self.assertFalse(registers.drop_old(NOW_S + DELETION_KEPT_S))
        self.assertEqual(1, len(registers))
        self.assertTrue(registers.drop_old(later_s + DELETION_KEPT_S))

    def test_slices(self) -> None:
        """Many deletions are dropped a part at a time, so that no turn is long."""
        names = [b"%d" % number for number in range(table.DROPPED_MAX + 1)]
        registers = merged(register(deleted_s=NOW_S, name=name) for name in names)
        self.assertTrue(registers.drop_old(NOW_S + DELETION_KEPT_S))
        self.assertEqual(1, len(registers))
        self.assertTrue(registers.drop_old(NOW_S + DELETION_KEPT_S))
        self.assertFalse(registers.drop_old(NOW_S + DELETION_KEPT_S))

    def test_bounded(self) -> None:
        """Setting and deleting the same setting forever takes no more and more memory."""
        registers = Registers()
        for counter in range(1, 10_000):
            deleted_s = NOW_S + counter if counter % 2 else 0
            registers.put(register(counter=counter, deleted_s=deleted_s), NOW_S)
        self.assertLess(len(registers._dropping), 3 * table.DROPPED_MAX)
        self.assertTrue(registers.drop_old(NOW_S + 10_000 + DELETION_KEPT_S))
        self.assertEqual(0, len(registers))

    def test_in_time_among_many(self) -> None:
        """A deletion is dropped at its own time, whatever is set and deleted again meanwhile."""
        times_s = {b"z": 3, b"m": 5, b"b": 7, b"a": 9}
        registers = merged(
            register(name=name, deleted_s=NOW_S + at_s) for name, at_s in times_s.items()
        )
        for counter in range(1, 5_000):
            deleted_s = NOW_S + 1_000 + counter if counter % 2 else 0
            registers.put(register(name=b"often", counter=counter, deleted_s=deleted_s), NOW_S)
        registers.put(register(name=b"last", deleted_s=NOW_S + 1), NOW_S)
        for name, at_s in {b"last": 1, **times_s, b"often": 5_999}.items():
            left = {one.name for one in registers.all()}
            self.assertFalse(registers.drop_old(NOW_S + DELETION_KEPT_S + at_s - 1))
            self.assertTrue(registers.drop_old(NOW_S + DELETION_KEPT_S + at_s))
            self.assertEqual({name}, left - {one.name for one in registers.all()})
        self.assertEqual(0, len(registers))

    def test_deleted_earlier(self) -> None:
        """A deletion that wins with an earlier time, by another node's clock, is dropped at that,
        and nothing happens at the later one."""
        earlier = register(counter=2, deleted_s=NOW_S)
        registers = merged([register(counter=1, deleted_s=NOW_S + 10), earlier])
        self.assertTrue(registers.drop_old(NOW_S + DELETION_KEPT_S))
        self.assertFalse(registers.drop_old(NOW_S + DELETION_KEPT_S + 10))
        self.assertEqual((0, 0), (len(registers), registers.digest))


class BoundTests(SynchronousTestCase):
    """What strangers send."""

    def test_credible(self) -> None:
        """A register with impossible fields is not taken."""
        registers = Registers()
        self.assertTrue(registers.is_credible(register(), NOW_S))
        for wrong in (
            Register(b"", b"ttl", b"1", 1, A),
            Register(b"x" * 1025, b"ttl", b"1", 1, A),
            Register(b"q", b"", b"1", 1, A),
            Register(b"q", b"x" * 65, b"1", 1, A),
            Register(b"q", b"ttl", b"x" * 4097, 1, A),
            Register(b"q", b"ttl", b"1", 0, A),
            Register(b"q", b"ttl", b"1", 1, b"short"),
            Register(b"q", b"ttl", b"1", 1, A, NOW_S),
            Register(b"q", b"ttl", b"", 1, A, 1 << 50),
        ):
            self.assertFalse(registers.is_credible(wrong, NOW_S), wrong.fields())

    def test_counter_ahead(self) -> None:
        """One broken node cannot use up the counters, at once or step by step: others can change
        the table a moment later."""
        registers, now_s = Registers(), 1_795_176_084
        most = now_s * 1000 + table.COUNTER_AHEAD_MAX
        self.assertTrue(registers.is_credible(register(counter=most), now_s))
        registers.put(register(counter=most), now_s)
        self.assertFalse(registers.is_credible(register(counter=most + 1), now_s))
        self.assertTrue(registers.is_credible(register(counter=most + 1), now_s + 1))

    def test_counter_ahead_of_slow_clock(self) -> None:
        """A node without a clock takes what others with one have."""
        counter = table.CLOCK_S_MIN * 1000
        self.assertTrue(Registers().is_credible(register(counter=counter), 0))

    def test_counters_run_up_before(self) -> None:
        """A table that was run up before this was checked can be changed by all that have it."""
        registers = Registers()
        registers.loaded = registers.greatest = 1 << 55
        counter = registers.next_counter()
        self.assertTrue(registers.is_credible(register(counter=counter), NOW_S))
        wrong = register(counter=counter + table.COUNTER_STEP_MAX)
        self.assertFalse(registers.is_credible(wrong, NOW_S))

    def test_no_counter_left(self) -> None:
        """At the end of all counters nothing is set, rather than something that others refuse."""
        registers = Registers()
        registers.loaded = registers.greatest = table.COUNTER_MAX
        wrong = register(counter=table.COUNTER_MAX + 1)
        self.assertFalse(registers.is_credible(wrong, NOW_S))
        self.assertRaises(CommandError, registers.next_counter)

    def test_slices(self) -> None:
        """A table is sent in parts, each register once, in the order of the keys."""
        names = [b"%03d" % number for number in range(100)]
        registers = merged(register(name=name) for name in reversed(names))
        found: list[bytes] = []
        pattern, name = b"", b""
        while part := registers.after(pattern, name, 7, 400):
            self.assertLessEqual(sum(one.wire_bytes() for one in part), 400)
            found += [one.name for one in part]
            pattern, name = part[-1].pattern, part[-1].name
        self.assertEqual(names, found)
        self.assertEqual(1, len(registers.after(b"", b"", 7, 1)))
