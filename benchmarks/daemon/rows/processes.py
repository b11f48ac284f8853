"""Several processes of one daemon beside one."""

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


def flow(bench: Bench) -> None:
    """Somebody whose producers and consumers have connections of their own, which the daemon deals
    out to its processes: most jobs go from one process to another."""
    for number in (2, 4):
        many, one = bench.disque("--processes", str(number)), bench.disque()
        name = f"blocked consumer, {number} processes"
        load = Load(max(1, bench.jobs // 10), queues=1, options=("-m", "blocked"))
        rows = bench.pair(name, (many, load), (one, load))
        bench.report.add(name, "µs until received, p50", [a.add_p50_us for a, _ in rows])
        tails: list[float] = [a.add_p99_us for a, _ in rows]
        bench.report.add(name, "µs until received, p99", tails, at_most(3_000))
        _, *workers = many.pids()
        try:
            with limited([*workers, *one.pids()], _SHARE):
                _flow(bench, f"{number} processes, a quarter of a core each", many, one)
        except OSError as error:
            progress(f"no row with a quarter of a core for each process: {error}\n")
        many.stop()
        one.stop()


def _flow(bench: Bench, work: str, many: Server, one: Server) -> None:
    """Producers and consumers on connections of their own, at the same port."""
    name = f"{work}, producers and consumers apart"
    loads = [
        Load(bench.jobs, 16, 40, 20, ("-r", "1", "-a", str(server.port))) for server in (many, one)
    ]
    rows = bench.pair(name, (many, loads[0]), (one, loads[1]))
    ratios = [a.jobs_s / b.jobs_s for a, b in rows]
    bench.report.add(name, "jobs/s ÷ 1 process", ratios, at_least(1.4))
    cpu = [a.cpu_us / b.cpu_us for a, b in rows]
    bench.report.add(name, "CPU per job ÷ 1 process", cpu)


def _compare(bench: Bench, work: str, both: Server, one: Server) -> None:
    for depth in (1, 16):
        load = Load(bench.jobs * (1 if depth == 1 else 3), depth=depth, options=("-r", "1"))
        name = f"{work}, depth {depth}"
        rows = bench.pair(name, (both, load), (one, load))
        ratios = [a.jobs_s / b.jobs_s for a, b in rows]
        bench.report.add(name, "jobs/s ÷ 1 process", ratios, at_least(1.5))
        cpu = [a.cpu_us / b.cpu_us for a, b in rows]
        bench.report.add(name, "CPU per job ÷ 1 process", cpu, at_most(1.1))
