"""Conditions of queries that files are chosen by."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.files.aof import log_options
from tests.spark.files.test_aof import job_id, load
from tests.spark.files.test_events import event
from tests.spark.shared import shared_session

_SETTING = "spark.sql.python.filterPushdown.enabled"
_NODES = ("a" * 8, "b" * 8)


class PushingTests(SynchronousTestCase):
    """Spark's own conditions, on the formats that read files."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp()).resolve()
        self.spark = shared_session()
        self.spark.conf.set(_SETTING, "true")
        self.addCleanup(self.spark.conf.unset, _SETTING)

    def load(self, form: str, filtering: bool = True) -> DataFrame:
        """What lies in the folder."""
        reader = self.spark.read.format(form).option("pushFilters", str(filtering).lower())
        return reader.load(str(self.root))

    def check(self, form: str, condition: str, files: int, rows: int) -> None:
        """So many files are read, and so many rows found, as many as without."""
        chosen = self.load(form).where(condition)
        self.assertEqual(files, chosen.rdd.getNumPartitions(), condition)
        found = sorted(map(str, chosen.collect()))
        self.assertEqual(rows, len(found))
        self.assertEqual(sorted(map(str, self.load(form, False).where(condition).collect())), found)

    def write_events(self) -> None:
        """Ten hours of two nodes, a file each with two events of two queues, and one file more."""
        for number, node in enumerate(_NODES):
            for hour in range(10):
                folder = self.root / "dt=2026-11-20" / f"hour={hour:02d}"
                folder.mkdir(parents=True, exist_ok=True)
                lines = [
                    event(
                        at,
                        source=f"disque:{node}{'0' * 32}",
                        time=f"2026-11-20T{hour:02d}:30:00.000000Z",
                        subject=f"D-{number}",
                        **{"messaging.destination.name": queue},
                    )
                    for at, queue in enumerate(("mail", "pay"))
                ]
                (folder / f"events-{node}-1-0.jsonl").write_bytes(b"".join(lines))
        (self.root / "copied.jsonl").write_bytes(event(7, time="2026-11-20T05:00:00Z"))

    def test_events(self) -> None:
        """Only files of the hours that are asked for, and the two beside, and of the node are
        read; a file whose name says nothing is always read."""
        self.write_events()
        time = "TIMESTAMP '2026-11-20T05"
        self.check("disque_events", "wait_ms >= 0", 21, 41)
        self.check("disque_events", f"time >= {time}:10:00Z' AND time < {time}:40:00Z'", 7, 4)
        self.check("disque_events", f"time > {time}:10:00Z'", 13, 20)
        self.check("disque_events", f"source = 'disque:{_NODES[0]}{'0' * 32}'", 11, 20)
        self.check("disque_events", "`messaging.destination.name` IN ('mail', 'x')", 21, 20)
        self.check("disque_events", f"subject = 'D-1' AND time < {time}:00:00Z'", 15, 10)
        self.check("disque_events", "subject = 'D-1' OR wait_ms = 7", 21, 21)

    def test_logs(self) -> None:
        """Only the file that is asked for is read, and of others only the jobs."""
        self.root.mkdir()
        for name in ("one.aof", "two.aof"):
            (self.root / name).write_bytes(load(1) + load(2))
        self.check("disque_aof", f"file = '{self.root}/two.aof'", 1, 2)
        self.check("disque_aof", f"id = '{job_id(2).decode()}'", 2, 2)
        self.check("disque_aof", "queue = 'none'", 2, 0)

    def test_where_spark_passes_none_on(self) -> None:
        """Without the setting of Spark the option is an error that names it, and other reads go
        on."""
        self.write_events()
        self.spark.conf.unset(_SETTING)
        self.assertEqual(41, self.load("disque_events", False).count())
        with self.assertRaises(PySparkException) as raised:
            self.load("disque_events").count()
        self.assertIn(_SETTING, str(raised.exception))
        self.assertFalse(log_options({"path": "x"}).filtering)
