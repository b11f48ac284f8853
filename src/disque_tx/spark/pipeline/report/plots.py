"""Plots as shapes with coordinates, which the templates draw as SVG.

Shapes have no colours: the style sheet sets them, light or dark, by the number of a series or the
level of a cell. The origin is the upper left corner; lengths are units of the ``viewBox``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from disque_tx.spark.pipeline import wording
from disque_tx.spark.pipeline.report.axis import BANDS_MAX, BANDS_PER_DECADE, Axis

WIDTH: Final = 720
#: Where the plot itself is; the rest is for labels.
LEFT: Final = 64
RIGHT: Final = 690
_TOP: Final = 10
_LINE_HEIGHT: Final = 200
_CELL_HEIGHT: Final = 16
_ROW_HEIGHT: Final = 34
_NAME_WIDTH: Final = 190
_X_TICKS: Final = 6
_Y_TICKS: Final = 4
LEVELS: Final = 5


@attrs.frozen
class Tick:
    """A label on an axis."""

    at: float
    label: str


@attrs.frozen
class Line:
    """``pieces``: points as SVG takes them, of each part without gaps. ``values``: at each step, as
    text."""

    name: str
    pieces: list[str]
    values: list[str]


@attrs.frozen
class LinePlot:
    """Series over time, from ``bottom`` upwards. ``times``: of each step."""

    height: int
    bottom: int
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    times: list[str]
    lines: list[Line]


@attrs.frozen
class Box:
    """A cell or a bar. ``level``: from 1, how much there is. ``label``: what it shows."""

    x: float
    y: float
    width: float
    height: float
    level: int
    label: str


@attrs.frozen
class HeatMap:
    """Boxes over time and latency. ``bands``: the same as text: latency and jobs."""

    height: int
    bottom: int
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    boxes: list[Box]
    bands: list[tuple[str, str]]


@attrs.frozen
class Ranges:
    """Per queue a bar of waiting (level 1) and one of running (level 2), from p50 to p99; ``marks``
    stand at p95."""

    height: int
    bottom: int
    left: int
    x_ticks: list[Tick]
    names: list[Tick]
    boxes: list[Box]
    marks: list[Box]


def lines(series: Mapping[str, Sequence[float]], axis: Axis) -> LinePlot:
    """Series over the steps of an axis; 0 is always in sight."""
    ticks = _round_steps([0, *(value for values in series.values() for value in values)])
    places = _Scale(ticks[0], ticks[-1])
    shown = [Tick(round(places.of(value), 1), wording.count(value)) for value in ticks]
    return _line_plot(series, axis, shown, places.of, wording.count)


def latency_lines(series: Mapping[str, Sequence[float | None]], axis: Axis) -> LinePlot:
    """Times in ms over the steps of an axis, on a logarithmic scale; none makes a gap."""
    known = [value for values in series.values() for value in values if value is not None]
    decades = _decades(known)
    places = _Scale(decades[0], decades[-1])
    shown = [Tick(round(places.of(power), 1), wording.span(10.0**power)) for power in decades]
    return _line_plot(
        series, axis, shown, lambda value: places.of(math.log10(max(value, 1))), wording.span
    )


@attrs.frozen
class _Scale:
    """The height of numbers from ``least`` to ``most``."""

    least: float
    most: float

    def of(self, value: float) -> float:
        part = (value - self.least) / (self.most - self.least)
        return _TOP + _LINE_HEIGHT - part * _LINE_HEIGHT


def _line_plot(
    series: Mapping[str, Sequence[float | None]],
    axis: Axis,
    ticks: list[Tick],
    place: Callable[[float], float],
    shown: Callable[[float | None], str],
) -> LinePlot:
    bottom = _TOP + _LINE_HEIGHT
    return LinePlot(
        height=bottom + 28,
        bottom=bottom,
        x_ticks=_times(axis),
        y_ticks=ticks,
        times=[wording.moment(axis.at_s(step)) for step in range(axis.steps)],
        lines=[
            Line(
                name,
                _pieces([None if value is None else place(value) for value in values]),
                [*map(shown, values)],
            )
            for name, values in series.items()
        ],
    )


def _pieces(places: Sequence[float | None]) -> list[str]:
    """A point in the middle of each step; one that is alone becomes a line over its step."""
    width = (RIGHT - LEFT) / len(places)
    found = []
    for is_known, group in groupby(enumerate(places), lambda each: each[1] is not None):
        points = [(at, y) for at, y in group if y is not None]
        if is_known and len(points) == 1:
            ((at, y),) = points
            found.append(f"{LEFT + at * width:.4g},{y:.1f} {LEFT + (at + 1) * width:.4g},{y:.1f}")
        elif is_known:
            found.append(" ".join(f"{LEFT + (at + 0.5) * width:.1f},{y:.1f}" for at, y in points))
    return found


def heat_map(cells: Mapping[tuple[int, int], int], axis: Axis) -> HeatMap:
    """Step and band → jobs; the colours follow the logarithm."""
    bands = [band for _, band in cells]
    # From the power of ten below to the one above, so that the labels are round.
    first = min(bands, default=0) // BANDS_PER_DECADE * BANDS_PER_DECADE
    last = (max(bands, default=0) // BANDS_PER_DECADE + 1) * BANDS_PER_DECADE
    last = min(max(last, first + 2 * BANDS_PER_DECADE), BANDS_MAX)
    bottom = _TOP + (last - first) * _CELL_HEIGHT
    most = max(cells.values(), default=1)
    boxes = [
        _cell(axis, step, bottom - (band + 1 - first) * _CELL_HEIGHT, band, jobs, most)
        for (step, band), jobs in sorted(cells.items())
    ]
    return HeatMap(
        height=bottom + 28,
        bottom=bottom,
        x_ticks=_times(axis),
        y_ticks=[
            Tick(bottom - (band - first) * _CELL_HEIGHT, wording.span(_band_ms(band)))
            for band in range(first, last + 1, BANDS_PER_DECADE)
        ],
        boxes=boxes,
        bands=_per_band(cells),
    )


def _cell(axis: Axis, step: int, y: float, band: int, jobs: int, most: int) -> Box:
    width = (RIGHT - LEFT) / axis.steps
    time = wording.moment(axis.at_s(step))
    label = f"{time}, {_band(band)}: {wording.counted(jobs, 'job')}"
    x = round(LEFT + step * width, 1)
    return Box(x, y, round(width, 2), _CELL_HEIGHT, level(jobs, most), label)


def level(value: float, most: float) -> int:
    """From 1 to :data:`LEVELS`, by the logarithm; 0 for nothing."""
    if value <= 0:
        return 0
    part = math.log1p(value) / math.log1p(most)
    return min(LEVELS, 1 + int(part * LEVELS))


def _per_band(cells: Mapping[tuple[int, int], int]) -> list[tuple[str, str]]:
    sums: dict[int, int] = {}
    for (_, band), jobs in cells.items():
        sums[band] = sums.get(band, 0) + jobs
    return [(_band(band), wording.count(sums[band])) for band in sorted(sums)]


def _band_ms(band: int) -> float:
    return float(10 ** (band / BANDS_PER_DECADE))


def _band(band: int) -> str:
    first = "0 ms" if band == 0 else wording.span(_band_ms(band))
    return f"{first} to {wording.span(_band_ms(band + 1))}"


def ranges(totals: Sequence[Mapping[str, Any]]) -> Ranges:
    """Waiting and running of queues, on one logarithmic scale."""
    decades = _decades([value for row in totals for value in _known(row)])
    bottom = _TOP + len(totals) * _ROW_HEIGHT

    def place(value_ms: float) -> float:
        part = (math.log10(max(value_ms, 1)) - decades[0]) / (decades[-1] - decades[0])
        return round(_NAME_WIDTH + part * (RIGHT - _NAME_WIDTH), 1)

    boxes, marks = [], []
    for at, row in enumerate(totals):
        for number, kind in enumerate(("wait", "run")):
            y = _TOP + at * _ROW_HEIGHT + 5 + number * 12
            if row[f"{kind}_p50_ms"] is not None:
                from_x, to_x = place(row[f"{kind}_p50_ms"]), place(row[f"{kind}_p99_ms"])
                width, label = round(max(to_x - from_x, 2), 1), _label(row, kind)
                boxes.append(Box(from_x, y, width, 10, number + 1, label))
                marks.append(Box(place(row[f"{kind}_p95_ms"]) - 1, y - 1, 2, 12, 0, ""))
    return Ranges(
        height=bottom + 28,
        bottom=bottom,
        left=_NAME_WIDTH,
        x_ticks=[Tick(place(10.0**power), wording.span(10.0**power)) for power in decades],
        names=[
            Tick(_TOP + (at + 0.5) * _ROW_HEIGHT + 4, _short(row["queue"]))
            for at, row in enumerate(totals)
        ],
        boxes=boxes,
        marks=marks,
    )


def _known(row: Mapping[str, Any]) -> list[float]:
    names = (f"{kind}_{rank}_ms" for kind in ("wait", "run") for rank in ("p50", "p99"))
    return [row[name] for name in names if row[name] is not None]


def _decades(values_ms: Sequence[float]) -> list[int]:
    """Powers of ten around these times, of which there are two at least."""
    first = math.floor(math.log10(max(min(values_ms, default=1), 1)))
    last = math.ceil(math.log10(max(max(values_ms, default=1), 1)))
    return list(range(first, max(last, first + 1) + 1))


def _label(row: Mapping[str, Any], kind: str) -> str:
    ranks = (f"{rank} {wording.span(row[f'{kind}_{rank}_ms'])}" for rank in ("p50", "p95", "p99"))
    return f"{wording.name(row['queue'])}, {kind}: {', '.join(ranks)}"


def _short(queue: str) -> str:
    """A name that fits beside a plot."""
    name = wording.name(queue)
    return name if len(name) <= 26 else f"{name[:16]}…{name[-9:]}"


def _times(axis: Axis) -> list[Tick]:
    """Labels at the beginning of some steps: the time of day, or the day."""
    every = -(-axis.steps // _X_TICKS)
    width = (RIGHT - LEFT) / axis.steps
    days = axis.steps * axis.step_s > 2 * 86_400
    ticks = []
    for step in range(0, axis.steps, every):
        moment = wording.moment(axis.at_s(step))
        day, time, _ = moment.split(" ")
        ticks.append(Tick(round(LEFT + step * width, 1), f"{day[5:]} {time[:5]}" if days else time))
    return ticks


def _round_steps(values: Sequence[float]) -> list[float]:
    """Round numbers that span the values."""
    least, most = min(values), max(values)
    raw = (most - least) / _Y_TICKS or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= raw)
    last = max(math.ceil(most / step), 1)
    return [number * step for number in range(math.floor(least / step), last + 1)]
