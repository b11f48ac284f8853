"""How Spark runs queries over few rows, and over many."""

from __future__ import annotations

from disque_tx.spark.pipeline.lifecycle import sizing
from disque_tx.spark.pipeline.lifecycle.sizing import FEW_ROWS, Sizing
from disque_tx.spark.pipeline.tables.deltalog import DataFile
from tests.spark.pipeline.cases import PipelineCase

_WHOLE_STAGE = "spark.sql.codegen.wholeStage"
_PARTITIONS = "spark.sql.shuffle.partitions"


def _file(rows: int) -> DataFile:
    return DataFile(path="x", size=1, modified_ms=1, rows=rows, partition={})


class SizingTests(PipelineCase):
    """Settings of a session."""

    def setUp(self) -> None:
        super().setUp()
        self.spark.conf.set(_WHOLE_STAGE, "true")

    def got(self) -> tuple[str | None, str | None]:
        """Two of the settings."""
        return self.spark.conf.get(_WHOLE_STAGE), self.spark.conf.get(_PARTITIONS)

    def test_few(self) -> None:
        """Nothing is compiled for few rows, and the session is as before after it, also after an
        error."""
        with self.assertRaises(KeyError), Sizing(self.spark) as few:
            few.read([_file(FEW_ROWS - 1), _file(1)])
            self.assertEqual(("false", "1"), self.got())
            written = few.together(self.spark.range(100).repartition(3))
            self.assertEqual(1, written.rdd.getNumPartitions())
            raise KeyError
        self.assertEqual(("true", "2"), self.got())

    def test_many(self) -> None:
        """As soon as more rows are read in all, the settings are those of the user."""
        with Sizing(self.spark) as few:
            few.read([_file(FEW_ROWS)])
            few.read([_file(1)])
            self.assertEqual(("true", "2"), self.got())
            plan = few.together(self.spark.range(100))._jdf.queryExecution().toString()
            self.assertIn("RebalancePartitions", plan)
            self.spark.conf.set(_PARTITIONS, "3")
        self.assertEqual(("true", "3"), self.got())

    def test_unset(self) -> None:
        """A setting that had no value has none afterwards."""
        name = "spark.sql.unheardOf"
        self.patch(sizing, "_FOR_FEW", {name: "1"})
        with Sizing(self.spark):
            self.assertEqual("1", self.spark.conf.get(name))
        self.assertIsNone(self.spark.conf.get(name, None))
