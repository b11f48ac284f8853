"""Append only files become tables."""

from __future__ import annotations

from pathlib import Path

from disque_tx.spark.errors import BadOption, OutputExists
from disque_tx.spark.pipeline.transfer.export import export
from tests.spark.pipeline.cases import PipelineCase

_LOGS = Path(__file__).resolve().parents[3] / "vectors" / "aof"


class ExportTests(PipelineCase):
    """``export``."""

    def test_of_the_original(self) -> None:
        """Files of the original become one table, in which each row names its file."""
        logs = [str(_LOGS / f"node{number}.aof") for number in range(3)]
        exported = export(self.spark, logs, self.table)
        rows = self.read(self.table)
        self.assertEqual(rows.count(), exported.jobs)
        self.assertEqual(12, rows.where("file LIKE '%node0.aof'").count())
        self.assertEqual((3, []), (exported.files, exported.damages))
        self.assertGreater(exported.bytes, 0)

    def test_damaged(self) -> None:
        """A truncated file is read up to the damage, and its name and the offset are reported."""
        whole = (_LOGS / "node0.aof").read_bytes()
        cut = self.folder / "node" / "cut.aof"
        cut.parent.mkdir()
        cut.write_bytes(whole[:-5])
        (damage,) = export(self.spark, [str(cut.parent)], self.table).damages
        self.assertEqual(str(cut), damage.file)
        self.assertLess(damage.offset, len(whole) - 5)
        self.assertIn("cut", damage.what)

    def test_empty(self) -> None:
        """The file of a node that never had a job gives a table without rows."""
        (self.folder / "new.aof").touch()
        exported = export(self.spark, [str(self.folder / "new.aof")], self.table)
        self.assertEqual((0, 0, 0), (exported.jobs, exported.files, exported.bytes))
        self.assertIn("body", self.read(self.table).columns)

    def test_existing(self) -> None:
        """An existing table is replaced only on request, and only after the new one is complete."""
        log = str(_LOGS / "node0.aof")
        export(self.spark, [log], self.table)
        with self.assertRaises(OutputExists):
            export(self.spark, [log], self.table)
        with self.assertRaises(BadOption):
            export(self.spark, [str(self.folder / "none.aof")], self.table, overwrite=True)
        self.assertEqual(12, self.read(self.table).count())
        self.assertEqual(12, export(self.spark, [log], self.table, overwrite=True).jobs)
        self.assertEqual(["table"], [path.name for path in self.folder.iterdir()])
