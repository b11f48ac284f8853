"""One of three nodes gives all its queued jobs to the others: how long that takes, and what clients
of these notice meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.daemon.bench import Bench, Load, Result
from benchmarks.daemon.report import at_least, at_most
from benchmarks.daemon.rows.healing import figure, median_of
from benchmarks.daemon.servers import Cluster

_PATIENCE_S = 900
#: For a million jobs.
_GOAL_S = 60


def evacuation(bench: Bench) -> None:
    """Alone, and beside clients of another node."""
    name, cluster = _filled(bench, "alone")
    _evacuate(bench, name, cluster, lambda: time.sleep(0.1))
    cluster.stop()
    name, cluster = _filled(bench, "beside clients")
    load = Load(max(1, bench.jobs // 10), depth=1, queues=20, options=("-r", "1"))
    other = cluster.nodes[1]
    bench.run(other, load)
    before = [bench.run(other, load) for _ in range(bench.rounds)]
    meanwhile: list[Result] = []
    _evacuate(bench, name, cluster, lambda: meanwhile.append(bench.run(other, load)))
    add = bench.report.add
    ratio = median_of(meanwhile, "jobs_s") / median_of(before, "jobs_s")
    add(name, "clients' jobs/s ÷ before", [ratio], at_least(0.5))
    cluster.stop()


def _filled(bench: Bench, how: str) -> tuple[str, Cluster]:
    """The name of the row, and three nodes, the first of which has jobs."""
    jobs = bench.backlog
    cluster = bench.cluster(3)
    bench.run(cluster, Load(jobs, depth=100, queues=1, options=("-m", "add", "-r", "1")))
    return f"{jobs:,} queued jobs leave a node, {how}", cluster


def _evacuate(bench: Bench, name: str, cluster: Cluster, work: Callable[[], object]) -> None:
    """Empty the first node, and do ``work`` until it is empty."""
    node = cluster.nodes[0]
    before_s = cluster.cpu_s()
    node.ask(b"CLUSTER LEAVING yes EVACUATE\r\n")
    began_s = time.monotonic()
    while figure(node, b"evacuation_left"):
        work()
        if time.monotonic() - began_s > _PATIENCE_S:
            raise SystemExit(f"the node is not empty after {_PATIENCE_S} s")
    took_s = time.monotonic() - began_s
    moved = figure(node, b"evacuation_moved")
    add = bench.report.add
    add(name, "s until empty", [took_s], at_most(_GOAL_S * bench.backlog / 1_000_000 + 3))
    add(name, "jobs/s", [moved / took_s])
    add(name, "CPU µs per job, all nodes", [(cluster.cpu_s() - before_s) * 1e6 / moved])
