"""``ingest`` by DuckDB does what Spark does with the same files, hostile ones included, and may be
killed at the same places."""

from __future__ import annotations

import json
from pathlib import Path

from deltalake import DeltaTable

from disque_tx.spark.pipeline.ingest import ingestion, lines
from disque_tx.spark.pipeline.ingest.batches import IngestReport, Step
from disque_tx.spark.pipeline.ingest.ingestion import ingest as by_spark
from disque_tx.spark.pipeline.ingest.lines import FilePart, Unreadable
from disque_tx.spark.pipeline.local.ingestion import ingest as by_duckdb
from disque_tx.spark.pipeline.local.lifecycle import lifecycle
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.ingest import test_examination, test_ingest
from tests.spark.pipeline.ingest.test_ingest import busy_node
from tests.spark.pipeline.local.tables import anything, rows
from tests.spark.pipeline.logs import Event, Node, job_id, segment, write

_BY_DUCKDB = "from disque_tx.spark.pipeline.local.ingestion import ingest\n"


class DuckCase(PipelineCase):
    """A test whose engine is DuckDB; what it leaves on the disk is checked at the end."""

    def add(
        self, *paths: str | Path, into: str | None = None, step: Step = lambda _: None
    ) -> IngestReport:
        """Ingest into a table, by default that of this test."""
        return by_duckdb(map(str, paths), into or self.table, step)

    def tearDown(self) -> None:
        self.assertEqual([], list(self.folder.glob(".*")))


class IngestTests(DuckCase, test_ingest.IngestTests):
    """The content of the table after an ingest by DuckDB."""


class InterruptedTests(DuckCase, test_ingest.InterruptedTests):
    """DuckDB is killed between any two steps."""

    engine = _BY_DUCKDB
    killed = ((0, "kept"), (0, "committed"), (1, "kept"))


class ExaminationTests(DuckCase, test_examination.IngestTests):
    """Many files at once, by DuckDB."""


class SameTests(PipelineCase):
    """The same files, by both engines, and by tasks of Spark even where threads would do."""

    def setUp(self) -> None:
        super().setUp()
        self.patch(ingestion, "_HERE_BYTES", 0)

    def assert_same(self, *paths: Path) -> None:
        """Assert that both engines make the same of these files: tables, rejected lines, notes and
        transactions, and what they report."""
        self.tables = [str(self.folder / name) for name in ("by-spark", "by-duckdb")]
        spark, duckdb = self.tables
        words = [str(path) for path in paths]
        self.assertEqual(by_spark(self.spark, words, spark), by_duckdb(words, duckdb))
        self.assertEqual(rows(spark), rows(duckdb))
        events = [event for path in paths for event in self.events(path)]
        apps = {"ingest", *(f"ingest/{node}/{boot}" for node, boot in events)}
        one, other = (
            (
                log.notes(),
                log.schema,
                {file.partition["dt"] for file in log.files()},
                {app: log.last(app) for app in apps},
            )
            for log in map(DeltaLog, self.tables)
        )
        self.assertEqual(one, other)

    def events(self, path: Path) -> list[tuple[str, str]]:
        """Node and start of each event in the files of a folder that are not compressed."""
        found = []
        for file in path.rglob("*.jsonl"):
            for line in file.read_bytes().splitlines():
                try:
                    event: Event = json.loads(line)
                    found.append((event["source"].removeprefix("disque:"), event["id"]))
                except (ValueError, KeyError, TypeError, AttributeError):
                    continue
        return [(node, number.partition(".")[0]) for node, number in found]

    def test_anything(self) -> None:
        """Every column of every event is the same, and so is what commits say."""
        for at, node in enumerate(anything(2, "abc", 200)):
            write(self.folder / "logs" / f"{at}.jsonl", node.events)
        self.assert_same(self.folder / "logs")

    def test_lines(self) -> None:
        """Lines that are not events are rejected by both engines, for the same reasons, and their
        neighbours kept."""
        node = Node("a")
        for number in range(12):
            node.log(number, "added", job_id(number), note="\u0000 \u2028 ü", queue='}{"}')
        first, *others = (json.dumps(event) for event in node.events)
        wrong = [
            *("", "[1]", "1", '"text"', "{}", "x", '{"a":', '{"jobs":"many"}', "}{", "   "),
            first.replace('"1.0"', '"1.1"'),
            first.replace("disque:", "other:"),
            first.replace("disque.job.added", "com.example"),
            first.replace('"subject"', '"object"'),
            first.replace(':00Z"', ':x"').replace("2026", "a2026"),
            first.replace('"id": "', '"id": "x'),
        ]
        text = "\n".join(
            line for pair in zip(wrong, [*others, *others], strict=False) for line in pair
        )
        path = self.folder / "logs" / "[x] {y} 50% %41 ü+?" / "x.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(f"{first}\r\n{text}\n{others[0]}{others[1]}\n{first[:40]}")
        self.assert_same(self.folder / "logs")
        one, other = (rows(f"{table}/_rejected") for table in self.tables)
        self.assertEqual(one, other)

    def test_not_utf8(self) -> None:
        """Bytes that are not UTF-8 cost at most the characters that they stand for."""
        node = busy_node()
        path = write(self.folder / "logs" / "x.jsonl", node.events)
        path.write_bytes(path.read_bytes().replace(b'"mail"', b'"m\xff\xc3l"'))
        self.assert_same(path.parent)
        self.assertEqual({"m\ufffd\ufffdl"}, {row[6] for row in rows(self.tables[1])[1]})

    def test_in_turn(self) -> None:
        """One engine goes on where the other ended: known files are not read, known events not
        added, and of two at the same time one fails."""
        for at, letter in enumerate("abcd"):
            segment(self.folder / "logs", busy_node(letter).events)
            write(self.folder / "logs" / "all.jsonl", busy_node(letter).events)
            words = [str(self.folder / "logs")]
            ran = (
                by_duckdb(words, self.table) if at % 2 else by_spark(self.spark, words, self.table)
            )
            self.assertEqual((2, 80, 80), (ran.files, ran.new, ran.duplicates))
            again = [by_duckdb(words, self.table), by_spark(self.spark, words, self.table)]
            self.assertEqual([0, 0], [report.files for report in again])
        self.assert_each_once([e for letter in "abcd" for e in busy_node(letter).events])

    def test_last_day(self) -> None:
        """The last moment that a time can have does not stop what follows."""
        node = busy_node()
        node.events[0]["time"] = "9999-12-31T23:59:59.999999Z"
        by_duckdb([str(write(self.folder / "x.jsonl", node.events))], self.table)
        made = lifecycle(self.table, str(self.folder / "out"))
        jobs = len(DeltaTable(made.paths["jobs"]).to_pyarrow_table(columns=["job_id"]))
        self.assertEqual(20, jobs)

    def test_changed_file(self) -> None:
        """A file that is cut off after it was examined adds nothing; it can be read again when it
        is whole."""
        path = segment(self.folder / "logs", busy_node().events)
        whole = path.read_bytes()

        def cut(part: FilePart) -> object:
            Path(part.path).write_bytes(whole[:-3])
            return lines_of(part)

        lines_of = lines._content
        self.patch(lines, "_content", cut)
        self.assertRaises(Unreadable, by_duckdb, [str(path)], self.table)
        self.assertEqual([], DeltaLog(self.table).files())
        self.patch(lines, "_content", lines_of)
        path.write_bytes(whole)
        self.assertEqual(80, by_duckdb([str(path)], self.table).new)
