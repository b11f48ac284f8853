"""Tables on S3, with a real server of its protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from threading import Barrier, Thread
from uuid import uuid4

import duckdb
import polars
import pyarrow as pa
from deltalake import DeltaTable

from disque_tx.spark.errors import Conflict
from disque_tx.spark.paths import files_below, opened
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.footers import Staged
from disque_tx.spark.pipeline.tables.jobs import JobTable, write
from tests.acceptance.daemon import Daemon
from tests.acceptance.spark.case import add_many, address, rows_of
from tests.acceptance.spark.objectstores import SECRET, ObjectStoreCase, shared_commands
from tests.spark.pipeline import shop
from tests.spark.pipeline.logs import Node, job_id, segment

_SCHEMA = pa.schema([("id", pa.string()), ("body", pa.binary())])
_WRITERS = 4
_ROUNDS = 3


class WriterTests(ObjectStoreCase):
    """Several processes that write the same table."""

    def staged(self, root: str, ids: Sequence[str]) -> Staged:
        """Jobs that are written to a new folder of a table."""
        rows = pa.table({"id": list(ids), "body": [b"x"] * len(ids)}, schema=_SCHEMA)
        folder = f"batch-{uuid4().hex}"
        return Staged(folder, [write(root, rows, folder)])

    def test_at_once(self) -> None:
        """Writers that commit at the same time lose no job of each other, whatever the environment
        says: each commit is written on condition that there is none of its number."""
        self.set_variables(AWS_CONDITIONAL_PUT="disabled", AWS_S3_ALLOW_UNSAFE_RENAME="true")
        root = f"{self.store}/jobs"
        JobTable(root).open(_SCHEMA)
        together = Barrier(_WRITERS)

        def add(writer: int) -> None:
            table = JobTable(root)
            for turn in range(_ROUNDS):
                staged = self.staged(root, [f"{writer}-{turn}"])
                together.wait()
                table.add(staged, _SCHEMA)

        threads = [Thread(target=add, args=(writer,)) for writer in range(_WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = [f"{writer}-{turn}" for writer in range(_WRITERS) for turn in range(_ROUNDS)]
        self.assertEqual(expected, sorted(polars.read_delta(root)["id"].to_list()))
        written = re.findall(
            rf"^PUT /{self.bucket}/jobs/_delta_log/\d+\.json (\S+)$",
            self.server.requests.read_text(),
            re.MULTILINE,
        )
        self.assertEqual(({"*"}, True), (set(written), len(written) > len(expected)))

    def test_conflict(self) -> None:
        """Of two that commit the same transaction, one fails with an error that says so, and the
        rows of the other stay: this is what ingest and lifecycle rest upon."""
        root = f"{self.store}/jobs"
        first = DeltaLog.create(root, _SCHEMA, "jobs")
        second = DeltaLog(root)
        first.commit(self.staged(root, ["a"]).files, {"app": 1})
        with self.assertRaises(Conflict) as raised:
            second.commit(self.staged(root, ["b"]).files, {"app": 1})
        self.assertIn(
            f"wrote to {root} at the same time. Nothing of this was added", str(raised.exception)
        )
        self.assertEqual(["a"], polars.read_delta(root)["id"].to_list())

    def test_known(self) -> None:
        """A job that is delivered again is stored once on S3, too, and no file stays of it."""
        root = f"{self.store}/jobs"
        table = JobTable(root)
        added = [table.add(self.staged(root, ids), _SCHEMA) for ids in ("ab", "bc", "abc")]
        self.assertEqual([2, 1, 0], added)
        self.assertEqual(["a", "b", "c"], sorted(polars.read_delta(root)["id"].to_list()))


class CommandTests(ObjectStoreCase):
    """The command line, whose keys are in the environment."""

    def setUp(self) -> None:
        super().setUp()
        self.output = ""

    def run_command(self, *words: object, status: int = 0) -> str:
        """Run ``disque-pipeline``; its output."""
        found, output = shared_commands().run(*words)
        self.assertEqual(status, found, output)
        self.output += output
        return output

    def logged(self, *nodes: Node) -> Path:
        """A folder with the logs of nodes."""
        folder = self.folder()
        for node in nodes:
            segment(folder, node.events)
        return folder

    def reported(self, where: str, table: str) -> str:
        """The report of what is at a place, without its queries, which name the files."""
        page = self.folder() / "report.html"
        self.run_command("report", f"{where}/out", "--events", table, "--html", page)
        shown, _, queries = page.read_text().partition('<section id="queries"')
        self.assertIn(f"{where}/out/jobs/", queries)
        return shown

    def test_chain(self) -> None:
        """The same commands as on a disk have the same results, from logs on a disk or on S3; and
        nothing that is printed has the key."""
        logs = self.logged(*shop.nodes())
        tables = {where: f"{where}/events" for where in (str(self.folder()), self.store)}
        for where, table in tables.items():
            self.run_command("ingest", logs, "--into", table)
            self.run_command("lifecycle", table, "--into", f"{where}/out")
        for part in ("jobs", "queues", "totals", "flow", "clocks", "findings"):
            here, there = (rows_of(f"{where}/out/{part}") for where in tables)
            self.assertEqual(here, there, part)
        here, there = (json.loads(self.run_command("audit", t, "--json")) for t in tables.values())
        self.assertEqual(here, there)
        self.assertEqual(*(self.reported(where, table) for where, table in tables.items()))
        events = tables[self.store]
        more = Node("d")
        more.add(0, job_id(1, "d"), queue="private")
        (file,) = self.logged(more).iterdir()
        stored, place = opened(f"{self.store}/logs/{file.name}")
        with stored.open_output_stream(place, compression=None) as out:
            out.write(file.read_bytes())
        said = self.run_command("ingest", f"{self.store}/logs", "--into", events)
        self.assertIn("2 events, 2 of them new", said)
        self.keep(events)
        self.assertEqual([], [name for name, _ in files_below(events) if ".parquet" in name])
        self.assertNotIn(SECRET, self.output)

    def keep(self, events: str) -> None:
        """Commands that keep a table, in which one event is of a queue of its own."""
        found = rows_of(events)
        self.assertIn("became 1; the table has 1 now", self.run_command("optimize", events))
        self.assertEqual(found, rows_of(events))
        done = json.loads(self.run_command("forget", events, "--queue", "private", "--json"))
        self.assertEqual((2, []), (done["events"], done["left"]))
        self.assertEqual(len(found) - 2, len(rows_of(events)))
        self.assertIn("WRITE", self.run_command("history", events))
        said = self.run_command("expire", events, "--before", "2026-11-21")
        self.assertIn(f"{len(found) - 2} events deleted", said)
        self.assertEqual([], rows_of(events))
        self.assertIn("1 file removed", self.run_command("vacuum", events, "--keep", 0))

    def test_drain(self) -> None:
        """A queue is drained into S3, each job once, and any program reads it; into a bucket that
        does not exist nothing is fetched, so that no job has to wait for its RETRY."""
        daemon = self.running()
        ids = add_many(address(daemon), "q", 100, retry_s=60)
        wrong = self.drain(daemon, "s3://absent/jobs", status=1)
        self.assertIn("There is no bucket 'absent'.", wrong)
        self.assertEqual("100", str(daemon.client().call("QLEN", "q")))
        self.assertIn("100 jobs stored; 0 more", self.drain(daemon, f"{self.store}/jobs"))
        self.assertEqual("0", daemon.info()["registered_jobs"])
        jobs = DeltaTable(f"{self.store}/jobs").to_pyarrow_dataset()
        found = duckdb.connect().register("jobs", jobs).execute("SELECT id FROM jobs").fetchall()
        self.assertEqual(ids, {row[0] for row in found})
        self.assertEqual(ids, set(polars.read_delta(f"{self.store}/jobs")["id"].to_list()))
        self.assertEqual(100, jobs.count_rows())

    def drain(self, daemon: Daemon, table: str, status: int = 0) -> str:
        """Drain the queue."""
        words = ("drain", "q", "--into", table, "--servers", address(daemon))
        return self.run_command(*words, status=status)

    def test_stream(self) -> None:
        """A stream stores its jobs on S3 if its state is on a disk, and says so before otherwise;
        what else is not possible there is refused as well."""
        daemon = self.running()
        ids = add_many(address(daemon), "q", 100, retry_s=60)
        table = f"{self.store}/jobs"
        words = ("stream", "q", "--into", table, "--servers", address(daemon))
        self.assertIn("with --checkpoint", self.run_command(*words, status=1))
        self.assertFalse(DeltaLog.exists(table))
        self.run_command(*words, "--checkpoint", self.folder() / "state")
        self.assertEqual(sorted(ids), sorted(polars.read_delta(table)["id"].to_list()))
        again = ("replay", table, "--where", "true", "--servers", address(daemon), "--yes")
        self.assertIn("A ledger cannot lie in", self.run_command(*again, status=1))

    def test_refused(self) -> None:
        """What is wrong with a path or the store is a sentence, without a key or a traceback."""
        logs = self.logged(*shop.nodes())
        for path, why in (
            (f"s3://tests:{SECRET}@{self.bucket}/events", "cannot have keys"),
            (f"{self.store}/a/../b", "is not s3://BUCKET/FOLDER"),
            ("s3://absent/events", "There is no bucket 'absent'."),
            (f"ftp://{self.bucket}/events", "cannot be opened"),
        ):
            said = self.run_command("ingest", logs, "--into", path, status=1)
            self.assertIn(why, said)
        self.assertNotIn(SECRET, self.output)
        self.assertNotIn("Traceback", self.output)
