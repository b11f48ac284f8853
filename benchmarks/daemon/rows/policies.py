"""What policies cost: one that matches, and 10,000 of which one matches, beside none."""

from __future__ import annotations

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_least

_MANY = 10_000
_SETTINGS = ("retry-delay", "1", "max-deliveries", "5")


def policies(bench: Bench) -> None:
    """The same node without policies."""
    for count in (1, _MANY):
        name = "1 policy" if count == 1 else f"{count:,} policies"
        patterns = ["q*", *(f"other{number}:*" for number in range(count - 1))]
        directives = [word for pattern in patterns for word in ("--policy", pattern, *_SETTINGS)]
        ours, other = bench.disque(*directives), bench.disque()
        load = Load(bench.jobs)
        rows = bench.pair(name, (ours, load), (other, load))
        ratios = [a.jobs_s / b.jobs_s for a, b in rows]
        bench.report.add(name, "jobs/s ÷ without policies", ratios, at_least(0.95))
        ours.stop()
        other.stop()
