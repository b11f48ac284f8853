"""Rows whose bodies could not be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from disque_tx.spark.errors import BadColumn, BadOption, BadRecords
from disque_tx.spark.foreach.records import good_records
from tests.spark.nodes import IDS, NodesTestCase
from tests.spark.shared import shared_session

_ERRORS = (None, "no JSON", None, "no JSON", "no task")


class RecordTests(NodesTestCase):
    """A batch in which some are bad."""

    def rows(self, errors: tuple[str | None, ...] = _ERRORS) -> DataFrame:
        """Rows with these errors."""
        found = list(zip(IDS, errors, strict=False))
        return shared_session().createDataFrame(found, "id string, error string")

    def good(self, *how: str, **words: Any) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        return sorted(tuple(row) for row in good_records(self.rows(), *how, **words).collect())

    def test_fail(self) -> None:
        """Unless told otherwise the query stops, and the error names a job and what is wrong with
        it; without bad ones it goes on."""
        error = self.assertRaises(BadRecords, good_records, self.rows())
        self.assertIn("no ", str(error))
        self.assertTrue(any(job_id in str(error) for job_id in IDS))
        left = good_records(self.rows((None, None)))
        self.assertEqual((["id"], 2), (left.columns, left.count()))

    def test_column(self) -> None:
        """A query that looks after them itself gets all rows, with their errors."""
        rows = self.rows()
        self.assertEqual(rows.collect(), good_records(rows, "column").collect())

    def test_dead_letter(self) -> None:
        """They go back with their errors as reasons, each once, and the others are left."""
        node = self.node(NACK=b":1\r\n")
        words = {"servers": node.address, "checkpoint": str(Path(self.mktemp()).resolve())}
        self.assertEqual([(IDS[0],), (IDS[2],)], self.good("dead-letter", **words))
        self.assertEqual(
            [(IDS[1], "no JSON"), (IDS[3], "no JSON"), (IDS[4], "no task")],
            sorted((words[-1].decode(), words[2].decode()) for words in node.requests),
        )

    def test_missing(self) -> None:
        """What is missing is an error before anything is given back."""
        node = self.node(NACK=b":1\r\n")
        for words in ({}, {"servers": node.address}, {"checkpoint": "c"}):
            self.assertRaises(BadOption, good_records, self.rows(), "dead-letter", **words)
        self.assertRaises(BadOption, good_records, self.rows(), "deadletter")
        for column in ("id", "error"):
            error = self.assertRaises(BadColumn, good_records, self.rows().drop(column))
            self.assertIn(f"'{column}' is missing", str(error))
        self.assertEqual([], node.requests)
