"""Figures that come from DuckDB."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.local.database import database
from disque_tx.spark.pipeline.report.axis import Axis
from disque_tx.spark.pipeline.report.latencies import course, latencies
from disque_tx.spark.pipeline.report.plots import heat_map
from disque_tx.spark.pipeline.report.queries import Queries
from disque_tx.spark.pipeline.report.slowest import slowest

_AXIS = Axis(0, 60, 2)


class LatencyTests(SynchronousTestCase):
    """How long jobs waited, by time."""

    def cells(self, *waits_ms: int | None) -> dict[tuple[int, int], int]:
        """The jobs of each step and band."""
        with database(str(Path(self.mktemp()).resolve() / "table")) as rows:
            rows.run("CREATE TABLE jobs (begun TIMESTAMPTZ, wait_ms BIGINT)")
            jobs = [[61_000_000 * (at % 2), wait_ms] for at, wait_ms in enumerate(waits_ms)]
            made = "INSERT INTO jobs VALUES (make_timestamptz(?::BIGINT), ?)"
            rows.connection.executemany(made, [*jobs, [None, 5]])
            return latencies(Queries(rows), _AXIS, "begun", "wait_ms")

    def test_bands(self) -> None:
        """Three bands are a power of ten, and a round latency is in the band that it begins; what
        was not delivered, or is not known, is in none."""
        self.assertEqual(
            {(0, 0): 2, (1, 0): 1, (1, 1): 1, (0, 3): 1, (1, 9): 1},
            self.cells(0, 1, 2, 3, 10, 1_000, None),
        )

    def test_absurd(self) -> None:
        """Whatever a clock that was wrong made of a latency, the job is in sight, in the highest
        band."""
        cells = self.cells(1, 5 * 10**11, 10**13, 10**18)
        self.assertEqual({(0, 0): 1, (1, 35): 2, (0, 35): 1}, cells)
        plot = heat_map(cells, _AXIS)
        for box in plot.boxes:
            self.assertTrue(0 <= box.y <= plot.bottom - box.height)
        self.assertEqual(["1", "3"], [jobs for _, jobs in plot.bands])


class HourTests(SynchronousTestCase):
    """Steps of hours."""

    def test_round(self) -> None:
        """A day has 24 steps that begin at full hours, a short period those of the other plots, and
        no period more than 60; days and weeks begin at midnight."""
        noon = 1_795_176_000
        day = Axis(noon + 1800, 1800, 48).by_hours()
        self.assertEqual(Axis(noon, 3600, 25), day)
        hour = Axis(noon + 60, 60, 60)
        self.assertEqual(hour, hour.by_hours())
        for days in (1, 2, 3, 7, 20, 59, 90, 400, 4000):
            step_s = max(days * 86_400 // 60, 60)
            axis = Axis(noon + 61, step_s, 60).by_hours()
            self.assertLessEqual(axis.steps, 60)
            self.assertLessEqual(axis.begin_s, noon + 61)
            self.assertGreaterEqual(axis.at_s(axis.steps), noon + 61 + 60 * step_s)
            if days > 40:
                self.assertEqual(0, axis.step_s % 86_400)

    def test_percentiles(self) -> None:
        """Percentiles are of the jobs of a step, and none where there are no jobs."""
        with database(str(Path(self.mktemp()).resolve() / "table")) as rows:
            rows.run(
                "CREATE TABLE jobs AS SELECT make_timestamptz(3600000000 * (n // 100)) AS acked_at,"
                " acked_at AS first_delivered_at, n % 100 + 1 AS wait_ms, NULL::BIGINT AS run_ms"
                " FROM range(200) numbers(n) WHERE n < 100 OR n = 199"
            )
            found = course(Queries(rows), Axis(0, 900, 44))
        nothing = [None] * 9
        expected = {"p50": [50, 100], "p90": [90, 100], "p99": [99, 100]}
        self.assertEqual({name: v + nothing for name, v in expected.items()}, found.waits)
        self.assertEqual({name: [None] * 11 for name in expected}, found.runs)


class SlowestTests(SynchronousTestCase):
    """The slowest jobs and queues."""

    def test_slowest(self) -> None:
        """Of many jobs the slowest are listed, the slowest first, with what is needed to find them;
        those that never ran are none of them."""
        with database(str(Path(self.mktemp()).resolve() / "table")) as rows:
            rows.run(
                "CREATE TABLE jobs AS SELECT 'job-' || n AS job_id, 'q' || n % 2 AS queue,"
                " make_timestamptz(n * 1000000) AS added_at, NULL::TIMESTAMPTZ AS began_at,"
                " added_at AS first_event_at, 100 - n AS wait_ms,"
                " CASE WHEN n < 90 THEN n END AS run_ms, n AS deliveries"
                " FROM range(100) numbers(n)"
            )
            rows.run(
                "CREATE TABLE totals AS SELECT queue, count(*) AS jobs, median(run_ms) AS"
                " run_p50_ms, max(run_ms) AS run_p99_ms FROM jobs GROUP BY queue"
            )
            found = slowest(Queries(rows), 2)
        self.assertEqual(["job-89", "job-88"], [row["job_id"] for row in found.ran])
        self.assertEqual(["job-0", "job-1"], [row["job_id"] for row in found.waited])
        self.assertEqual(["q1", "q0"], [row["queue"] for row in found.queues])
        expected = {"job_id": "job-89", "queue": "q1", "at_us": 89_000_000, "took_ms": 89}
        self.assertEqual({**expected, "deliveries": 89}, found.ran[0])
