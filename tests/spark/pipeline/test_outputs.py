"""Tables of results: a wrong name destroys nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import functions as fn

from disque_tx.spark.errors import (
    BadPath,
    BadTable,
    Conflict,
    OutputExists,
    OutputOverlaps,
)
from disque_tx.spark.paths import check_apart, for_spark, resolved
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.outputs import Output
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.transfer.export import export
from disque_tx.spark.pipeline.transfer.replay import Ledger
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Node, job_id

_LOG = Path(__file__).resolve().parents[2] / "vectors" / "aof" / "node0.aof"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class OutputTests(PipelineCase):
    """One table of results."""

    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder / "out"

    def output(self, what: str = "numbers") -> Output:
        """The table in ``out``."""
        return Output(self.spark, str(self.out), what)

    def write_out(self, count: int) -> None:
        """Write numbers to ``out``."""
        output = self.output()
        output.write(self.spark.range(count))
        output.publish()

    def count(self) -> int:
        """How many numbers there are."""
        return self.read(str(self.out)).count()

    def assert_refused(self, words: str, what: str = "numbers", new: bool = False) -> None:
        """Assert that writing is refused for a reason, and changes nothing."""
        before = contents(self.folder)
        with self.assertRaises(OutputExists) as raised:
            output = self.output(what)
            if new:
                output.check_new("--overwrite")
        self.assertIn(words, str(raised.exception))
        self.assertEqual(before, contents(self.folder))

    def test_replaced(self) -> None:
        """Results of ours are replaced on request, whole, also by rows with other columns, and by
        none; the old version can still be read."""
        self.write_out(3)
        self.assert_refused("add --overwrite", new=True)
        output = self.output()
        output.write(self.spark.range(5).selectExpr("id", "array('x') AS more"))
        self.assertEqual((3, 5), (self.count(), output.written().count()))
        output.publish()
        self.assertEqual((5, ["id", "more"]), (self.count(), self.read(str(self.out)).columns))
        self.write_out(0)
        self.assertEqual((0, 3), (self.count(), DeltaLog(str(self.out), as_of=1).rows()))

    def test_two_at_once(self) -> None:
        """Of two that replace a table at the same time, one fails, and no rows are mixed."""
        self.write_out(3)
        for replaced in (None, ()):
            output, late = self.output(), self.output()
            late.write(self.spark.range(2))
            output.write(self.spark.range(5))
            output.publish()
            self.assertRaises(Conflict, late.publish, replaced)
            self.assertEqual(5, self.count())

    def test_part_replaced(self) -> None:
        """Rows that are expected to change are in files of their own, whose rows alone are read and
        replaced; the notes tell what was done."""
        output = self.output()
        output.write(self.spark.range(6).coalesce(1), fn.col("id") < 4)
        output.publish(notes={"version": 1})
        output = self.output()
        files = [file for file in output.files() if output.former([file]).where("id > 3").count()]
        self.assertEqual((2, 1), (len(output.files()), len(files)))
        self.assertEqual([4, 5], sorted(row.id for row in output.former(files).collect()))
        output.write(self.spark.range(10, 12))
        output.publish(files, {"version": 2})
        kept = sorted(row.id for row in self.read(str(self.out)).collect())
        self.assertEqual(([0, 1, 2, 3, 10, 11], {"version": 2}), (kept, self.output().notes))

    def test_failed(self) -> None:
        """An error while the new results are written leaves the old ones."""
        self.write_out(3)
        with self.assertRaises(Exception):  # noqa: B017
            self.output().write(self.spark.range(1).selectExpr("raise_error('x') AS id"))
        self.assertEqual(3, self.count())

    def test_killed(self) -> None:
        """What a process leaves that was killed before it published its first rows needs no option
        to be replaced."""
        DeltaLog.create(str(self.out), pa.schema([("id", pa.int64())]), "numbers")
        self.output().check_new("--overwrite")
        self.write_out(3)
        self.assertEqual(3, self.count())

    def test_foreign_folder(self) -> None:
        """A folder with anything else, and a table of something else, are left alone, and the error
        says how to go on."""
        self.out.mkdir()
        (self.out / "photo").write_text("of somebody")
        self.assert_refused("Choose a new folder, or look")
        (self.out / "photo").unlink()
        self.write_out(3)
        self.assert_refused("a Delta table of something else than letters", what="letters")

    def test_file(self) -> None:
        """A file is not replaced by a table."""
        self.out.write_text("text")
        self.assert_refused("is not replaced")


class PathTests(PipelineCase):
    """Where results may be."""

    def test_overlaps(self) -> None:
        """Results are never written over, into or around what is read, whatever it is called."""
        out = self.folder / "out"
        out.mkdir()
        (self.folder / "link").symlink_to(out)
        for read, words in (
            (out, "is both read and the folder for results"),
            (out / "jobs", "is around"),
            (self.folder, "is in"),
            (self.folder / "link", "is both read"),
            (self.folder / "other" / ".." / "out", "is both read"),
            (f"file:{out}", "is both read"),
            (f"file://{out}/", "is both read"),
        ):
            with self.assertRaises(OutputOverlaps) as raised:
                check_apart(resolved(str(out)), [resolved(str(read))])
            self.assertIn(words, str(raised.exception))
        check_apart(resolved(str(out)), [resolved(f"{out}-2"), "s3://bucket/out"])

    def test_addresses(self) -> None:
        """Paths of other file systems stay as they are, but for the scheme that Spark has for S3;
        names on a disk may look like nothing else."""
        for scheme in ("s3", "s3a", "s3n"):
            self.assertEqual("s3://bucket/x", resolved(f"{scheme}://bucket/x/"))
        self.assertEqual("s3a://bucket/x", for_spark("s3://bucket/x"))
        self.assertEqual("hdfs://h/x", for_spark(resolved("hdfs://h/x")))
        self.assertEqual("file:///a:b/c%20", for_spark(resolved("/a:b/c%20")))

    def test_object_stores(self) -> None:
        """What two libraries would take for different objects is refused before one of them writes,
        and so are keys, which must not be on a command line and are not repeated."""
        for path in (
            "s3://b/x",
            "s3://bucket/a//b",
            "s3://bucket/../b",
            "s3://bucket/%20",
            "s3:///x",
        ):
            with self.assertRaises(BadPath) as raised:
                resolved(path)
            self.assertIn("is not s3://BUCKET/FOLDER", str(raised.exception))
        for path in ("s3://key:secret@bucket/x", "s3://bucket/x?secret_key=secret"):
            with self.assertRaises(BadPath) as raised:
                resolved(path)
            self.assertIn("Set AWS_ACCESS_KEY_ID", str(raised.exception))
            self.assertNotIn("secret@", str(raised.exception))
            self.assertNotIn("=secret", str(raised.exception))


class CommandTests(PipelineCase):
    """What the commands named in the wrong way leave alone."""

    def test_lifecycle_into_its_table(self) -> None:
        """The events, and the ledger in their table, survive ``--into`` with their own name."""
        node = Node("a")
        node.add(0, job_id(1))
        table = Path(self.ingested(node))
        before = contents(self.folder)
        for into in (table, table / "out", self.folder):
            with self.assertRaises(OutputOverlaps):
                lifecycle(self.spark, str(table), str(into), whole=True)
        self.assertEqual(before, contents(self.folder))

    def test_export_into_its_node(self) -> None:
        """The log and the nodes file of a node survive ``--into`` with the name of its folder."""
        home = self.folder / "node"
        home.mkdir()
        (home / "disque.aof").write_bytes(_LOG.read_bytes())
        (home / "nodes.conf").write_text("id")
        before = contents(self.folder)
        for read in (str(home), str(home / "disque.aof"), str(home / "*.aof"), f"file://{home}"):
            with self.assertRaises(OutputOverlaps):
                export(self.spark, [read], str(home), overwrite=True)
        self.assertEqual(before, contents(self.folder))

    def test_lifecycle_into_a_home(self) -> None:
        """A folder of somebody that has the name of a result survives, whatever is in there."""
        node = Node("a")
        node.add(0, job_id(1))
        table = self.ingested(node)
        home = self.folder / "home"
        (home / "jobs").mkdir(parents=True)
        (home / "jobs" / "application.txt").write_text("Dear Sir or Madam")
        before = contents(home)
        with self.assertRaises(OutputExists):
            lifecycle(self.spark, table, str(home), whole=True)
        self.assertEqual(before, contents(home))

    def test_ingest_into_a_foreign_folder(self) -> None:
        """A folder of somebody does not become a table."""
        folder = self.folder / "table" / "dt=2026-11-20"
        folder.mkdir(parents=True)
        (folder / "play.txt").write_text("Act I")
        with self.assertRaises(BadTable):
            ingest(self.spark, [str(self.write())], self.table)
        self.assertEqual(["dt=2026-11-20"], [path.name for path in Path(self.table).iterdir()])

    def test_ingest_into_its_logs(self) -> None:
        """A new table is not made among the logs of a node, which removes old ones there."""
        events = self.write(Node("a"))
        for into in (events / "table", self.folder):
            with self.assertRaises(OutputOverlaps):
                ingest(self.spark, [str(events)], str(into))
        self.assertEqual(["events"], [path.name for path in self.folder.iterdir()])

    def test_ledger(self) -> None:
        """``--unfinished again`` removes open entries of the ledger, and nothing with a similar
        name."""
        root = self.folder / "ledger"
        for name in ("_open-doors", f"_open-{'0' * 32}"):
            (root / name).mkdir(parents=True)
        Ledger(self.spark, str(root)).decide_unfinished("again")
        self.assertEqual(["_open-doors"], [path.name for path in root.iterdir()])
