"""The figures of queues, over several nodes and over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import attrs

from disque_tx.client import Refused
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import printable
from disque_tx.client.requests.counting import QueueCounts
from disque_tx.client.values import QueueStat


@attrs.frozen
class JobRates:
    """Jobs per second, in and out; ``None`` when there is nothing to compare with."""

    in_per_s: float | None = None
    out_per_s: float | None = None


@attrs.frozen
class QueueSummary:
    """The figures of a queue, over all nodes that know it. ``age_s``: the oldest.
    ``jobs_in``, ``jobs_out``: since the nodes know the queue. ``pause``: none, in, out or all; the
    states of all nodes if they differ. ``delayed``, ``backoff``, ``in_flight``, ``dead``,
    ``loaded``: what QCOUNT of nodes of disque-tx counts, ``None`` if there is none; ``mean``: their
    rates over the last ten seconds."""

    name: str
    length: int = 0
    age_s: int = 0
    blocked: int = 0
    jobs_in: int = 0
    jobs_out: int = 0
    pause: str = "none"
    delayed: int | None = None
    backoff: int | None = None
    in_flight: int | None = None
    dead: int | None = None
    loaded: int | None = None
    mean: JobRates | None = None


#: A queue as one node sees it: QSTAT, ``None`` if it does not know the queue; QCOUNT, ``None`` from
#: an original.
Sample: TypeAlias = tuple[QueueStat | None, QueueCounts | None]


def sample(node: Disque, name: str) -> Sample:
    """Ask one node."""
    try:
        counts = node.queue_counts(name).counts
    except Refused:
        counts = None
    return node.queue_stat(name), counts


def total(name: str, samples: Iterable[Sample]) -> QueueSummary:
    """A queue as several nodes see it."""
    samples = list(samples)
    known = [stat for stat, _ in samples if stat is not None]
    counts = [one for _, one in samples if one is not None]
    pauses = sorted({stat.pause for stat in known})
    figures = QueueSummary(
        name,
        sum(stat.length for stat in known),
        max((stat.age_s for stat in known), default=0),
        sum(stat.blocked for stat in known),
        sum(stat.jobs_in for stat in known),
        sum(stat.jobs_out for stat in known),
        "/".join(pauses) or "none",
    )
    if not counts:
        return figures
    return attrs.evolve(
        figures,
        delayed=sum(one.delayed for one in counts),
        backoff=sum(one.backoff for one in counts),
        in_flight=sum(one.in_flight for one in counts),
        dead=sum(one.dead for one in counts),
        loaded=sum(one.loaded for one in counts),
        mean=JobRates(sum(one.in_per_s for one in counts), sum(one.out_per_s for one in counts)),
    )


def rates(before: QueueSummary | None, after: QueueSummary, elapsed_s: float) -> JobRates:
    """The rates between two samples; at the first one the mean of ten seconds, as far as nodes know
    it. A counter that has decreased is of a node that restarted."""
    if before is None or elapsed_s <= 0:
        return after.mean or JobRates()
    return JobRates(
        max(0, after.jobs_in - before.jobs_in) / elapsed_s,
        max(0, after.jobs_out - before.jobs_out) / elapsed_s,
    )


def _rate(per_s: float | None) -> str:
    return "-" if per_s is None else f"{per_s:.1f}"


def _count(jobs: int | None) -> str:
    return "-" if jobs is None else str(jobs)


def values(figures: QueueSummary, speed: JobRates) -> dict[str, object]:
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
        "delayed": figures.delayed,
        "backoff": figures.backoff,
        "in_flight": figures.in_flight,
        "dead": figures.dead,
        "loaded": figures.loaded,
    }


#: The columns of a table of queues.
COLUMNS: Final = (
    *("queue", "length", "age s", "in/s", "out/s", "blocked", "pause"),
    *("delayed", "backoff", "in flight", "dead", "loaded"),
)


def cells(figures: QueueSummary, speed: JobRates) -> tuple[str, ...]:
    """A row of the table, safe to print."""
    return (
        printable(figures.name),
        str(figures.length),
        str(figures.age_s),
        _rate(speed.in_per_s),
        _rate(speed.out_per_s),
        str(figures.blocked),
        printable(figures.pause),
        *[
            _count(one)
            for one in (figures.delayed, figures.backoff, figures.in_flight, figures.dead)
        ],
        _count(figures.loaded),
    )
