"""Coordinates of shapes, and text for numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline import wording
from disque_tx.spark.pipeline.report import plots
from disque_tx.spark.pipeline.report.axis import Axis

_VALUES = st.lists(st.integers(-(10**9), 10**12), min_size=1, max_size=60)


class LineTests(SynchronousTestCase):
    """Line plots over time."""

    @given(_VALUES)
    def test_in_sight(self, values: list[int]) -> None:
        """Every value, and 0, is within the axis, whatever the values are."""
        plot = plots.lines({"a": values}, Axis(0, 60, len(values)))
        (piece,) = plot.lines[0].pieces
        places = [float(point.split(",")[1]) for point in piece.split(" ")]
        highest, lowest = plot.y_ticks[-1].at, plot.y_ticks[0].at
        self.assertTrue(all(highest - 0.1 <= place <= lowest + 0.1 for place in places))
        self.assertIn("0", [tick.label for tick in plot.y_ticks])
        self.assertLess(len(plot.y_ticks), 9)

    def test_one_step(self) -> None:
        """A single step is drawn as a visible line."""
        (line,) = plots.lines({"a": [3]}, Axis(0, 60, 1)).lines
        self.assertEqual(2, len(line.pieces[0].split(" ")))
        self.assertEqual(["3"], line.values)

    def test_labels(self) -> None:
        """Times within a day are labelled as hours, and those over many days as dates."""
        day = plots.lines({"a": [1, 2]}, Axis(1_795_201_200, 60, 2))
        self.assertEqual(["19:00:00", "19:01:00"], [tick.label for tick in day.x_ticks])
        week = plots.lines({"a": [0] * 4}, Axis(1_795_201_200, 86_400, 4))
        self.assertEqual("11-20 19:00", week.x_ticks[0].label)


class LatencyLineTests(SynchronousTestCase):
    """Percentiles over time."""

    @given(st.lists(st.none() | st.integers(0, 10**13), min_size=1, max_size=60))
    def test_in_sight(self, values: list[int | None]) -> None:
        """Every time is within the axis, and beside the plot as text."""
        plot = plots.latency_lines({"p50": values}, Axis(0, 60, len(values)))
        (line,) = plot.lines
        points = [point.split(",") for piece in line.pieces for point in piece.split(" ")]
        highest, lowest = plot.y_ticks[-1].at, plot.y_ticks[0].at
        self.assertTrue(all(highest - 0.1 <= float(y) <= lowest + 0.1 for _, y in points))
        self.assertTrue(all(plots.LEFT <= float(x) <= plots.RIGHT for x, _ in points))
        self.assertEqual([*map(wording.span, values)], line.values)

    def test_gaps(self) -> None:
        """Where no job was, there is no line, and a step between two gaps is still seen."""
        plot = plots.latency_lines({"p50": [10, 10, None, 1000, None]}, Axis(0, 60, 5))
        pieces = plot.lines[0].pieces
        self.assertEqual([2, 2], [len(piece.split(" ")) for piece in pieces])
        self.assertEqual(["10 ms", "100 ms", "1 s"], [tick.label for tick in plot.y_ticks])
        self.assertEqual({"210.0"}, {point.split(",")[1] for point in pieces[0].split(" ")})


class HeatMapTests(SynchronousTestCase):
    """Heat maps of time and latency."""

    @given(st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 35)), st.integers(1)))
    def test_in_sight(self, cells: dict[tuple[int, int], int]) -> None:
        """Every cell is inside the plot, and has a colour."""
        plot = plots.heat_map(cells, Axis(0, 60, 10))
        self.assertEqual(len(cells), len(plot.boxes))
        for box in plot.boxes:
            self.assertTrue(box.x >= plots.LEFT and box.x + box.width <= plots.RIGHT + 1)
            self.assertTrue(box.y >= 0 and box.y + box.height <= plot.bottom)
            self.assertIn(box.level, range(1, plots.LEVELS + 1))

    def test_bands(self) -> None:
        """The table beside the plot has the same numbers as text."""
        plot = plots.heat_map({(0, 3): 2, (1, 3): 1, (1, 6): 5}, Axis(0, 60, 2))
        self.assertEqual([("10 ms to 21.5 ms", "3"), ("100 ms to 215 ms", "5")], plot.bands)
        self.assertEqual(["10 ms", "100 ms", "1 s"], [tick.label for tick in plot.y_ticks])


class RangesTests(SynchronousTestCase):
    """Plots of percentiles per queue."""

    def test_unknown(self) -> None:
        """A queue without measurements has a name and no bars."""
        ranks = [f"{kind}_{rank}_ms" for kind in ("wait", "run") for rank in ("p50", "p95", "p99")]
        plot = plots.ranges([dict(queue="mail", **dict.fromkeys(ranks))])
        self.assertEqual(["mail"], [tick.label for tick in plot.names])
        self.assertEqual(([], []), (plot.boxes, plot.marks))


class WordingTests(SynchronousTestCase):
    """Numbers with their units."""

    def test_spans(self) -> None:
        """Durations are shown in the unit that people would use."""
        spans = {0: "0 ms", 999: "999 ms", 1500: "1.5 s", 100_000: "100 s", 150_000: "2.5 min"}
        spans |= {7_200_000: "2 h", 200_000_000: "2.31 d", -5: "-5 ms"}
        self.assertEqual(spans, {value: wording.span(value) for value in spans})
        self.assertEqual(wording.NOTHING, wording.span(None))

    def test_counts(self) -> None:
        """Large numbers are grouped, and small rates keep three digits."""
        counts = {0: "0", 1234567: "1,234,567", 0.05912: "0.0591", 123.4: "123"}
        self.assertEqual(counts, {value: wording.count(value) for value in counts})
        self.assertEqual("1.5 KiB", wording.size(1536))
        self.assertEqual("–", wording.share(1, 0))  # noqa: RUF001

    @given(st.text(max_size=200))
    def test_names(self, text: str) -> None:
        """Names are short, and contain only visible characters."""
        name = wording.name(text)
        self.assertLessEqual(len(name), wording.NAME_CHARACTERS_MAX)
        self.assertTrue(name.isprintable())
