"""The figures of queues, over several nodes and over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from disque_tx.client.errors import printable
from disque_tx.client.values import QueueStat


@attrs.frozen
class Figures:
    """The figures of a queue, over all nodes that know it. ``age_s``: the oldest.
    ``jobs_in``, ``jobs_out``: since the nodes know the queue. ``pause``: none, in, out or all; the
    states of all nodes if they differ."""

    name: str
    length: int = 0
    age_s: int = 0
    blocked: int = 0
    jobs_in: int = 0
    jobs_out: int = 0
    pause: str = "none"


def total(name: str, stats: Iterable[QueueStat | None]) -> Figures:
    """A queue as several nodes see it; ``None`` from those that do not know it."""
    known = [stat for stat in stats if stat is not None]
    pauses = sorted({stat.pause for stat in known})
    return Figures(
        name,
        sum(stat.length for stat in known),
        max((stat.age_s for stat in known), default=0),
        sum(stat.blocked for stat in known),
        sum(stat.jobs_in for stat in known),
        sum(stat.jobs_out for stat in known),
        "/".join(pauses) or "none",
    )


@attrs.frozen
class Rates:
    """Jobs per second, in and out; ``None`` when there is nothing to compare with."""

    in_per_s: float | None = None
    out_per_s: float | None = None


def rates(before: Figures | None, after: Figures, elapsed_s: float) -> Rates:
    """The rates between two samples. A counter that has decreased is of a node that restarted."""
    if before is None or elapsed_s <= 0:
        return Rates()
    return Rates(
        max(0, after.jobs_in - before.jobs_in) / elapsed_s,
        max(0, after.jobs_out - before.jobs_out) / elapsed_s,
    )


def _rate(per_s: float | None) -> str:
    return "-" if per_s is None else f"{per_s:.1f}"


def values(figures: Figures, speed: Rates) -> dict[str, object]:
    """The figures for programs: exact, with full names."""
    return {
        "queue": figures.name,
        "length": figures.length,
        "age_s": figures.age_s,
        "in_per_s": speed.in_per_s,
        "out_per_s": speed.out_per_s,
        "blocked": figures.blocked,
        "jobs_in": figures.jobs_in,
        "jobs_out": figures.jobs_out,
        "pause": figures.pause,
    }


#: The columns of a table of queues.
COLUMNS: Final = ("queue", "length", "age s", "in/s", "out/s", "blocked", "pause")


def cells(figures: Figures, speed: Rates) -> tuple[str, ...]:
    """A row of the table, safe to print."""
    return (
        printable(figures.name),
        str(figures.length),
        str(figures.age_s),
        _rate(speed.in_per_s),
        _rate(speed.out_per_s),
        str(figures.blocked),
        printable(figures.pause),
    )
