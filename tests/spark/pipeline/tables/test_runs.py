"""Known numbers of events: exactly those that were added."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.tables.counting import counted_runs, runs_in_files
from disque_tx.spark.pipeline.tables.runs import Run, Runs
from tests.spark.pipeline.cases import PipelineCase

_GIVEN = st.lists(
    st.tuples(st.sampled_from(["a" * 40, "b" * 40]), st.integers(0, 30), st.integers(0, 5))
)


def runs_of(given: list[tuple[str, int, int]]) -> list[Run]:
    """Runs that may overlap."""
    return [Run(node, 1, first, first + more) for node, first, more in given]


def numbers(runs: Runs | list[Run]) -> set[tuple[str, int]]:
    """Every number of every node."""
    return {(run.node, number) for run in runs for number in range(run.first, run.last + 1)}


class RunsTests(SynchronousTestCase):
    """Compared with a set of numbers."""

    @given(_GIVEN, _GIVEN)
    def test_same_numbers(
        self, first: list[tuple[str, int, int]], second: list[tuple[str, int, int]]
    ) -> None:
        """Runs contain the numbers that were added, whatever overlaps, so that no event is taken
        for a known one; and so do those that a commit stored."""
        runs = Runs(runs_of(first))
        runs.add(runs_of(second))
        expected = numbers(runs_of(first)) | numbers(runs_of(second))
        stored = Runs.from_notes(json.loads(json.dumps(runs.to_notes())))
        for found in (runs, stored):
            self.assertEqual(expected, numbers(found))
            self.assertEqual(len(expected), found.events)
            for node in ("a" * 40, "b" * 40):
                for number in range(40):
                    known = (node, number) in expected
                    self.assertEqual(known, found.contains(node[:8], 1, number))
        self.assertFalse(runs.contains("a" * 8, 2, 0))

    @given(_GIVEN, _GIVEN)
    def test_overlapping(
        self, first: list[tuple[str, int, int]], second: list[tuple[str, int, int]]
    ) -> None:
        """The runs that overlap others contain all common numbers, because only these are compared
        with new events."""
        one, two = Runs(runs_of(first)), Runs(runs_of(second))
        common = numbers(one) & numbers(two)
        found = one.overlapping(two)
        self.assertEqual(common, numbers(found) & numbers(two))
        self.assertEqual(bool(common), bool(found))

    @given(_GIVEN)
    def test_missing(self, given: list[tuple[str, int, int]]) -> None:
        """Numbers from 0 to the last one that are not known are missing."""
        expected = {}
        for node, _ in numbers(runs_of(given)):
            known = {number for name, number in numbers(runs_of(given)) if name == node}
            expected[node] = max(known) + 1 - len(known)
        self.assertEqual(expected, Runs(runs_of(given)).missing())


class CountedTests(PipelineCase):
    """Runs that Spark finds in events."""

    def test_counted(self) -> None:
        """Gaps within blocks of 64 numbers and between them, and numbers that occur twice, are
        found as they are."""
        wanted = [
            *range(70),
            71,
            *range(128, 192),
            200,
            200,
            5,
            *range(1000, 1064),
            *range(1064, 1066),
        ]
        rows = [("a" * 40, 1, number) for number in wanted] + [("b" * 40, 1, 7)]
        events = self.spark.createDataFrame(rows, "node STRING, boot BIGINT, seq BIGINT")
        found = Runs(counted_runs(events))
        self.assertEqual({(node, number) for node, _, number in rows}, numbers(found))
        self.assertEqual(6, len(list(found)))
        self.assertEqual(2, len(counted_runs(events, limit=2)))


class FilesTests(SynchronousTestCase):
    """Runs that this process finds in files."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp())
        self.folder.mkdir()

    def written(self, name: str, rows: list[tuple[str, int, int]], group_rows: int = 40) -> str:
        """A Parquet file with these events, in groups of a few rows."""
        node, boot, seq = zip(*rows, strict=True)
        path = str(self.folder / f"{name}.parquet")
        table = pa.table({"seq": seq, "kind": ["added"] * len(seq), "node": node, "boot": boot})
        pq.write_table(table, path, row_group_size=group_rows)
        return path

    @given(_GIVEN.filter(bool), st.booleans())
    def test_same_numbers(self, given: list[tuple[str, int, int]], is_mixed: bool) -> None:
        """The numbers in files are counted as they are, with gaps, twice, or in another order, so
        that an event is neither missed nor taken for a known one."""
        rows = [
            (run.node, run.boot, number)
            for run in runs_of(given)
            for number in range(run.first, run.last + 1)
        ]
        if is_mixed:
            rows = rows[::2] + rows[1::2][::-1]
        half = len(rows) // 2 + 1
        paths = [self.written("a", rows[:half], 3)]
        if rows[half:]:
            paths.append(self.written("b", rows[half:]))
        found = runs_in_files(paths, 1000)
        self.assertEqual(list(Runs(runs_of(given))), found)

    def test_starts(self) -> None:
        """A node begins at 0 again after each start, so numbers of two starts are no run, even if
        the one goes on where the other ended."""
        node = "a" * 40
        path = self.written("a", [(node, 1, 0), (node, 1, 1), (node, 2, 2), ("b" * 40, 2, 3)])
        expected = [Run(node, 1, 0, 1), Run(node, 2, 2, 2), Run("b" * 40, 2, 3, 3)]
        self.assertEqual(expected, runs_in_files([path], 3))

    def test_out_of_order(self) -> None:
        """When numbers are so mixed that their parts would fill memory, this process gives up, and
        Spark counts them."""
        path = self.written("a", [("a" * 40, 1, number) for number in range(198, -1, -2)])
        self.assertEqual(100, len(runs_in_files([path], 100) or ()))
        self.assertIs(None, runs_in_files([path], 99))

    def test_nothing(self) -> None:
        """Without files there are no runs."""
        self.assertEqual([], runs_in_files([], 10))
