"""The figures of a daemon, which are the sums over its processes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

#: Of one process, as ``INodeView.figures`` returns them.
Figures = dict[str, Any]

#: Fields of INFO of which the greatest is meant.
_GREATEST: Final = frozenset(
    (
        *("oldest_queued_job_age_seconds", "uptime_in_seconds", "aof_rewrite_in_progress"),
        *("cluster_clock_ahead_seconds", "cluster_clocks_apart", "discovery_addresses"),
        *("discovery_sources_failing", "event_loop_delays", "event_loop_delay_seconds"),
        *("copies_eta_seconds", "holders_lost", "walk_progress"),
    )
)
#: And of which the least is.
_LEAST: Final = frozenset(("certificate_expires_in_seconds", "certificate_near_end_seconds"))
#: What only names something.
_TEXTS: Final = frozenset(("disque_version", "disque_tx_version"))


def of_daemon(found: dict[int, Figures]) -> Figures:
    """The sums over what ``IProcesses.gather`` has found."""
    running = [figures for number, figures in found.items() if number]
    return summed(running, [found[0]] if 0 in found else [])


def summed(processes: list[Figures], ended: Iterable[Figures] = ()) -> Figures:
    """The figures of all these, and the counters of those that ``ended``. How many nodes are in
    which state is what the process says that sees most of them in it: each is a node of the cluster
    itself."""
    running, processes = len(processes), [*processes, *ended]
    total = {
        "info": _info([one["info"] for one in processes], running),
        "commands": _commands(row for one in processes for row in one["commands"]),
        "protocols": _protocols(row for one in processes for row in one["protocols"]),
        "nodes": _greatest(one["nodes"] for one in processes),
        "leaving": any(one["leaving"] for one in processes),
        "write_ok": all(one["write_ok"] for one in processes),
    }
    for name in ("wait", "run"):
        total[name] = _durations([one[name] for one in processes])
    return total


def _info(processes: list[dict[str, str]], running: int) -> dict[str, str]:
    total: dict[str, str] = {"processes_counted": str(running)}
    for name, first in processes[0].items():
        if name in _TEXTS:
            total[name] = first
            continue
        try:
            values = [float(one[name]) for one in processes if name in one]
        except ValueError:
            continue  # no number
        if name in _LEAST:
            number = min(values)
        else:
            number = max(values, key=abs) if name in _GREATEST else math.fsum(values)
        total[name] = str(int(number)) if number.is_integer() else repr(number)
    return total


def _commands(rows: Iterable[Any]) -> list[tuple[str, int, int]]:
    calls: Counter[str] = Counter()
    spent_us: Counter[str] = Counter()
    for name, count, us in rows:
        calls[name] += count
        spent_us[name] += us
    return [(name, count, spent_us[name]) for name, count in calls.items()]


def _protocols(rows: Iterable[Figures]) -> list[Figures]:
    found: dict[str, Figures] = {}
    for row in rows:
        total = found.setdefault(row["name"], {"name": row["name"]})
        for name, value in row.items():
            if name != "name":
                total[name] = total.get(name, 0) + value
    return list(found.values())


def _greatest(rows: Iterable[dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        for name, value in row.items():
            found[name] = max(found.get(name, 0), value)
    return found


def _durations(histograms: list[Figures]) -> Figures:
    counts = zip(*(one["counts"] for one in histograms), strict=True)
    return {
        "bounds_s": histograms[0]["bounds_s"],
        "counts": [sum(column) for column in counts],
        "sum_s": sum(one["sum_s"] for one in histograms),
    }
