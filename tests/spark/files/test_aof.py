"""Append only files, complete, truncated and damaged."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.records import JobRecord
from disque_tx.spark.files.aof import LogReader, live_jobs, log_options
from disque_tx.spark.schema import AOF_RECORDS_DDL, arrow_schema, batches
from disque_tx.wire.files.aof import load_record

_VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "aof"
#: One job in the original's file expired before it was loaded; all others have a TTL of years.
_EXPIRED_US = 2_000_000_000_000_000
_DELETE = b"*2\r\n$6\r\nDELJOB\r\n$40\r\n%s\r\n"


def job_id(number: int) -> bytes:
    """The ID of a job."""
    return b"D-60776864-%024d-05a1" % number


def load(number: int, body: bytes = b"x") -> bytes:
    """A record that loads a job."""
    nodes = (b"a" * 40,)
    return load_record(
        JobRecord(
            job_id(number), b"q", body, nodes, 10**18, 2_000_000_000, delay_s=0, retry_s=60, repl=1
        )
    )


class LogTests(SynchronousTestCase):
    """Records, and the jobs they leave."""

    def file(self, data: bytes) -> str:
        """A file with this content."""
        path = Path(self.mktemp())
        path.write_bytes(data)
        return str(path.resolve())

    def records(self, file: str, size: int) -> tuple[int, list[tuple[str, int, str | None]]]:
        """The number of tasks, and the rows they read together."""
        options = {"path": file, "view": "records", "rangebytes": str(size)}
        reader = LogReader(log_options(options))
        tasks = reader.partitions()
        rows = [row for task in tasks for part in reader.read(task) for row in part.to_pylist()]
        return len(tasks), [(row["op"], row["offset"], row["id"]) for row in rows]

    def test_alive(self) -> None:
        """A job exists from its first LOADJOB until its DELJOB, and may be loaded again."""
        log = load(1, b"first") + load(2) + load(1, b"second") + _DELETE % job_id(2)
        log += _DELETE % job_id(3) + load(3) + _DELETE % job_id(3) + load(3, b"again")
        rows = list(live_jobs(self.file(log)))
        self.assertEqual(
            [(job_id(1).decode(), b"first"), (job_id(3).decode(), b"again")],
            [(row[2], row[4]) for row in rows],
        )

    def test_ranges(self) -> None:
        """With ranges of any size, each record is read once, even if bodies contain what looks like
        records."""
        log = b"".join(load(number, load(99) * 3) + _DELETE % job_id(number) for number in range(9))
        file = self.file(log)
        one, whole = self.records(file, 1 << 30)
        self.assertEqual((1, 18), (one, len(whole)))
        for size in (1, 100, 1000, 5000):
            tasks, rows = self.records(file, size)
            self.assertEqual(whole, rows)
            self.assertGreater(tasks, 1)

    def test_truncated_and_damaged(self) -> None:
        """Complete records are read, followed by one row with the offset of the damage."""
        whole = load(1) + load(2)
        for rest in (
            load(3)[:-5],
            b"*2\r\n$7\r\nLOADJ",
            b"rubbish" + load(4),
            b"*1\r\n$4\r\nPING\r\n",
        ):
            file = self.file(whole + rest)
            with self.assertLogs("disque_tx.spark.files.aof", "WARNING") as logged:
                _, rows = self.records(file, 100)
                alive = list(live_jobs(file))
            self.assertEqual(["load", "load", "damage"], [row[0] for row in rows])
            self.assertEqual(len(whole), rows[-1][1])
            self.assertIn(f"byte {len(whole)}", logged.output[0])
            self.assertEqual(2, len(alive))

    def test_of_the_original(self) -> None:
        """However a file of the original is truncated, the table has the jobs that the original
        loads."""
        cases = json.loads((_VECTORS / "aof-cases.json").read_text())
        whole = (_VECTORS / cases["base"]).read_bytes()
        compared = 0
        for case in cases["cases"]:
            size = case["edit"].get("truncate_to", len(whole))
            if set(case["edit"]) <= {"truncate_to"} and case["load"]["exit_code"] is None:
                rows = [row for row in live_jobs(self.file(whole[:size])) if row[8] > _EXPIRED_US]
                self.assertEqual(case["load"]["registered_jobs"], len(rows), case["name"])
                compared += 1
        self.assertGreater(compared, 1)

    def test_batches(self) -> None:
        """Large bodies are read in small batches."""
        file = self.file(b"".join(load(number, b"x" * (3 << 20)) for number in range(6)))
        reader = LogReader(log_options({"path": file, "view": "records"}))
        sizes = [part.num_rows for task in reader.partitions() for part in reader.read(task)]
        self.assertEqual([3, 3], sizes)
        self.assertEqual([], list(batches([], arrow_schema(AOF_RECORDS_DDL))))
