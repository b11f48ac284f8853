"""Which rows of a table become jobs, and with which options."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Row

from disque_tx.spark.errors import BadColumn, BadOption, NothingToRead
from disque_tx.spark.pipeline.transfer.load import bodies
from disque_tx.spark.pipeline.transfer.target import Target
from tests.spark.pipeline.cases import PipelineCase


class BodiesTests(PipelineCase):
    """Rows."""

    def setUp(self) -> None:
        super().setUp()
        rows = [Row(**{"a line": "ä", "number": 1}), Row(**{"a line": None, "number": 2})]
        self.spark.createDataFrame(rows).write.json(self.table)

    def test_counts(self) -> None:
        """Rows without a body are counted and left out; sizes are those of UTF-8."""
        rows = bodies(self.spark, self.table, "a line", form="json")
        self.assertEqual((1, 1, 2), (rows.count, rows.nulls, rows.bytes))
        self.assertEqual([Row(body="ä")], rows.jobs.collect())
        self.assertEqual(2, len(list(rows.summary("q"))))
        self.assertEqual(0, bodies(self.spark, self.table, "a line", "number > 1", "json").count)

    def test_errors(self) -> None:
        """A column that is not there, one that is no text, and a table that is not there."""
        for column, said in (("line", "a line, number"), ("number", "bigint")):
            with self.assertRaises(BadColumn) as raised:
                bodies(self.spark, self.table, column, form="json")
            self.assertIn(said, str(raised.exception))
        with self.assertRaises(NothingToRead):
            bodies(self.spark, f"{self.table}-no")


class TargetTests(PipelineCase):
    """Options of the nodes."""

    def given(self, **words: Any) -> Target:
        """As the command line gives them."""
        names = ("password", "cacert", "cert", "key", "replicate", "retry_s", "ttl_s")
        return Target.from_options(
            **{"servers": "h:1", "tls": False, **dict.fromkeys(names), **words}
        )

    def test_options(self) -> None:
        """What is given reaches the sink, what is not does not; jobs show when all are there."""
        target = self.given(retry_s=0, replicate=2, tls=True)
        self.assertEqual(
            {"retry": "0", "disque.replicate": "2", "disque.tls": "true"}, target.options
        )
        self.assertEqual("staged", target.all_options()["deliveryMode"])

    def test_password(self) -> None:
        """Nobody reads it in a traceback or a log."""
        self.assertNotIn("secret", repr(self.given(password="secret")))
        with self.assertRaises(BadOption) as raised:
            self.given(servers="disque://:secret@h:1")
        self.assertNotIn("secret", str(raised.exception))

    def test_wrong(self) -> None:
        """What cannot be is refused before anything is read."""
        for words in ({"servers": "h:x"}, {"ttl_s": 0}):
            with self.assertRaises(BadOption):
                self.given(**words)
