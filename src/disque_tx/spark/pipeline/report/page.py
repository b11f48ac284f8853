"""``disque-pipeline report``: one page about jobs, queues and nodes, to be read anywhere.

The page is self-contained: style, plots, and every number of them as text. It has no scripts and
loads nothing. Names of queues and jobs were chosen by strangers; all texts are escaped. The same
tables give the same page, byte for byte.
"""

from __future__ import annotations

import os
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
from disque_tx.spark.pipeline.report.figures import Figures, measure

TITLE: Final = "Report on queues"
HEADINGS: Final = {
    "summary": "Summary",
    "audit": "Audit",
    "rates": "Rates",
    "backlog": "Backlog",
    "latency": "Latency",
    "queues": "Queues",
    "worst": "Worst queues",
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


def report(out: str, html: Path, events: str | None = None, top: int = 20) -> None:
    """Write the page to the file ``html``; one of an earlier report is replaced.

    ``out``: what ``lifecycle`` made. ``events``: the table of events, for the audit. ``top``: how
    many queues and findings of a kind it shows.

    :raises BadTable: when ``out`` or ``events`` has not the expected tables.
    :raises OutputExists: when the file is something else than a report.
    :raises CannotWrite: when the file cannot be written.
    """
    _check_replaceable(html)
    page = rendered(measure(out, events, top))
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
    for name in ("code", "count", "moment", "name", "node", "sentence", "share", "size", "span"):
        environment.filters[name] = getattr(wording, name)
    environment.globals.update(LEFT=plots.LEFT, RIGHT=plots.RIGHT, WIDTH=plots.WIDTH)
    return environment.get_template("report.html").render(_context(figures))


def _context(figures: Figures) -> dict[str, Any]:
    """The variables of the template."""
    summary, axis = figures.summary, figures.axis
    missing = sorted((figures.checked.missing if figures.checked else {}).items())
    return {
        **attrs.asdict(figures, recurse=False),
        "title": TITLE,
        "headings": HEADINGS,
        "findings": _FINDINGS,
        "begin_s": None if summary["begin_us"] is None else summary["begin_us"] / _US_IN_S,
        "end_s": None if summary["end_us"] is None else summary["end_us"] / _US_IN_S,
        "tiles": _tiles(figures),
        "step_s": axis.step_s,
        "rates": _rates(figures),
        "backlog": _backlog(figures),
        "heats": [
            ("Waiting", _WAITING, _heat(figures.waits, axis), "wait-ms"),
            ("Running", _RUNNING, _heat(figures.runs, axis), "run-ms"),
        ],
        "ranges": plots.ranges(figures.totals),
        "flow": FlowMatrix.of(figures.flow),
        "made": {query.name: query for query in figures.queries},
        "views_script": sources.script(figures.views),
        "cut": [view for view in figures.views if view.left_out],
        "stored": any(objectstore.is_in(view.root) for view in figures.views),
        "gaps": sorted(missing, key=lambda gap: -gap[1])[:_GAPS_MAX],
    }


def _tiles(figures: Figures) -> list[tuple[str, str]]:
    """The numbers at the top."""
    summary = figures.summary
    known = summary["begin_us"] is not None and summary["end_us"] is not None
    span_s = (summary["end_us"] - summary["begin_us"]) / _US_IN_S if known else 0
    acked = figures.outcomes.get("acked", 0)
    return [
        ("jobs", wording.count(summary["jobs"])),
        ("queues", wording.count(summary["queues"])),
        ("nodes", wording.count(summary["nodes"])),
        ("of bodies", wording.size(summary["bytes"])),
        ("added per second", wording.count(summary["added"] / span_s if span_s > 0 else None)),
        ("acknowledged", wording.share(acked, summary["jobs"])),
        ("delivered again", wording.share(summary["redelivered_jobs"], summary["jobs"])),
        ("nacks", wording.count(summary["nacks"])),
    ]


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
