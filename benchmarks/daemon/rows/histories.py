"""A node that keeps the history of its queues, beside one that does not."""

from __future__ import annotations

from typing import Final

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_most

_TIMES: Final = 8


def history(bench: Bench) -> None:
    """Somebody who opens the console only when something is wrong pays for its charts all the time:
    what that costs with 50 busy queues."""
    kept, off = bench.disque("--history", "yes"), bench.disque("--history", "no")
    load = Load(bench.jobs * _TIMES, depth=16)
    name = "History of 50 busy queues, depth 16"
    rows = bench.pair(name, (kept, load), (off, load))
    bench.report.add(
        name, "CPU ÷ history no", [a.cpu_us / b.cpu_us for a, b in rows], at_most(1.02)
    )
    bench.report.add(name, "jobs/s ÷ history no", [a.jobs_s / b.jobs_s for a, b in rows])
    kept.stop()
    off.stop()
