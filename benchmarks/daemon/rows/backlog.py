"""Waiting jobs: the memory they take, and the speed beside them."""

from __future__ import annotations

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_least, at_most


def backlog(bench: Bench) -> None:
    """One node with many jobs, beside an empty one."""
    full = bench.disque()
    empty = bench.reference() if bench.other else bench.disque()
    before = full.resident()
    filling = Load(bench.backlog, depth=100, options=("-m", "add"))
    bench.run(full, filling)
    if bench.other:
        bench.run(empty, filling)
    size = full.resident()
    name = f"{bench.backlog:,} jobs waiting"
    add = bench.report.add
    add(name, "bytes per job, the whole process", [size / bench.backlog], at_most(340))
    add(name, "bytes per job, the growth alone", [(size - before) / bench.backlog])
    if bench.other:
        add(name, "bytes per job ÷ the other version", [size / empty.resident()])
    for depth in (1, 16):
        load = Load(bench.jobs * (1 if depth == 1 else 2), depth=depth)
        rows = bench.pair(f"{name}, depth {depth}", (full, load), (empty, load))
        ratios = [a.jobs_s / b.jobs_s for a, b in rows]
        beside = bench.beside if bench.other else "an empty node"
        add(name, f"depth {depth}: jobs/s ÷ {beside}", ratios, at_least(0.9))
    full.stop()
    empty.stop()


def with_copies(bench: Bench) -> None:
    """Memory on each of three nodes, every job on all of them."""
    cluster = bench.cluster(3)
    jobs = bench.backlog
    bench.run(cluster, Load(jobs, depth=100, options=("-m", "add", "-r", "3")))
    sizes = [node.resident() / jobs for node in cluster.nodes]
    name = f"{jobs:,} jobs waiting, REPLICATE 3"
    bench.report.add(name, "bytes per job, each node", sizes, at_most(420))
    cluster.stop()
