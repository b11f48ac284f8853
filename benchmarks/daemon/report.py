"""What came out: one line per figure, with its spread and its goal."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import attrs


@attrs.frozen
class Goal:
    """A bound for the median. ``at_least``: it must not be lower, otherwise not higher."""

    bound: float
    at_least: bool

    def met(self, value: float) -> bool:
        """Whether the median keeps the bound."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


def at_least(bound: float) -> Goal:
    """The median must be that high."""
    return Goal(bound, True)


def at_most(bound: float) -> Goal:
    """The median must be that low."""
    return Goal(bound, False)


class Report:
    """Prints a Markdown table as the figures come, and keeps all values for :meth:`save`.
    ``goals``: they count in this run; they do not beside another version."""

    def __init__(self, goals: bool) -> None:
        self._goals = goals
        self._rows: list[dict[str, object]] = []

    def begin(self) -> None:
        """Print the head of the table."""
        print("\n| work | figure | median | lowest | highest | goal | met |")
        print("|---|---|---|---|---|---|---|", flush=True)

    def add(self, work: str, figure: str, values: list[float], goal: Goal | None = None) -> None:
        """One figure, a value per round."""
        middle = statistics.median(values)
        if not self._goals:
            goal = None
        said = ["", ""] if goal is None else [str(goal), "yes" if goal.met(middle) else "**no**"]
        words = [written(value) for value in (middle, min(values), max(values))]
        print(f"| {' | '.join([work, figure, *words, *said])} |", flush=True)
        row: dict[str, object] = {
            "work": work,
            "figure": figure,
            "values": values,
            "goal": said[0],
            "met": said[1],
        }
        self._rows.append(row)

    def save(self, path: Path, machine: str) -> None:
        """All values as JSON."""
        path.write_text(json.dumps({"machine": machine, "figures": self._rows}, indent=1))


def written(value: float) -> str:
    """With three significant digits, or as a whole number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
