"""Folders of results: a wrong name with --overwrite destroys nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from disque_tx.spark.errors import BadTable, OutputExists, OutputOverlaps, PipelineError
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.outputs import MARKER, replacing
from disque_tx.spark.pipeline.storage import Storage
from disque_tx.spark.pipeline.transfer.export import export
from disque_tx.spark.pipeline.transfer.replay import Ledger
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Node, job_id

_LOG = Path(__file__).resolve().parents[2] / "vectors" / "aof" / "node0.aof"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class OutputTests(PipelineCase):
    """``replacing``, without Spark's jobs."""

    def setUp(self) -> None:
        super().setUp()
        self.storage = Storage(self.spark)
        self.out = self.folder / "out"

    def write_out(self, text: str, overwrite: bool = False, *inputs: Path) -> None:
        """Write results of one file to ``out``."""
        read = [str(path) for path in inputs]
        with replacing(self.storage, str(self.out), read, overwrite) as (_, work):
            folder = Path(work.removeprefix("file:"), "jobs")
            folder.mkdir(parents=True)
            (folder / "part").write_text(text)

    def assert_refused(self, error: type[PipelineError], words: str, *inputs: Path) -> None:
        """Assert that writing with overwrite is refused for a reason, and changes nothing."""
        before = contents(self.folder)
        with self.assertRaises(error) as raised:
            self.write_out("new", True, *inputs)
        self.assertIn(words, str(raised.exception))
        self.assertEqual(before, contents(self.folder))

    def test_replaced(self) -> None:
        """Results of ours are replaced on request, whole, and nothing is left beside them."""
        self.write_out("old")
        self.write_out("new", True)
        self.assertEqual("new", (self.out / "jobs" / "part").read_text())
        self.assertEqual(["out"], [path.name for path in self.folder.iterdir()])

    def test_failed(self) -> None:
        """An error while the new results are written leaves the old ones."""
        self.write_out("old")
        with (
            self.assertRaises(ZeroDivisionError),
            replacing(self.storage, str(self.out), [], True) as (_, work),
        ):
            Path(work.removeprefix("file:")).mkdir()
            raise ZeroDivisionError
        self.assertEqual("old", (self.out / "jobs" / "part").read_text())
        self.assertEqual(["out"], [path.name for path in self.folder.iterdir()])

    def test_nothing_to_move(self) -> None:
        """New results that cannot be put in place leave the old ones in theirs."""
        self.write_out("old")
        with (
            self.assertRaises(OSError),
            replacing(self.storage, str(self.out), [], True) as (_, work),
        ):
            setattr(self.storage, "move", _refusing(self.storage, work))  # noqa: B010
            Path(work.removeprefix("file:")).mkdir()
        self.assertEqual("old", (self.out / "jobs" / "part").read_text())

    def test_foreign_folder(self) -> None:
        """A folder without the marker is not removed, and the error says how to go on."""
        self.out.mkdir()
        self.assert_refused(OutputExists, "Choose a new folder, or look")
        (self.out / "photo").write_text("of somebody")
        self.assert_refused(OutputExists, f"it has no file {MARKER}")
        (self.out / MARKER).write_text("{}")
        self.assert_refused(OutputExists, f"it has no file {MARKER}")

    def test_file(self) -> None:
        """A file is not replaced by a folder."""
        self.out.write_text("text")
        self.assert_refused(OutputExists, "is not replaced")

    def test_foreign_files(self) -> None:
        """Files that somebody put between ours are not lost with them."""
        self.write_out("old")
        note = self.out / "jobs" / "notes.txt"
        note.write_text("mine")
        self.assert_refused(OutputExists, "such as jobs/notes.txt")
        note.unlink()
        (self.out / "empty").mkdir()
        self.assert_refused(OutputExists, "such as empty")

    def test_appeared(self) -> None:
        """What appears in the folder while results are written is not replaced."""
        self.write_out("old")
        with (
            self.assertRaises(OutputExists),
            replacing(self.storage, str(self.out), [], True) as (_, work),
        ):
            Path(work.removeprefix("file:")).mkdir()
            (self.out / "notes.txt").write_text("mine")
        self.assertEqual("mine", (self.out / "notes.txt").read_text())

    def test_overlaps(self) -> None:
        """Results are never written over, into or around what is read, whatever it is called."""
        self.write_out("old")
        link = self.folder / "link"
        link.symlink_to(self.out)
        for read, words in (
            (self.out, "is both read and the folder for results"),
            (self.out / "jobs", "is around"),
            (self.folder, "is in"),
            (link, "is both read"),
            (self.folder / "other" / ".." / "out", "is both read"),
        ):
            self.assert_refused(OutputOverlaps, words, read)
        self.out, target = link, self.out
        self.assert_refused(OutputOverlaps, "is both read", target)
        self.write_out("new", True, self.folder / "outer")
        self.assertEqual("new", (target / "jobs" / "part").read_text())
        self.assertTrue(link.is_symlink())


def _refusing(storage: Storage, work: str) -> Callable[[str, str], None]:
    """A ``move`` that fails for one folder, as on a disk that is read-only meanwhile."""
    move = storage.move

    def refusing(source: str, target: str) -> None:
        if source == work:
            raise OSError("read-only")
        move(source, target)

    return refusing


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
                lifecycle(self.spark, str(table), str(into), overwrite=True)
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

    def test_ingest_into_a_foreign_folder(self) -> None:
        """A folder of somebody is no table because of the names in there: what a table stages is
        removed a day later."""
        staging = self.folder / "table" / "_staging" / "stage"
        staging.mkdir(parents=True)
        (staging / "play.txt").write_text("Act I")
        with self.assertRaises(BadTable):
            ingest(self.spark, [str(self.write())], self.table, clock=lambda: 1e11)
        self.assertEqual("Act I", (staging / "play.txt").read_text())

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
