"""Three nodes, every job on all of them; the Redis list beside it has one copy."""

from __future__ import annotations

from benchmarks.daemon.bench import Bench, Load, Loaded
from benchmarks.daemon.report import Goal, at_least, at_most
from benchmarks.daemon.servers import Cluster, Server


def depth_1(bench: Bench) -> None:
    """Without pipelining."""
    _copies(bench, 1, at_least(0.62), at_most(42))


def depth_16(bench: Bench) -> None:
    """16 requests at a time."""
    _copies(bench, 16, at_least(0.17), at_most(27))


def _copies(bench: Bench, depth: int, jobs_goal: Goal, cpu_goal: Goal) -> None:
    name = f"REPLICATE 3, depth {depth}"
    cluster = bench.cluster(3)
    reference: Server | Cluster = (
        bench.cluster(3, bench.other) if bench.other else bench.reference()
    )
    load = Load(bench.jobs * (1 if depth == 1 else 2), depth=depth, options=("-r", "3"))
    theirs = load if bench.other else Load(load.jobs, depth=depth)
    one: tuple[Loaded, Load] = cluster, load
    rows = bench.pair(name, one, (reference, theirs))
    add = bench.report.add
    ratios = [a.jobs_s / b.jobs_s for a, b in rows]
    add(name, f"jobs/s ÷ {bench.beside}", ratios, jobs_goal)
    add(name, "jobs/s", [a.jobs_s for a, _ in rows])
    add(name, "CPU µs per job, all nodes", [a.cpu_us for a, _ in rows], cpu_goal)
    if bench.other:
        add(name, f"CPU ÷ {bench.beside}", [a.cpu_us / b.cpu_us for a, b in rows])
    add(name, "ADDJOB µs, p50", [a.add_p50_us for a, _ in rows])
    tails = [a.add_p99_us / a.add_p50_us for a, _ in rows]
    add(name, "ADDJOB p99 ÷ p50", tails, at_most(2.5))
    cluster.stop()
    reference.stop()
