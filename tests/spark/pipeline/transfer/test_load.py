"""The rows of a table that become jobs, and their options."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result
from pyspark.sql import Row

from disque_tx.spark.errors import BadColumn, BadOption, NothingToRead
from disque_tx.spark.pipeline.cli import program as cli
from disque_tx.spark.pipeline.transfer.load import bodies
from disque_tx.spark.pipeline.transfer.target import TransferTarget
from tests.client.scripted import ScriptedNode
from tests.spark.pipeline.cases import PipelineCase


class BodiesTests(PipelineCase):
    """Rows and their bodies."""

    def setUp(self) -> None:
        super().setUp()
        rows = [Row(**{"a line": "ä", "number": 1}), Row(**{"a line": None, "number": 2})]
        self.spark.createDataFrame(rows).write.json(self.table)

    def test_counts(self) -> None:
        """Rows without a body are counted and skipped; sizes are those in UTF-8."""
        rows = bodies(self.spark, self.table, "a line", form="json")
        self.assertEqual((1, 1, 2), (rows.count, rows.nulls, rows.bytes))
        self.assertEqual([Row(body="ä")], rows.jobs.collect())
        self.assertEqual(2, len(list(rows.summary("q"))))
        self.assertEqual(0, bodies(self.spark, self.table, "a line", "number > 1", "json").count)

    def test_errors(self) -> None:
        """A missing column, a column that is not text, and a missing table are errors."""
        for column, words in (("line", "a line, number"), ("number", "bigint")):
            with self.assertRaises(BadColumn) as raised:
                bodies(self.spark, self.table, column, form="json")
            self.assertIn(words, str(raised.exception))
        with self.assertRaises(NothingToRead):
            bodies(self.spark, f"{self.table}-no")


class AskingTests(PipelineCase):
    """The command, before it adds anything."""

    def load(self, *words: str, answer: str = "") -> Result:
        """Load two rows into a queue of a node that is not there."""
        self.spark.createDataFrame([("x",), ("y",)], "body string").write.mode("overwrite").json(
            self.table
        )
        gone = ScriptedNode()
        gone.close()
        target = ["--queue", "q", "--servers", gone.address, "--format", "json"]
        common = ["--master", "local[2]", "--no-progress", "load", self.table, *target]
        return CliRunner().invoke(cli.command, [*common, *words], input=answer)

    def test_dry_run(self) -> None:
        """A dry run says what would be added, and neither asks nor adds."""
        done = self.load("--dry-run")
        self.assertEqual(0, done.exit_code, done.output)
        self.assertIn("2 jobs", done.output)
        self.assertNotIn("Add 2 jobs at", done.output)
        self.assertEqual(done.output, self.load("--dry-run", "--yes").output)

    def test_asked(self) -> None:
        """Nothing is added unless the user agrees, or has said so before."""
        refused = self.load(answer="n\n")
        self.assertEqual(1, refused.exit_code)
        self.assertIn("Add 2 jobs at", refused.output)
        self.assertNotIn("jobs added", refused.output)
        self.assertNotIn("Add 2 jobs at", self.load("--yes").output)


class TargetTests(PipelineCase):
    """The options about nodes."""

    def given(self, **words: Any) -> TransferTarget:
        """A target with options as given on the command line."""
        names = ("password", "cacert", "cert", "key", "replicate", "retry_s", "ttl_s")
        return TransferTarget.from_options(
            **{"servers": "h:1", "tls": False, **dict.fromkeys(names), **words}
        )

    def test_options(self) -> None:
        """Given options are passed to the sink, and others are not; jobs become visible when all
        were added."""
        target = self.given(retry_s=0, replicate=2, tls=True)
        self.assertEqual(
            {"retry": "0", "disque.replicate": "2", "disque.tls": "true"}, target.options
        )
        self.assertEqual("staged", target.all_options()["deliveryMode"])

    def test_password(self) -> None:
        """The password is not shown in tracebacks or logs."""
        self.assertNotIn("secret", repr(self.given(password="secret")))
        with self.assertRaises(BadOption) as raised:
            self.given(servers="disque://:secret@h:1")
        self.assertNotIn("secret", str(raised.exception))

    def test_wrong(self) -> None:
        """Impossible options are refused before anything is read."""
        for words in ({"servers": "h:x"}, {"ttl_s": 0}):
            with self.assertRaises(BadOption):
                self.given(**words)
