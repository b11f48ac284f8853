"""Two processes of one daemon beside one."""

from __future__ import annotations

from typing import Final

from benchmarks.daemon.bench import Bench, Load, progress
from benchmarks.daemon.quota import limited
from benchmarks.daemon.report import at_least, at_most
from benchmarks.daemon.servers import Server

# Two processes of this share leave most of two cores to the load generator.
_SHARE: Final = 0.25


def two(bench: Bench) -> None:
    """Where the load generator needs a core too, two cores cannot show twice the speed. So there is
    a second comparison, in which every process gets a quarter of a core."""
    both, one = bench.disque("--processes", "2"), bench.disque()
    _compare(bench, "2 processes", both, one)
    _, *workers = both.pids()
    try:
        with limited([*workers, *one.pids()], _SHARE):
            _compare(bench, "2 processes, a quarter of a core each", both, one)
    except OSError as error:
        progress(f"no row with a quarter of a core for each process: {error}\n")
    both.stop()
    one.stop()


def _compare(bench: Bench, work: str, both: Server, one: Server) -> None:
    for depth in (1, 16):
        load = Load(bench.jobs * (1 if depth == 1 else 3), depth=depth, options=("-r", "1"))
        name = f"{work}, depth {depth}"
        rows = bench.pair(name, (both, load), (one, load))
        ratios = [a.jobs_s / b.jobs_s for a, b in rows]
        bench.report.add(name, "jobs/s ÷ 1 process", ratios, at_least(1.5))
        cpu = [a.cpu_us / b.cpu_us for a, b in rows]
        bench.report.add(name, "CPU per job ÷ 1 process", cpu, at_most(1.1))
