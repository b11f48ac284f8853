"""Figures that come from DuckDB."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.local.database import database
from disque_tx.spark.pipeline.report.axis import Axis
from disque_tx.spark.pipeline.report.figures import _latencies
from disque_tx.spark.pipeline.report.plots import heat_map
from disque_tx.spark.pipeline.report.queries import Queries

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
            return _latencies(Queries(rows), _AXIS, "begun", "wait_ms")

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
