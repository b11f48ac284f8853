"""What processes that have ended had counted, so that the sums of the daemon do not fall when one
of them is started again."""

from __future__ import annotations

from typing import Any, Final

Figures = dict[str, Any]

#: Fields of INFO that only grow, besides those that begin with ``total_``.
_COUNTERS: Final = frozenset(
    (
        *("rejected_connections", "aof_syncs", "aof_sync_seconds", "aof_delayed_fsync"),
        *("used_cpu_user", "used_cpu_sys"),
    )
)


class Kept:
    """``figures``: the counters of all that ended, as ``INodeView.figures`` has those of one;
    ``None`` while there are none. What a process counted after it was last asked is lost if it
    crashes: nobody has seen that."""

    def __init__(self) -> None:
        self.figures: Figures | None = None
        self._last: dict[int, Figures] = {}

    def seen(self, number: int, figures: Figures) -> None:
        """The figures that a process has sent to another one."""
        self._last[number] = figures

    def also(self, numbers: list[int]) -> Figures | None:
        """The counters of all that ended, and of these, which do not answer at present."""
        figures = self.figures
        for number in numbers:
            if number in self._last:
                figures = _added(figures or _nothing(), self._last[number])
        return figures

    def ended(self, number: int) -> None:
        """Add the counters of an ended process to the total: its successor begins to count at
        zero."""
        last = self._last.pop(number, None)
        if last is not None:
            self.figures = _added(self.figures or _nothing(), last)


def _nothing() -> Figures:
    return {
        "info": {},
        "commands": [],
        "protocols": [],
        "nodes": {},
        "leaving": False,
        "write_ok": True,
        "wait": None,
        "run": None,
    }


def _added(kept: Figures, last: Figures) -> Figures:
    info = dict(kept["info"])
    for name, value in last["info"].items():
        if name.startswith("total_") or name in _COUNTERS:
            info[name] = _sum(info.get(name, "0"), value)
    return {
        **kept,
        "info": info,
        "commands": _commands([*kept["commands"], *last["commands"]]),
        "protocols": _protocols([*kept["protocols"], *last["protocols"]]),
        "wait": _durations(kept["wait"], last["wait"]),
        "run": _durations(kept["run"], last["run"]),
    }


def _commands(rows: list[Any]) -> list[Any]:
    found: dict[str, list[Any]] = {}
    for name, calls, us in rows:
        total = found.setdefault(name, [name, 0, 0])
        total[1] += calls
        total[2] += us
    return list(found.values())


def _protocols(rows: list[Figures]) -> list[Figures]:
    found: dict[str, Figures] = {}
    for row in rows:
        total = found.setdefault(row["name"], {"name": row["name"]})
        for member, value in row.items():
            if member != "name":
                total[member] = total.get(member, 0) + value
        total["connected"] = 0
    return list(found.values())


def _sum(one: str, other: str) -> str:
    try:
        return str(int(one) + int(other))
    except ValueError:
        return repr(float(one) + float(other))


def _durations(kept: Figures | None, last: Figures) -> Figures:
    if kept is None:
        return last
    return {
        "bounds_s": last["bounds_s"],
        "counts": [a + b for a, b in zip(kept["counts"], last["counts"], strict=True)],
        "sum_s": kept["sum_s"] + last["sum_s"],
    }
