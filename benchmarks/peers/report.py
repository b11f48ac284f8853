"""What came out: Markdown tables, a line for each server, every figure with its spread."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from benchmarks.daemon.report import Goal, written


def spread(values: Sequence[float]) -> str:
    """The median, and in brackets the lowest and the highest if there is more than one value."""
    middle = written(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({written(min(values))} to {written(max(values))})"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Round by round, ours ÷ theirs."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def judged(goal: Goal | None, values: Sequence[float]) -> str:
    """The goal and whether the median meets it; empty without a goal."""
    if goal is None:
        return ""
    return f"{goal}: {'yes' if goal.met(statistics.median(values)) else '**no**'}"


def begin(title: str, columns: Sequence[str]) -> None:
    """Print the head of a table."""
    print(f"\n### {title}\n")
    row(columns)
    row("---" for _ in columns)


def row(cells: Iterable[str]) -> None:
    """Print a line of a table, at once, so that a long run shows what it has."""
    print(f"| {' | '.join(cells)} |", flush=True)
