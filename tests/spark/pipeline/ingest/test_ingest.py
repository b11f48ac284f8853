"""Event logs are ingested into a table, each event once, whatever fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from disque_tx.spark.errors import BadTable, Conflict, ForeignData, NothingToRead, OutputOverlaps
from disque_tx.spark.pipeline.ingest import batches
from disque_tx.spark.pipeline.ingest.batches import IngestReport
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.table import EventTable
from disque_tx.spark.pipeline.tables.upkeep import forget, vacuum
from tests.acceptance.daemon import environment
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import BOOT, Node, job_id, node_id, segment, write

STEPS = ("staged", "counted", "kept", "committed")
#: Before it, the engine defines ``ingest``.
_KILLED = """
import os, signal, sys
from disque_tx.spark.pipeline.ingest import files

def step(name):
    if name == sys.argv[1] and len(done) == int(sys.argv[4]):
        os.killpg(0, signal.SIGKILL)
    if name == "committed":
        done.append(name)

done = []
files._BATCH_FILES = 1
ingest([sys.argv[2]], sys.argv[3], step)
"""
_BY_SPARK = """
from functools import partial
from disque_tx.spark import session
from disque_tx.spark.pipeline.ingest import ingest
ingest = partial(ingest, session("killed", "local[1]"))
"""


class Killed(Exception):
    """The process was killed."""


def busy_node(letter: str = "a", jobs: int = 20, boot: int = BOOT) -> Node:
    """A node with some jobs."""
    node = Node(letter, boot)
    for number in range(jobs):
        node.add(number, job_id(number, letter))
        node.work(number + 1, job_id(number, letter))
    return node


class IngestTests(PipelineCase):
    """The content of the table after an ingest."""

    def rejected(self) -> list[tuple[str, str, str]]:
        """The rejected lines: reason, line and name of the file."""
        rows = self.read(f"{self.table}/_rejected").collect()
        return sorted((row.reason, row.line, row.file.rpartition("/")[2]) for row in rows)

    def test_values(self) -> None:
        """The fields of a line become columns with short names and types."""
        node = Node("a")
        node.log(0.000_007, "delivered", job_id(1), wait_ms=25, **{"messaging.client.id": "2"})
        node.log(1, "paused", None, paused="in")
        self.add(self.write(node))
        delivered, paused = self.read(self.table).orderBy("seq").collect()
        self.assertEqual(
            (node_id("a"), BOOT, 0, "delivered", job_id(1), "mail", 5, 25, "2", 7),
            (
                *(delivered.node, delivered.boot, delivered.seq, delivered.kind, delivered.job_id),
                *(delivered.queue, delivered["size"], delivered.wait_ms, delivered.client_id),
                delivered.time.microsecond,
            ),
        )
        self.assertEqual("2026-11-20", delivered.dt.isoformat())
        self.assertEqual(("paused", None, "in"), (paused.kind, paused.job_id, paused.paused))

    def test_reasons(self) -> None:
        """What an event says about why a job died or waits, and about schedules, is in the table:
        somebody will ask."""
        node = Node("a")
        node.log(0, "dead", job_id(1), note="KeyError: 'x'", successor=job_id(2))
        node.log(1, "delayed", job_id(3), backoff_ms=250)
        node.log(2, "scheduled", job_id(4), schedule="nightly", occurrence_s=1_795_202_588)
        self.add(self.write(node))
        dead, delayed, scheduled = self.read(self.table).orderBy("seq").collect()
        self.assertEqual(("KeyError: 'x'", job_id(2)), (dead.note, dead.successor))
        self.assertEqual(250, delayed.backoff_ms)
        self.assertEqual(("nightly", 1_795_202_588), (scheduled.schedule, scheduled.occurrence_s))

    def test_unknown_kinds(self) -> None:
        """Events of kinds that a later version of the node logs are kept, because their file counts
        as read after the pipeline was upgraded."""
        node = Node("a")
        node.log(0, "teleported", job_id(1))
        report = self.add(self.write(node))
        self.assertEqual((1, 0), (report.new, report.rejected))
        self.assertEqual(["teleported"], [row.kind for row in self.read(self.table).collect()])

    def test_days_are_utc(self) -> None:
        """The day of an event does not depend on the time zone of the session, because two programs
        with different ones write to the same table."""
        node = Node("a")
        node.log(0, "added", job_id(1))
        self.spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
        self.add(self.write(node))
        (file,) = DeltaLog(self.table).files()
        self.assertEqual({"dt": "2026-11-20"}, file.partition)
        (row,) = self.read(self.table).selectExpr("dt", "unix_seconds(time) AS at").collect()
        self.assertEqual(("2026-11-20", 1_795_201_200), (row.dt.isoformat(), row.at))

    def test_first_and_last_days(self) -> None:
        """The last moment that a time can have is in its day, and so is one before 1970: a file
        with such an event is ingested like any other."""
        node = busy_node()
        node.events[0]["time"] = "9999-12-31T23:59:59.999999Z"
        node.events[1]["time"] = "1969-12-31T23:59:59.999999Z"
        self.add(write(self.folder / "x.jsonl", node.events))
        days = {file.partition["dt"] for file in DeltaLog(self.table).files()}
        self.assertEqual({"1969-12-31", "2026-11-20", "9999-12-31"}, days)

    def test_no_days(self) -> None:
        """A time in a year that has no days for other programs makes a line no event, and stops
        nothing; the first moment that has one is in the table."""
        node = busy_node()
        node.events[0]["time"] = "0000-12-31T23:59:59.999999Z"
        node.events[1]["time"] = "0001-01-01T00:00:00Z"
        report = self.add(write(self.folder / "x.jsonl", node.events))
        self.assertEqual((79, 1), (report.new, report.rejected))
        days = {file.partition["dt"] for file in DeltaLog(self.table).files()}
        self.assertEqual({"0001-01-01", "2026-11-20"}, days)

    def test_repeated(self) -> None:
        """The same folders can be ingested every hour: only new files are read."""
        one, two = busy_node("a"), busy_node("b")
        folder = segment(self.folder / "events" / "dt=2026-11-20" / "hour=19", one.events).parent
        odd = write(folder / "renamed.jsonl", busy_node("c").events)
        self.assertEqual(160, self.add(folder).new)
        report = self.add(folder)
        self.assertEqual((0, 0), (report.files, report.events))
        segment(folder, two.events)
        self.assertEqual((1, 80, 0), self.counts(self.add(folder)))
        odd.touch()
        os.utime(odd, ns=(1, 1))
        self.assertEqual((1, 0, 80), self.counts(self.add(folder)))
        self.assert_each_once(one.events + two.events + busy_node("c").events)

    def counts(self, report: IngestReport) -> tuple[int, int, int]:
        """The numbers of files, new events and known events."""
        return report.files, report.new, report.duplicates

    def test_known_by_name(self) -> None:
        """A file is known by the node, start and number in its name, wherever it lies, so that no
        list of all files has to be read; one that arrives late, before others, is not."""
        node = busy_node()
        parts = [node.events[at : at + 20] for at in (0, 20, 40, 60)]
        for at in (0, 3):
            segment(self.folder / "a", parts[at])
        self.assertEqual((2, 40, 0), self.counts(self.add(self.folder / "a")))
        for part in parts:
            segment(self.folder / "b", part)
        self.assertEqual((2, 40, 0), self.counts(self.add(self.folder / "b")))
        self.assertEqual((0, 0, 0), self.counts(self.add(self.folder / "a", self.folder / "b")))
        self.assertEqual({}, (DeltaLog(self.table).notes() or {})["files"])
        self.assert_each_once(node.events)

    def test_copies(self) -> None:
        """A log under another path, twice in one run, or longer than before adds no event twice;
        its new events are added."""
        node = busy_node()
        first = write(self.folder / "a" / "x.jsonl.zst", node.events[:50])
        self.assertEqual((1, 50, 0), self.counts(self.add(first)))
        shutil.copytree(self.folder / "a", self.folder / "b")
        longer = write(self.folder / "c" / "y.jsonl", node.events[40:])
        report = self.add(self.folder / "b", longer)
        self.assertEqual((2, 30, 60), self.counts(report))
        write(self.folder / "d" / "1.jsonl", busy_node("b").events)
        write(self.folder / "d" / "2.jsonl", busy_node("b").events)
        self.assertEqual((2, 80, 80), self.counts(self.add(self.folder / "d")))
        self.assert_each_once(node.events + busy_node("b").events)

    def test_missing(self) -> None:
        """Sequence numbers that no log contains are counted per node, until a log contains them."""
        node = busy_node()
        part = write(self.folder / "a" / "x.jsonl", node.events[5:30] + node.events[40:])
        self.assertEqual({node_id("a"): 15}, self.add(part).missing)
        rest = write(self.folder / "b" / "x.jsonl", node.events[:40])
        self.assertEqual({node_id("a"): 0}, self.add(rest).missing)
        self.assert_each_once(node.events)

    def test_bad_lines(self) -> None:
        """Truncated and invalid lines are counted and kept with their file and the reason, and no
        other line is lost."""
        node = busy_node()
        foreign = [{"specversion": "1.0", "id": "1", "type": "com.example"}, {"jobs": "many"}]
        tail = "".join(json.dumps(line) + "\n" for line in foreign) + '\n[1]\n{"specversion":"1.'
        path = write(self.folder / "x.jsonl.zst", node.events, tail.encode())
        report = self.add(path)
        self.assertEqual((80, 4), (report.new, report.rejected))
        rows = self.rejected()
        self.assertEqual(["foreign", "torn", "torn", "torn"], [reason for reason, _, _ in rows])
        self.assertIn(("torn", '{"specversion":"1.', path.name), rows)
        self.assert_each_once(node.events)

    def test_enormous_numbers(self) -> None:
        """A number that no node writes makes a line no event: with it in the table, sums would
        overflow, and every analysis end with an error."""
        node, other = busy_node(), Node("b")
        for name, value in (("ttl_s", 9 * 10**18), ("messaging.message.body.size", -(2**62))):
            other.log(0, "added", job_id(1, "b"))[name] = value
        other.log(0, "added", job_id(2, "b"))["ttl_s"] = 2**40
        report = self.add(write(self.folder / "x.jsonl", [*node.events, *other.events]))
        self.assertEqual((81, 2), (report.new, report.rejected))
        self.assertEqual(["foreign"] * 2, [reason for reason, _, _ in self.rejected()])

    def test_joined_lines(self) -> None:
        """Of two objects on a line both count, as after a newline that was lost, and a queue whose
        name looks like such a place does not confuse this."""
        node = Node("a")
        for number in range(4):
            node.log(number, "added", job_id(number), queue='}{"}')
        lines = [json.dumps(event) for event in node.events]
        path = self.folder / "x.jsonl"
        path.write_text(f'{lines[0]}{lines[1]}\n{lines[2]} \t {lines[3]}\n{lines[0]}{{"torn":')
        report = self.add(path)
        self.assertEqual((4, 1, 1), (report.new, report.duplicates, report.rejected))
        self.assertEqual({'}{"}'}, {row.queue for row in self.read(self.table).collect()})
        self.assert_each_once(node.events)

    def test_half_a_file(self) -> None:
        """A truncated file is reported and skipped; it is read when it is complete."""
        node, other = busy_node("a"), busy_node("b")
        path = segment(self.folder / "a b", node.events)
        segment(self.folder / "a b", other.events)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        report = self.add(path.parent)
        self.assertEqual((80, [str(path)]), (report.new, list(report.refused)))
        self.assertEqual(0, self.add(path.parent).files)
        self.assert_each_once(other.events)
        path.write_bytes(whole)
        self.assertEqual(80, self.add(path.parent).new)
        self.assert_each_once(node.events + other.events)

    def test_names(self) -> None:
        """Unfinished and other files are skipped, and a folder may be empty."""
        (self.folder / "empty").mkdir()
        self.assertEqual(0, self.add(self.folder / "empty").files)
        for name in ("_open-1.jsonl", ".x.jsonl", "x.txt", "_tmp/x.jsonl"):
            write(self.folder / "empty" / name, busy_node().events)
        self.assertEqual(0, self.add(self.folder / "empty").files)
        self.assertRaises(NothingToRead, self.add, self.folder / "no such folder")

    def test_special_names(self) -> None:
        """Characters that mean something to Spark or in addresses are ordinary in the names of
        files and folders: one such name must not stop every ingest."""
        events = []
        for letter, name in zip("abcdef", ("[x", "{y", "*", "?", "50%", "%41 b"), strict=True):
            node = busy_node(letter, 2)
            events += node.events
            write(self.folder / "logs" / name / f"{name}.jsonl.zst", node.events)
        self.table = str(self.folder / "{table} [50%]")
        report = self.add(self.folder / "logs")
        self.assertEqual((6, {}), (report.files, report.refused))
        self.assert_each_once(events)

    def test_other_table(self) -> None:
        """Nothing is written to a folder with other content, or with a table of something else."""
        folder = self.write(busy_node())
        self.assertRaises(OutputOverlaps, self.add, folder, into=str(folder))
        other = self.folder / "other"
        other.mkdir()
        (other / "letter.txt").write_text("of somebody else")
        self.assertRaises(BadTable, self.add, folder, into=str(other))
        foreign = str(self.folder / "foreign")
        DeltaLog.create(foreign, EventTable(self.spark, self.table, True).log.schema, "numbers")
        error = self.assertRaises(BadTable, self.add, folder, into=foreign)
        self.assertIn("not one of 'disque-pipeline ingest'", str(error))

    def test_gaps(self) -> None:
        """A file whose numbers are nearly all missing is refused, before its gaps are listed in
        every commit."""
        self.patch(batches, "_RUNS_MAX", 5)
        node = busy_node()
        every_second = write(self.folder / "x.jsonl", node.events[::2])
        self.assertRaises(ForeignData, self.add, every_second)

    def test_mixed(self) -> None:
        """A file whose events are in another order than their numbers has no gaps for that, and is
        ingested."""
        self.patch(batches, "_RUNS_MAX", 5)
        node = busy_node()
        path = write(self.folder / "x.jsonl", node.events[::2] + node.events[1::2])
        report = self.add(path)
        self.assertEqual((80, {node_id("a"): 0}), (report.new, report.missing))
        self.assert_each_once(node.events)


class InterruptedTests(PipelineCase):
    """Killed between any two steps."""

    engine = _BY_SPARK
    #: After how many commits, and after which step. Each kill costs the start of another Java.
    killed: tuple[tuple[int, str], ...] = ((0, "committed"), (1, "kept"))

    def test_every_step(self) -> None:
        """When the ingest is repeated, each event is in the table once, rejected lines are kept
        once, and ``vacuum`` leaves no file that the table does not know."""
        for at, name in enumerate(STEPS):
            node, late = busy_node("a"), busy_node("b")
            folder = self.folder / f"logs-{at}"
            write(folder / "0.jsonl", node.events, b"torn")
            self.table = str(self.folder / f"table-{at}")
            # Duplicates, so that the step that removes them has something to do.
            write(folder / "copy.jsonl", node.events[:30])

            def step(done: str, name: str = name) -> None:
                if done == name:
                    raise Killed

            self.assertRaises(Killed, self.add, folder, step=step)
            write(folder / "late.jsonl", late.events)
            self.add(folder)
            self.assert_each_once(node.events + late.events)
            self.assertEqual(1, self.read(f"{self.table}/_rejected").count())
            self.assert_no_orphans()

    def test_two_at_once(self) -> None:
        """Of two ingests at the same time, one fails and can be repeated; then all events are in
        the table."""
        one, two = busy_node("a"), busy_node("b")
        first = write(self.folder / "1.jsonl", one.events)
        second = write(self.folder / "2.jsonl", one.events + two.events)
        third = write(self.folder / "3.jsonl", two.events)
        self.add()

        def step(done: str) -> None:
            if done == "staged":
                self.add(first)

        for other in (second, third):
            shutil.rmtree(self.table)
            self.assertRaises(Conflict, self.add, other, step=step)
            self.add(second)
            self.assert_each_once(one.events + two.events)

    def test_forget_meanwhile(self) -> None:
        """An ingest that runs while events are forgotten does not commit, because what it wrote may
        have been removed."""
        path = write(self.folder / "1.jsonl", busy_node().events)
        self.add(path)

        def step(done: str) -> None:
            if done == "counted":
                forget(self.table, "mail", None)

        late = write(self.folder / "2.jsonl", busy_node("b").events)
        self.assertRaises(Conflict, self.add, late, step=step)
        self.add(late)
        self.assert_each_once(busy_node("b").events)

    def test_sigkill(self) -> None:
        """A process that is really killed, and all that it started, between writing and committing
        or between two commits, leaves nothing that does harm."""
        events = []
        for letter in "abc":
            events += busy_node(letter).events
            segment(self.folder / "logs", busy_node(letter).events)
        logs = str(self.folder / "logs")
        for done, name in self.killed:
            words = [sys.executable, "-c", self.engine + _KILLED, name, logs, self.table, str(done)]
            process = subprocess.run(
                words,
                env=environment(),
                capture_output=True,
                check=False,
                start_new_session=True,
            )
            self.assertEqual(-signal.SIGKILL, process.returncode, process.stderr.decode())
        self.assertEqual(80, self.add(logs).new)
        self.assert_each_once(events)
        self.assert_no_orphans()

    def assert_no_orphans(self) -> None:
        """Assert that ``vacuum`` leaves the files of the table, and no others."""
        vacuum(self.table, keep_hours=0)
        found = {str(path.relative_to(self.table)) for path in Path(self.table).rglob("*.*")}
        files = {name for name in found if not name.startswith("_")}
        self.assertEqual({file.path for file in DeltaLog(self.table).files()}, files)
