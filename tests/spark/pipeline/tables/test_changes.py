"""What was added to a table since a version, and which files may have what is looked for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.tables.changes import NotOnlyAdded, added_since
from disque_tx.spark.pipeline.tables.deltalog import DataFile, DeltaLog
from disque_tx.spark.pipeline.tables.footers import written
from disque_tx.spark.pipeline.tables.spans import SMALL_MAX, Spans, to_replace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCHEMA = pa.schema([("time", pa.timestamp("us", "UTC")), ("dt", pa.string())])
_CUT_US = 999


class ChangesCase(SynchronousTestCase):
    """A table to which files are added, without Spark."""

    def setUp(self) -> None:
        self.root = str(Path(self.mktemp()).resolve())
        self.log = DeltaLog.create(self.root, _SCHEMA, "times", ("dt",))

    def add(self, day: str, times_us: Iterable[int]) -> str:
        """Add a file with these times; returns its path."""
        folder = f"batch-{self.log.version}"
        path = Path(self.root, folder, f"dt={day}", "x.parquet")
        path.parent.mkdir(parents=True)
        times = [_EPOCH + timedelta(microseconds=time) for time in times_us]
        pq.write_table(pa.table({"time": pa.array(times, _SCHEMA.field(0).type)}), path)
        self.log.commit(written(self.root, folder))
        return f"{folder}/dt={day}/x.parquet"

    def assert_unknown(self, words: str, version: int) -> None:
        """Assert that what was added is not known, for a reason."""
        with self.assertRaises(NotOnlyAdded) as raised:
            added_since(self.log, version)
        self.assertIn(words, str(raised.exception))


class ChangesTests(ChangesCase):
    """``added_since``."""

    def test_added(self) -> None:
        """The files of later commits are found, also when a reader looks at an earlier version."""
        names = [self.add("2026-11-20", [at]) for at in (1, 2, 3)]
        for version in range(4):
            self.assertEqual(names[version:], added_since(self.log, version))
        self.assertEqual(names[1:2], added_since(DeltaLog(self.root, as_of=2), 1))

    def test_merged(self) -> None:
        """Merging adds nothing; what was added before it is found until its files are removed."""
        names = [self.add("2026-11-20", [at]) for at in (1, 2)]
        self.log.compact(["2026-11-20"])
        self.assertEqual(names, added_since(self.log, 0))
        self.assertEqual([], added_since(self.log, 2))
        self.log.vacuum(0)
        self.assertEqual([], added_since(self.log, 2))
        self.assert_unknown("removed by vacuum", 1)

    def test_deleted(self) -> None:
        """Since rows were deleted it is not enough to know what was added; later it is again."""
        self.add("2026-11-20", [1])
        self.add("2026-11-21", [2])
        self.log.delete("dt < '2026-11-21'", {})
        self.assert_unknown("events were deleted", 1)
        name = self.add("2026-11-22", [3])
        self.assertEqual([name], added_since(self.log, 3))

    def test_gone(self) -> None:
        """A log that was cleaned, and a version that does not exist yet, are said."""
        self.add("2026-11-20", [1])
        Path(self.root, "_delta_log", f"{1:020}.json").unlink()
        self.assert_unknown("does not go back so far", 0)
        self.assert_unknown("of a later version", 9)


class SpanTests(ChangesCase):
    """Files are chosen by the times of their rows."""

    def test_touch(self) -> None:
        """Spans have both of their ends; those that overlap become one."""
        spans = Spans([(10, 20), (15, 30), (50, 60)])
        near = {(0, 9): False, (0, 10): True, (22, 25): True, (30, 49): True, (31, 49): False}
        for (begin, end), expected in {**near, (60, 99): True, (61, 99): False}.items():
            self.assertEqual(expected, spans.touch(begin, end), (begin, end))
        self.assertFalse(Spans([]).touch(0, 1))

    def test_files(self) -> None:
        """A file is left out if the times in the log of its table exclude it, to the microsecond
        of its latest row, which the log rounds down; one without times never is."""
        first, second = self.add("2026-11-20", [5_000, 7_777]), self.add("2026-11-21", [9_000])
        unknown = self.add("2026-11-22", [])
        self.assertEqual([first, second], sorted(file.path for file in self.log.files()))
        files = self.log.files("time")
        self.assertNotIn(unknown, {file.path for file in files})
        for span, expected in {
            (0, 4_999): [],
            (7_777, 7_777): [first],
            (7_777 + _CUT_US + 1, 8_999): [],
            (5_500, 9_000): [first, second],
        }.items():
            found = Spans([span]).among(files, "time", "time")
            self.assertEqual(expected, sorted(file.path for file in found), span)
        self.assertEqual([second], [file.path for file in to_replace(files, "time", 8_999)])
        timeless = self.log.files()
        self.assertEqual(timeless, Spans([(0, 1)]).among(timeless, "time", "time"))
        self.assertEqual(timeless, to_replace(timeless, "time", 99_999))

    def test_small_files(self) -> None:
        """Small files of times that do not change stay until there are many, and then become one;
        large ones stay."""
        files = [
            DataFile(str(number), 1 << 10, 0, 1, {}, spans={"time": (number, number)})
            for number in range(SMALL_MAX)
        ]
        large = DataFile("large", 1 << 30, 0, 1, {}, spans={"time": (0, 1)})
        last = SMALL_MAX - 1
        self.assertEqual(files[-1:], to_replace([*files, large], "time", last))
        self.assertEqual(files, list(to_replace([*files, large], "time", last + 1)))
