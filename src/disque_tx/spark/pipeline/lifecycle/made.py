"""The tables of ``lifecycle``, and what is noted with them, whichever engine makes their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from disque_tx.spark.errors import OutputExists
from disque_tx.spark.pipeline.published import ResultTable
from disque_tx.spark.pipeline.tables.changes import NotOnlyAdded, added_since
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog

#: How late most events are ingested. Rows that are older than this get files of their own.
_SETTLED_US: Final = 24 * 3_600_000_000
#: Tables below OUT, in the order in which they are made.
RESULTS: Final = ("jobs", "queues", "distributions", "totals", "flow", "clocks", "findings")
#: Results with other columns, or of other rules, are not brought up to date.
LAYOUT: Final = 1


#: What a run says that had nothing to do.
UP_TO_DATE: Final = "Up to date: no event was added."


@attrs.frozen
class Made:
    """``paths``: table → where it is. ``how``: a sentence about what was read."""

    paths: Mapping[str, str]
    how: str


def settled_us(horizon_us: int) -> int:
    """Rows from before this time are not expected to change."""
    return horizon_us - _SETTLED_US


def contents(part: str) -> str:
    """What one of :data:`RESULTS` contains, as its Delta table has it."""
    return f"lifecycle: {part}"


def origin(events: DeltaLog, window_s: int) -> dict[str, Any]:
    """What results were made of, for their notes."""
    return {"table": events.id, "window_s": window_s}


def noted(events: DeltaLog, window_s: int, horizon_us: int) -> dict[str, Any]:
    """All notes of results. ``horizon_us``: the time of the latest event, since 1970."""
    made = {"layout": LAYOUT, "version": events.version, "horizon_us": horizon_us}
    return {**origin(events, window_s), **made}


def added_to(events: DeltaLog, former: list[Mapping[str, Any]]) -> list[str]:
    """The files of events that were added since the results with these notes were made.

    :raises NotOnlyAdded: when results must be computed from all events.
    """
    if not any(former):
        raise NotOnlyAdded("there were no results")
    first = former[0]
    if any(notes != first for notes in former):
        raise NotOnlyAdded("the last run ended before it had published all results")
    if first["layout"] != LAYOUT:
        raise NotOnlyAdded("an earlier version of this program made the results")
    return added_since(events, first["version"])


def check_origin(
    outputs: Mapping[str, ResultTable], former: list[Mapping[str, Any]], origin: Mapping[str, Any]
) -> None:
    """:raises OutputExists: when there are results that were not made in the same way."""
    for output, notes in zip(outputs.values(), former, strict=True):
        if not output.is_made or (notes and origin.items() <= notes.items()):
            continue
        raise OutputExists(
            f"{output.root} has results of another table, of another --window or of an earlier"
            " version. Choose a new folder, or add --whole to replace them."
        )
