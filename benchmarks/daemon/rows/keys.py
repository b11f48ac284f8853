"""ADDJOB UNIQUE beside ADDJOB: on one node, and on three with copies."""

from __future__ import annotations

from benchmarks.daemon.bench import Bench, Load, Loaded
from benchmarks.daemon.report import at_least


def one_node(bench: Bench) -> None:
    """Every job has a key of its own."""
    ours, other = bench.disque(), bench.disque()
    _pair(bench, "UNIQUE, one node", ours, other, (), 0.8)
    ours.stop()
    other.stop()


def three_nodes(bench: Bench) -> None:
    """The nodes agree on each key, and each of them has a copy of the job."""
    ours, other = bench.cluster(3), bench.cluster(3)
    _pair(bench, "UNIQUE, REPLICATE 3", ours, other, ("-r", "3"), 0.75)
    _pair(bench, "UNIQUE, REPLICATE 3, depth 16", ours, other, ("-r", "3"), 0.7, depth=16)
    ours.stop()
    other.stop()


def _pair(
    bench: Bench,
    name: str,
    ours: Loaded,
    other: Loaded,
    options: tuple[str, ...],
    bound: float,
    depth: int = 1,
) -> None:
    keyed = Load(bench.jobs, depth, options=(*options, "-u"))
    plain = Load(bench.jobs, depth, options=options)
    rows = bench.pair(name, (ours, keyed), (other, plain))
    ratios = [a.jobs_s / b.jobs_s for a, b in rows]
    bench.report.add(name, "jobs/s ÷ without keys", ratios, at_least(bound))
    bench.report.add(name, "jobs/s", [a.jobs_s for a, _ in rows])
