"""Figures that come from Spark."""

from __future__ import annotations

from datetime import UTC, datetime

from disque_tx.spark.pipeline.report.figures import Axis, _latencies
from disque_tx.spark.pipeline.report.plots import heat_map
from tests.spark.pipeline.cases import PipelineCase

_AXIS = Axis(0, 60, 2)


class LatencyTests(PipelineCase):
    """How long jobs waited, by time."""

    def cells(self, *waits_ms: int | None) -> dict[tuple[int, int], int]:
        """The jobs of each step and band."""
        begun = [datetime.fromtimestamp(61 * (at % 2), UTC) for at in range(len(waits_ms))]
        rows = [*zip(begun, waits_ms, strict=True), (None, 5)]
        jobs = self.spark.createDataFrame(rows, "at TIMESTAMP, wait_ms BIGINT")
        return _latencies(jobs, _AXIS, "at", "wait_ms")

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
