"""A load balancer in front of three nodes: clients do not know to which node they are connected."""

from __future__ import annotations

from typing import Final

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_least
from benchmarks.daemon.servers import RoundRobin

_CLIENTS: Final = 50
#: Connection n uses queue n modulo this, at node n modulo 3: with 10 queues, each has clients at
#: all nodes; with 9, all clients of a queue are at one.
_SPREAD: Final = 10
_PINNED: Final = 9


def round_robin(bench: Bench) -> None:
    """Somebody who puts a round-robin proxy in front of three nodes, and whose clients both produce
    and consume, beside the same proxy with the clients of each queue at one node."""
    cluster = bench.cluster(3)
    proxy = RoundRobin(bench.folder, cluster)
    for depth in (1, 16):
        jobs = bench.jobs * (1 if depth == 1 else 2)
        spread, pinned = (
            Load(jobs, depth, _CLIENTS, queues, ("-r", "1")) for queues in (_SPREAD, _PINNED)
        )
        name = f"round-robin proxy, depth {depth}"
        rows = bench.pair(name, (proxy, spread), (proxy, pinned))
        bench.report.add(name, "jobs/s", [a.jobs_s for a, _ in rows])
        ratios = [a.jobs_s / b.jobs_s for a, b in rows]
        bench.report.add(name, "jobs/s ÷ clients of a queue at one node", ratios, at_least(0.6))
        cpu = [a.cpu_us / b.cpu_us for a, b in rows]
        bench.report.add(name, "CPU per job ÷ clients of a queue at one node", cpu)
    proxy.stop()
    cluster.stop()
