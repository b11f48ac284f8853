"""Files by partition have all rows that were written, however few at a time and for however many
days, in row groups of a useful size."""

from __future__ import annotations

import gc
import resource
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.tables import partitions
from disque_tx.spark.pipeline.tables.deltalog import DataFile
from disque_tx.spark.pipeline.tables.partitions import PartitionedFiles

_SCHEMA = pa.schema([("at", pa.int64()), ("text", pa.string()), ("dt", pa.date32())])
_FIRST = date(2026, 11, 20)


def rows(numbers: range, days: int = 1, text: str = "x") -> pa.Table:
    """Rows with these numbers, of so many days in turn."""
    dates = [_FIRST + timedelta(number % days) for number in numbers]
    columns = {"dt": dates, "at": list(numbers), "text": [text] * len(numbers)}
    return pa.table(columns, pa.schema([_SCHEMA.field(name) for name in columns]))


class PartitionTests(SynchronousTestCase):
    """Rows written to files and read again."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp()).resolve()

    def files(self, partition_by: str | None = "dt") -> PartitionedFiles:
        """Files in a folder of the table of this test."""
        return PartitionedFiles(str(self.root), "batch", _SCHEMA, partition_by, ("at",))

    def read(self, files: list[DataFile]) -> list[tuple[int, str | None]]:
        """Number and day of each row in files, by the number."""
        found = list[tuple[int, str | None]]()
        for file in files:
            stored = pq.read_table(self.root / file.path, partitioning=None)
            self.assertEqual((file.rows, file.size), (len(stored), self.size(file)))
            found += [(at, file.partition["dt"]) for at in stored["at"].to_pylist()]
        return sorted(found)

    def size(self, file: DataFile) -> int:
        """The bytes of a file on the disk."""
        return (self.root / file.path).stat().st_size

    def groups(self, file: DataFile) -> list[int]:
        """How many rows each row group of a file has."""
        footer = pq.read_metadata(self.root / file.path)
        return [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]

    def test_by_day(self) -> None:
        """A row is in the folder of its day, and the day in no file: a reader has it from there.
        Statistics name the least and greatest number."""
        files = self.files()
        files.write(rows(range(10), 3))
        files.write(rows(range(10, 20), 3))
        found = sorted(files.close(), key=lambda file: file.path)
        self.assertEqual(3, len(found))
        expected = [(at, str(_FIRST + timedelta(at % 3))) for at in range(20)]
        self.assertEqual(expected, self.read(found))
        self.assertEqual({f"batch/dt=2026-11-{day}" for day in (20, 21, 22)}, self.folders(found))
        self.assertEqual(["at", "text"], pq.read_schema(self.root / found[0].path).names)
        self.assertIn('"maxValues": {"at": 18, "text": "x"}', found[0].statistics)

    def folders(self, files: list[DataFile]) -> set[str]:
        """The folders that files are in."""
        return {file.path.rpartition("/")[0] for file in files}

    def test_groups(self) -> None:
        """Few rows at a time become large row groups, except where rows are so large that memory
        would not do."""
        self.patch(partitions, "_GROUP_ROWS", 100)
        files = self.files()
        for at in range(0, 250, 10):
            files.write(rows(range(at, at + 10)))
        (file,) = files.close()
        self.assertEqual([100, 100, 50], self.groups(file))
        self.patch(partitions, "_GROUP_BYTES", 5000)
        files = self.files()
        for at in range(0, 50, 10):
            files.write(rows(range(at, at + 10), text="x" * 300))
        (file,) = files.close()
        self.assertEqual([20, 20, 10], self.groups(file))

    def test_many_days(self) -> None:
        """Neither the number of open files nor the memory grows with the days that there are; a day
        may have several files for that."""
        self.patch(partitions, "_OPEN_MAX", 3)
        self.patch(partitions, "_KEPT_BYTES_MAX", 500)
        files = self.files()
        for at in range(0, 200, 20):
            files.write(rows(range(at, at + 20), 10))
            self.assertLessEqual(files._kept_bytes, 500)
            self.assertLessEqual(len(files._open), 3)
        found = files.close()
        self.assertGreater(len(found), 10)
        self.assertEqual(
            [(at, str(_FIRST + timedelta(at % 10))) for at in range(200)], self.read(found)
        )

    def test_first_and_last_days(self) -> None:
        """Days that Python has no dates for have folders, too, as a file of anybody may have
        them."""
        days = pa.array([-719_529, 0, 2_932_896], pa.date32())
        columns = [pa.array([1, 2, 3]), pa.array(["x"] * 3), days]
        files = self.files()
        files.write(pa.table(columns, _SCHEMA))
        folders = self.folders(files.close())
        self.assertEqual(3, len(folders))
        self.assertLessEqual({"batch/dt=1970-01-01", "batch/dt=9999-12-31"}, folders)

    def test_no_partitions(self) -> None:
        """Without a column for it, all rows are in one file, with all columns."""
        files = self.files(None)
        files.write(rows(range(10), 3))
        (file,) = files.close()
        self.assertEqual({}, file.partition)
        stored = pq.read_table(self.root / file.path, partitioning=None)
        self.assertEqual(rows(range(10), 3).select(_SCHEMA.names), stored)

    def test_full_disk(self) -> None:
        """When a file cannot grow, the error is raised once, and nothing is said again when the
        files are freed."""
        said: list[Any] = []
        self.patch(sys, "unraisablehook", said.append)
        self.patch(partitions, "_GROUP_ROWS", 100)
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
        try:
            self.assertRaises(OSError, self.write_much)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        gc.collect()
        self.assertEqual([], said)

    def write_much(self) -> None:
        """Write some kilobytes."""
        with self.files() as files:
            for at in range(0, 100_000, 1000):
                files.write(rows(range(at, at + 1000), 3))
            files.close()

    def test_nothing(self) -> None:
        """Without rows there is no file, and no folder."""
        files = self.files()
        files.write(rows(range(0)))
        self.assertEqual([], files.close())
        self.assertFalse(self.root.exists())
