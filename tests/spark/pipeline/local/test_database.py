"""What DuckDB holds is bounded, and what it leaves on the disk is removed."""

from __future__ import annotations

import fcntl
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.local.database import Failed, database


class DatabaseTests(SynchronousTestCase):
    """A database for a table."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).resolve()
        self.table = str(self.folder / "table")

    def hidden(self) -> list[Path]:
        """What lies beside the table."""
        return list(self.folder.glob(".*"))

    def test_more_than_memory(self) -> None:
        """Rows that do not fit into the memory are on the disk meanwhile, beside the table, and
        leave nothing there."""
        with database(self.table) as rows:
            rows.run("SET memory_limit = '64MB'")
            made = "SELECT range AS n, hash(range) AS h FROM range(9000000)"
            rows.run(f"CREATE TEMP TABLE numbers AS {made}")
            (folder,) = self.hidden()
            self.assertNotEqual([], list(folder.glob("duckdb_temp*")))
            ((count,),) = rows.rows("SELECT count(*) FROM (SELECT * FROM numbers ORDER BY h)")
        self.assertEqual((9_000_000, []), (count, self.hidden()))

    def test_errors(self) -> None:
        """Errors of DuckDB are one line, and what fits in no way says what to do."""
        with self.assertRaises(Failed) as raised, database(self.table) as rows:
            rows.run("SELECT nothing")
        self.assertNotIn("\n", str(raised.exception))
        with self.assertRaises(Failed) as raised, database(self.table) as rows:
            rows.run("SET memory_limit = '16MB'")
            rows.rows("SELECT list(range) FROM range(90000000)")
        self.assertIn("Use --engine spark", str(raised.exception))
        self.assertEqual([], self.hidden())

    def test_interrupted(self) -> None:
        """Ctrl-C during a query is the same as at any other time, and no error of DuckDB with a
        traceback; nothing is left."""
        for words, error in (("Query interrupted", KeyboardInterrupt), ("else", RuntimeError)):
            with self.assertRaises(error), database(self.table):
                # A signal cannot be made to arrive within the query, and not just before it.
                raise RuntimeError(words)
        self.assertEqual([], self.hidden())

    def test_read_only(self) -> None:
        """A table in a place where nothing can be written can still be audited."""
        with database("/proc/nowhere/table") as rows:
            self.assertEqual([(1,)], rows.rows("SELECT 1"))

    def test_abandoned(self) -> None:
        """What a killed process left is removed by the next; what another one uses is not."""
        for name in ("abandoned", "used"):
            (self.folder / f".disque-pipeline-{name}").mkdir(parents=True)
            (self.folder / f".disque-pipeline-{name}" / "lock").touch()
        with (self.folder / ".disque-pipeline-used" / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with database(self.table):
                pass
        self.assertEqual([".disque-pipeline-used"], [path.name for path in self.hidden()])
