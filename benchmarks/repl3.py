"""Three nodes, every job on all of them: beside a Redis list, which has one copy (``bench.py``)."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench import Bench, Daemon


class Trio:
    """Three daemons that know each other; clients talk to the first."""

    def __init__(self, bench: Bench) -> None:
        self.nodes = [bench.disque() for _ in range(3)]
        for other in self.nodes[1:]:
            self.nodes[0].ask(b"CLUSTER MEET 127.0.0.1 %d\r\n" % other.port)
        deadline_s = time.monotonic() + 20
        while not all(b"reachable_nodes:2" in n.ask(b"CLUSTER INFO\r\n") for n in self.nodes):
            if time.monotonic() > deadline_s:
                raise SystemExit("three nodes did not find each other")
            time.sleep(0.1)

    def cpu_s(self) -> float:
        """Processor time of all three."""
        return sum(node.cpu_s() for node in self.nodes)

    def stop(self) -> None:
        """End them."""
        for node in self.nodes:
            node.stop()


def load(bench: Bench, daemon: Daemon, depth: int, jobs: int, *options: str) -> dict[str, Any]:
    """One run of the load generator, as it reports it."""
    command = [str(bench.loadgen), "-t", daemon.kind, "-p", str(daemon.port), "-c", "50"]
    words = ["-q", "50", "-d", str(depth), "-n", str(jobs), *options]
    out = subprocess.run(command + words, check=True, capture_output=True).stdout
    result: dict[str, Any] = json.loads(out)
    if result["errors"]:
        raise SystemExit(f"{daemon.kind} answered errors: {result.get('first_error')}")
    return result


def repl3(bench: Bench) -> None:
    """Jobs per second as ratios to the list, processor time of all nodes, the tail of ADDJOB."""
    print(
        "\n| REPLICATE 3, depth | jobs/s | Redis list jobs/s | ratio | CPU µs/job, 3 nodes |"
        " ADDJOB p50 µs | p99 µs | p99/p50 |"
    )
    print("|---|---|---|---|---|---|---|---|")
    trio, redis = Trio(bench), bench.redis()
    for depth in (1, 16):
        jobs = bench.jobs if depth == 1 else 2 * bench.jobs
        load(bench, trio.nodes[0], depth, jobs // 4, "-r", "3")
        rows = []
        for number in range(bench.rounds):
            bench.progress(f"REPLICATE 3, depth {depth}, round {number + 1} of {bench.rounds}")
            before_s = trio.cpu_s()
            ours = load(bench, trio.nodes[0], depth, jobs, "-r", "3")
            used_us = (trio.cpu_s() - before_s) * 1e6 / ours["jobs"]
            other = load(bench, redis, depth, jobs)
            add = ours["add"]
            rows.append(
                (
                    *(ours["jobs_s"], other["jobs_s"], ours["jobs_s"] / other["jobs_s"]),
                    *(used_us, add["p50"], add["p99"], add["p99"] / add["p50"]),
                )
            )
        middle = [statistics.median(row[at] for row in rows) for at in range(7)]
        print(
            f"| {depth} | {middle[0]:,.0f} | {middle[1]:,.0f} | {middle[2]:.3f} | {middle[3]:.1f} "
            f"| {middle[4]:,.0f} | {middle[5]:,.0f} | {middle[6]:.2f} |"
        )
    redis.stop()
    trio.stop()
