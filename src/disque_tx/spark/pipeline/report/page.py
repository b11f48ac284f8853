"""``disque-pipeline report``: one page about jobs, queues and nodes, to be read anywhere.

The page is self-contained: style, plots, and every number of them as text. It has no scripts and
loads nothing. Names of queues and jobs were chosen by strangers; all texts are escaped. The same
tables give the same page, byte for byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import attrs
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from disque_tx.spark import objectstore
from disque_tx.spark.errors import OutputExists, PipelineError
from disque_tx.spark.pipeline import wording
from disque_tx.spark.pipeline.report import plots, sources
from disque_tx.spark.pipeline.report.axis import Axis
from disque_tx.spark.pipeline.report.figures import Figures, ReportScope, measure
from disque_tx.spark.pipeline.report.queries import Row
from disque_tx.spark.pipeline.report.returns import FUNCTION
from disque_tx.spark.pipeline.report.spans import Period

TITLE: Final = "Report on queues"
HEADINGS: Final = {
    "summary": "Summary",
    "slo": "Service levels",
    "audit": "Audit",
    "rates": "Rates",
    "backlog": "Backlog",
    "latency": "Latency",
    "percentiles": "Percentiles over time",
    "queues": "Queues",
    "tenants": "Tenants",
    "worst": "Worst queues",
    "errors": "Retries and dead letters",
    "slowest": "Slowest",
    "retry-too-short": "RETRY too short",
    "redelivered": "Many redeliveries",
    "dead-letter-candidate": "Dead-letter candidates",
    "clock-skew": "Clocks",
    "flow": "Flow between nodes",
    "queries": "Queries",
}
#: Finding → the text when there is none.
_FINDINGS: Final = {
    "retry-too-short": "Every RETRY is longer than 99 of 100 runs of its queue.",
    "redelivered": "In no queue was more than one job in ten delivered more than once.",
    "dead-letter-candidate": "No job was tried five times without being acknowledged.",
    "clock-skew": "No clocks of nodes are known to differ by more than 100 ms.",
}
_WAITING: Final = "In queues, all deliveries of a job together."
_RUNNING: Final = "From delivery to acknowledgement."
_FLOW_NODES_MAX: Final = 12
_EVERYTHING: Final = ReportScope()
#: The title of a page is within these.
_HEAD_BYTES: Final = 1024
_GAPS_MAX: Final = 20
_US_IN_S: Final = 1_000_000


class CannotWrite(PipelineError):
    """A file cannot be written."""


@attrs.frozen
class FlowMatrix:
    """A matrix of ``nodes``, the busiest ones. ``left_out``: how many others there are."""

    nodes: list[str]
    left_out: int
    pairs: dict[tuple[str, str], tuple[int, int]]
    most: int

    @classmethod
    def of(cls, pairs: dict[tuple[str, str], tuple[int, int]]) -> FlowMatrix:
        """From jobs exported and imported per pair."""
        weights: dict[str, int] = {}
        for pair, counts in pairs.items():
            for node in pair:
                weights[node] = weights.get(node, 0) + max(counts)
        busiest = sorted(weights, key=lambda node: (-weights[node], node))
        shown = sorted(busiest[:_FLOW_NODES_MAX])
        most = max(map(max, pairs.values()), default=0)
        return cls(shown, len(busiest) - len(shown), pairs, most)

    def cell(self, from_node: str, to_node: str) -> tuple[int, int, int]:
        """Exported, imported, and the colour level."""
        exported, imported = self.pairs.get((from_node, to_node), (0, 0))
        return exported, imported, plots.level(max(exported, imported), self.most)


def report(
    out: str, html: Path, events: str | None = None, top: int = 20, asked: ReportScope = _EVERYTHING
) -> None:
    """Write the page to the file ``html``; one of an earlier report is replaced.

    ``out``: what ``lifecycle`` made. ``events``: the table of events, for the audit. ``top``: how
    many queues and findings of a kind it shows. ``asked``: about which period, and what else.

    :raises BadTable: when ``out`` or ``events`` has not the expected tables.
    :raises OutputExists: when the file is something else than a report.
    :raises CannotWrite: when the file cannot be written.
    """
    _check_replaceable(html)
    page = rendered(measure(out, events, top, asked))
    temporary = html.with_name(f".{html.name}.{uuid4().hex}")
    try:
        try:
            temporary.write_text(page, encoding="utf-8", newline="\n")
            os.replace(temporary, html)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise CannotWrite(f"{html} cannot be written: {why}. Choose another file.") from error


def _check_replaceable(html: Path) -> None:
    try:
        with html.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        why = error.strerror or str(error)
        raise CannotWrite(f"{html} cannot be written: {why}. Choose another file.") from error
    if f"<title>{TITLE}</title>".encode() not in head:
        raise OutputExists(
            f"{html} is not replaced, because it is not a report. Choose another file, or remove"
            " it by hand."
        )


def rendered(figures: Figures) -> str:
    """The page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name in (
        "code",
        "count",
        "moment",
        "name",
        "node",
        "sentence",
        "share",
        "since",
        "size",
        "span",
    ):
        environment.filters[name] = getattr(wording, name)
    environment.globals.update(LEFT=plots.LEFT, RIGHT=plots.RIGHT, WIDTH=plots.WIDTH)
    return environment.get_template("report.html").render(_context(figures))


