"""Which folders can be those of tables."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import BadPath, BadTable, OutputExists
from disque_tx.spark.pipeline.local.ingestion import ingest
from disque_tx.spark.pipeline.published import ResultTable
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.events import EventTableLog
from disque_tx.spark.schema import arrow_schema

_COLUMNS = arrow_schema("n BIGINT")


class PlaceTests(SynchronousTestCase):
    """Names of folders, and what is in them."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()

    def test_names(self) -> None:
        """A name that the library takes for another one is refused before anything is made, so that
        nobody writes to a table that was not meant; all others can be used."""
        DeltaLog.create(f"{self.folder}/aA", _COLUMNS, "numbers")
        for name in ("a%41", "a%2fb", "a\\b", "a\nb"):
            root = f"{self.folder}/{name}"
            self.assertRaises(BadPath, DeltaLog.create, root, _COLUMNS, "numbers")
            self.assertRaises(BadPath, DeltaLog, root)
            self.assertRaises(BadPath, ingest, [f"{self.folder}/aA"], root)
        for name in ("a b", "a%", "100%4", "ä?#[x]*'\""):
            DeltaLog.create(f"{self.folder}/{name}", _COLUMNS, "numbers")
            self.assertEqual(0, DeltaLog(f"{self.folder}/{name}").version)
        made = sorted(path.name for path in self.folder.iterdir())
        self.assertEqual(sorted(["aA", "a b", "a%", "100%4", "ä?#[x]*'\""]), made)

    def test_not_created(self) -> None:
        """What is left where a table could not be created, as on a full disk, does not keep the
        same command from creating it later; anything else does."""
        logs = self.folder / "logs"
        logs.mkdir()
        for name in ("events", "results"):
            left = self.folder / name / "_delta_log"
            left.mkdir(parents=True)
            (left / f"{0:020}.json#1").touch()
        ingest([str(logs)], str(self.folder / "events"))
        self.assertEqual(0, EventTableLog(str(self.folder / "events")).log.version)
        ResultTable(f"{self.folder}/results", "numbers").begin(_COLUMNS)
        self.assertEqual("numbers", DeltaLog(f"{self.folder}/results").what)
        (self.folder / "other" / "_delta_log").mkdir(parents=True)
        (self.folder / "other" / "mine.txt").touch()
        other = str(self.folder / "other")
        self.assertRaises(BadTable, ingest, [str(logs)], other)
        self.assertRaises(OutputExists, ResultTable, other, "numbers")
