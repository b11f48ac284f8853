"""Walks through a table from bucket to bucket."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.lookup.table import Table
from disque_tx.core.lookup.walk import Walk
from disque_tx.messages.records import Keyed
from tests.core.lookup.test_table import drop, filled, name, numbers

#: What happens between two parts: entries from this number on are added, or removed.
_CHANGES = st.lists(st.tuples(st.booleans(), st.integers(0, 3_000)), max_size=20)


class WalkTests(SynchronousTestCase):
    """``Walk``."""

    @given(st.integers(0, 600), st.integers(1, 100), _CHANGES)
    def test_nothing_is_missed(self, size: int, most: int, changes: list[tuple[bool, int]]) -> None:
        """What is there from the beginning to the end is looked at, however the table grows and
        shrinks meanwhile: a job that lacks copies must not be overlooked."""
        table = filled(size)
        there = set(range(size))
        always = set(there)
        walk = Walk(table)
        walk.begin()
        found: set[int] = set()
        while walk.under_way:
            found.update(numbers(walk.part(most)))
            if changes:
                added, first = changes.pop()
                for number in range(first, first + 300):
                    if added and number not in there:
                        table.put(Keyed(name(number)))
                        there.add(number)
                    elif not added and number in there:
                        drop(table, name(number))
                        there.remove(number)
                        always.discard(number)
        self.assertEqual(set(), always - found)

    def test_parts(self) -> None:
        """A part is as long as was asked for, not much longer, and together they have each entry of
        a table that does not change once."""
        walk = Walk(filled(5_000))
        walk.begin()
        parts = []
        while walk.under_way:
            parts.append(numbers(walk.part(200)))
        self.assertEqual(list(range(5_000)), sorted(number for part in parts for number in part))
        sizes = [len(part) for part in parts[:-1]]
        self.assertTrue(min(sizes) > 60 and max(sizes) < 220, sizes)

    def test_memory(self) -> None:
        """A table keeps its memory while a walk is under way, and gives it back after the last one,
        although many entries were removed before."""
        table = filled(2_000)
        walks = [Walk(table), Walk(table)]
        for walk in walks:
            walk.begin()
        size = table.size()
        for number in range(1_900):
            drop(table, name(number))
        for walk in walks:
            self.assertEqual(size, table.size())
            walk.end()
            walk.end()
        for number in range(1_900, 1_950):
            drop(table, name(number))
        self.assertEqual(size - 100, table.size())  # two buckets for each entry
        self.assertEqual(0, table.walks)

    def test_progress(self) -> None:
        """Operators see how far a walk is; none that is under way is done."""
        table = filled(100)
        walk = Walk(table)
        self.assertEqual(1.0, walk.progress())
        walk.begin()
        self.assertEqual(0.0, walk.progress())
        walk.part(60)
        self.assertTrue(0.3 < walk.progress() < 0.7, walk.progress())
        table.clear()
        self.assertEqual(1.0, walk.progress())
        self.assertEqual([], walk.part(100))
        self.assertEqual((1.0, False), (walk.progress(), walk.under_way))

    def test_again(self) -> None:
        """A walk that begins again starts from the beginning."""
        table: Table[Keyed] = filled(300)
        walk = Walk(table)
        walk.begin()
        walk.part(100)
        walk.begin()
        self.assertEqual(list(range(300)), sorted(numbers(walk.part(1_000))))
        self.assertEqual((False, 0), (walk.under_way, table.walks))
