"""Two versions of the daemon on the same work, in turn: ``python benchmarks/versions.py OTHER``.

``OTHER``: the interpreter of the environment in which the other version is installed. Prints the
ratios of this version to the other one, round by round: median, lowest, highest.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from bench import Bench, Daemon, machine
from repl3 import Trio, load


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=150_000, help="jobs per round at depth 1")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="disque-bench-") as folder:
        this = Bench(Path(folder), args.rounds, args.jobs)
        other = Bench(Path(folder), args.rounds, args.jobs, args.other)
        print(f"{machine()}; this version ÷ the other one, {args.rounds} rounds in turn\n")
        print("| work | jobs/s: median | lowest | highest | CPU per job: median |")
        print("|---|---|---|---|---|", flush=True)
        for name, options in (("", ()), ("AOF everysec, ", ("--appendonly", "yes"))):
            pair = this.disque(*options), other.disque(*options)
            for depth in (1, 16):
                alone(f"{name}depth {depth}", this, pair, depth)
            for daemon in pair:
                daemon.stop()
        replicated(this, other)
        memory(this, other)


def alone(name: str, bench: Bench, pair: tuple[Daemon, Daemon], depth: int) -> None:
    """One node."""
    jobs = bench.jobs * (1 if depth == 1 else 3)
    rows = []
    for number in range(bench.rounds + 1):
        bench.progress(f"{name}, round {number} of {bench.rounds}")
        order = (0, 1) if number % 2 else (1, 0)
        results = {at: bench.load(pair[at], depth, jobs) for at in order}
        rows.append((results[0][0] / results[1][0], results[0][1] / results[1][1]))
    row(name, rows[1:])


def replicated(this: Bench, other: Bench) -> None:
    """Three nodes, three copies."""
    trios = Trio(this), Trio(other)
    for depth in (1, 16):
        rows = []
        for number in range(this.rounds + 1):
            this.progress(f"REPLICATE 3, depth {depth}, round {number} of {this.rounds}")
            results: dict[int, tuple[float, float]] = {}
            for at in (0, 1) if number % 2 else (1, 0):
                before_s = trios[at].cpu_s()
                done = load(this, trios[at].nodes[0], depth, this.jobs, "-r", "3")
                used_s = trios[at].cpu_s() - before_s
                results[at] = float(done["jobs_s"]), used_s / done["jobs"]
            rows.append((results[0][0] / results[1][0], results[0][1] / results[1][1]))
        row(f"REPLICATE 3, depth {depth}", rows[1:])
    for trio in trios:
        trio.stop()


def memory(this: Bench, other: Bench) -> None:
    """What a queued job costs."""
    jobs = 500_000
    sizes = []
    for bench in (this, other):
        daemon = bench.disque()
        before = daemon.resident()
        bench.load(daemon, 100, jobs, "-m", "add")
        sizes.append((daemon.resident() - before) / jobs)
        daemon.stop()
    print(f"\nBytes per queued job: {sizes[0]:.0f}, the other version {sizes[1]:.0f}")


def row(name: str, rows: list[tuple[float, float]]) -> None:
    """One line of the table."""
    speeds = [speed for speed, _ in rows]
    print(
        f"| {name} | {statistics.median(speeds):.3f} | {min(speeds):.3f} | {max(speeds):.3f}"
        f" | {statistics.median(cpu for _, cpu in rows):.3f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
