"""Producers and consumers at different nodes of three, beside the same at one node."""

from __future__ import annotations

from typing import Final

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_least, at_most

_QUEUES: Final = 20
#: Jobs per second at different nodes ÷ at one node, by depth.
_GOALS: Final = {1: 0.6, 16: 0.5}


def federation(bench: Bench) -> None:
    """How long a blocked consumer waits, and how many jobs flow."""
    _blocked(bench)
    _flow(bench)


def _blocked(bench: Bench) -> None:
    for what, more in (("", ()), (", MATCH", ("-g", "q*"))):
        cluster = bench.cluster(3)
        here, there = cluster.nodes[0].port, cluster.nodes[1].port
        name = f"blocked consumer at another node{what}"
        options = ("-m", "blocked", *more)
        jobs = max(1, bench.jobs // 10)
        away = Load(jobs, queues=1, options=(*options, "-a", str(there)))
        local = Load(jobs, queues=1, options=(*options, "-a", str(here)))
        rows = bench.pair(name, (cluster, away), (cluster, local))
        add = bench.report.add
        add(name, "µs until received, p50", [a.add_p50_us for a, _ in rows])
        add(name, "µs until received, p99", [a.add_p99_us for a, _ in rows])
        halves = [a.add_p50_us / b.add_p50_us for a, b in rows]
        add(name, "p50 ÷ the same node", halves, at_most(2.5))
        tails = [a.add_p99_us / b.add_p99_us for a, b in rows]
        add(name, "p99 ÷ the same node", tails, at_most(3))
        cluster.stop()


def _flow(bench: Bench) -> None:
    for depth, goal in _GOALS.items():
        for copies in (1, 2):
            for queues in (1, _QUEUES):
                cluster = bench.cluster(3)
                here, there = cluster.nodes[0].port, cluster.nodes[1].port
                among = "1 queue" if queues == 1 else f"{queues} queues"
                name = f"jobs to another node, REPLICATE {copies}, depth {depth}, {among}"
                jobs = bench.jobs * (1 if depth == 1 else 2)
                away, local = (
                    Load(jobs, depth, 40, queues, ("-r", str(copies), "-a", str(port)))
                    for port in (there, here)
                )
                rows = bench.pair(name, (cluster, away), (cluster, local))
                add = bench.report.add
                add(name, "jobs/s", [a.jobs_s for a, _ in rows])
                ratios = [a.jobs_s / b.jobs_s for a, b in rows]
                add(name, "jobs/s ÷ the same node", ratios, at_least(goal))
                cpu = [a.cpu_us / b.cpu_us for a, b in rows]
                add(name, "CPU per job ÷ the same node", cpu, at_most(2.2))
                cluster.stop()