def _context(figures: Figures) -> dict[str, Any]:
    """The variables of the template."""
    axis = figures.axis
    missing = sorted((figures.checked.missing if figures.checked else {}).items())
    return {
        **attrs.asdict(figures, recurse=False),
        "title": TITLE,
        "headings": HEADINGS,
        "findings": _FINDINGS,
        "span": _span(figures),
        "tiles": _tiles(figures),
        "step_s": axis.step_s,
        "rates": _rates(figures),
        "backlog": _backlog(figures),
        "heats": [
            ("Waiting", _WAITING, _heat(figures.waits, axis), "wait-ms"),
            ("Running", _RUNNING, _heat(figures.runs, axis), "run-ms"),
        ],
        "courses": [
            ("Waiting", _course(figures.course.waits, figures.course.axis), "wait-course"),
            ("Running", _course(figures.course.runs, figures.course.axis), "run-course"),
        ],
        "course_s": figures.course.axis.step_s,
        "ranges": plots.ranges(figures.totals),
        "flow": FlowMatrix.of(figures.flow),
        "made": {query.name: query for query in figures.queries},
        "longest": [
            ("Jobs that ran longest", figures.slowest.ran, "ran-longest"),
            ("Jobs that waited longest", figures.slowest.waited, "waited-longest"),
        ],
        "similar": FUNCTION,
        "views_script": sources.script(figures.views),
        "cut": [view for view in figures.views if view.left_out],
        "stored": any(objectstore.is_in(view.root) for view in figures.views),
        "gaps": sorted(missing, key=lambda gap: -gap[1])[:_GAPS_MAX],
    }


def _span(figures: Figures) -> tuple[float, float] | None:
    """The time that the page is about."""
    summary, period = figures.summary, figures.period
    if period is not None:
        return period.span_s
    if summary["begin_us"] is None or summary["end_us"] is None:
        return None
    return Period(summary["begin_us"], summary["end_us"]).span_s


@attrs.frozen
class Tile:
    """A number at the top. ``earlier``: in a period before. ``change``: from that one."""

    what: str
    value: str
    earlier: str | None
    change: str


def _tiles(figures: Figures) -> list[Tile]:
    """The numbers at the top."""
    numbers, earlier = _numbers(figures.summary, figures.period), dict[str, float | None]()
    if figures.compared is not None and figures.compared.summary is not None:
        earlier = _numbers(figures.compared.summary, figures.compared.period)
    tiles = []
    for what, number in numbers.items():
        shown = _SHOWN.get(what, wording.count)
        before = shown(earlier[what]) if what in earlier else None
        tiles.append(Tile(what, shown(number), before, wording.change(number, earlier.get(what))))
    return tiles


def _numbers(summary: Row, period: Period | None) -> dict[str, float | None]:
    begin_us, end_us = summary["begin_us"], summary["end_us"]
    if period is not None:
        # Jobs end after the period in which they were added.
        end_us = period.end_us
    span_s = 0 if begin_us is None or end_us is None else (end_us - begin_us) / _US_IN_S
    jobs = summary["jobs"]
    return {
        "jobs": jobs,
        "queues": summary["queues"],
        "nodes": summary["nodes"],
        "of bodies": summary["bytes"],
        "added per second": summary["added"] / span_s if span_s > 0 else None,
        "acknowledged": summary["acked"] / jobs if jobs else None,
        "delivered again": summary["redelivered_jobs"] / jobs if jobs else None,
        "nacks": summary["nacks"],
    }


def _share(value: float | None) -> str:
    return wording.share(value or 0, 0 if value is None else 1)


#: How the numbers at the top are shown that are no counts.
_SHOWN: Final[dict[str, Callable[[float | None], str]]] = {
    "of bodies": wording.size,
    "acknowledged": _share,
    "delivered again": _share,
}


def _rates(figures: Figures) -> plots.LinePlot | None:
    series = {
        name.replace("redelivered", "delivered again"): [
            count / figures.axis.step_s for count in counts
        ]
        for name, counts in figures.rates.items()
    }
    return plots.lines(series, figures.axis) if any(map(any, series.values())) else None


def _backlog(figures: Figures) -> plots.LinePlot | None:
    if not figures.totals:
        return None
    series = {wording.name(name) if name else "all": v for name, v in figures.backlog.items()}
    return plots.lines(series, figures.axis)


def _heat(cells: dict[tuple[int, int], int], axis: Axis) -> plots.HeatMap | None:
    return plots.heat_map(cells, axis) if cells else None


def _course(series: Mapping[str, Sequence[int | None]], axis: Axis) -> plots.LinePlot | None:
    known = any(value is not None for values in series.values() for value in values)
    return plots.latency_lines(series, axis) if known else None
