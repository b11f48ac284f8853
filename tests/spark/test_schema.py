"""The columns, and the pages that document them."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.schema import (
    AOF_JOBS_DDL,
    AOF_RECORDS_DDL,
    EVENTS_DDL,
    arrow_schema,
    jobs_ddl,
    text,
)

_REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
_ROW = re.compile(r"^\| (`[^|]*`) \| (\w+) \|", re.MULTILINE)
_WORDS = {"string": pa.string(), "number": pa.int64(), "numbers": pa.int64()}


class SchemaTests(SynchronousTestCase):
    """Each format has one schema."""

    def test_events_are_as_documented(self) -> None:
        """Each documented field of the event log is a column of that type, and there are no
        others."""
        documented: dict[str, pa.DataType] = {}
        for names, kind in _ROW.findall((_REFERENCE / "events.md").read_text()):
            for name in re.findall(r"`([^`]+)`", names):
                if kind in _WORDS:
                    documented[name] = _WORDS[kind]
        documented["time"] = pa.timestamp("us", "UTC")
        columns = arrow_schema(EVENTS_DDL)
        self.assertEqual(documented, dict(zip(columns.names, columns.types, strict=True)))

    def test_columns_are_documented(self) -> None:
        """The reference of the formats contains the exact schemas."""
        reference = " ".join((_REFERENCE / "spark.md").read_text().split())
        for ddl in (jobs_ddl(False), jobs_ddl(True), AOF_JOBS_DDL):
            self.assertIn(ddl, reference)

    def test_arrow(self) -> None:
        """No column is lost in the conversion to Arrow."""
        for ddl in (jobs_ddl(False), jobs_ddl(True), AOF_JOBS_DDL, AOF_RECORDS_DDL, EVENTS_DDL):
            self.assertEqual(ddl.count(",") + 1, len(arrow_schema(ddl)))
        self.assertEqual(pa.binary(), arrow_schema(jobs_ddl(True)).field("body").type)

    def test_names(self) -> None:
        """Names that are not UTF-8 stay distinguishable."""
        self.assertEqual("\u00e9\\xff", text(b"\xc3\xa9\xff"))
