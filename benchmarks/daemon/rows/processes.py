"""Two processes of one daemon beside one."""

from __future__ import annotations

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_least, at_most


def two(bench: Bench) -> None:
    """Where the load generator needs a core too, two cores cannot show twice the speed."""
    both, one = bench.disque("--processes", "2"), bench.disque()
    for depth in (1, 16):
        load = Load(bench.jobs * (1 if depth == 1 else 3), depth=depth, options=("-r", "1"))
        name = f"2 processes, depth {depth}"
        rows = bench.pair(name, (both, load), (one, load))
        ratios = [a.jobs_s / b.jobs_s for a, b in rows]
        bench.report.add(name, "jobs/s ÷ 1 process", ratios, at_least(1.5))
        cpu = [a.cpu_us / b.cpu_us for a, b in rows]
        bench.report.add(name, "CPU per job ÷ 1 process", cpu, at_most(1.1))
    both.stop()
    one.stop()
