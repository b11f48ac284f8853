"""One of four nodes is lost with its copies: how long until they are made again, and what clients
notice meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.daemon.bench import Bench, Load, Result
from benchmarks.daemon.report import at_least, at_most
from benchmarks.daemon.servers import Cluster, Server

#: Jobs per second that each node makes copies of, besides the default.
_RAISED = 20_000
_PATIENCE_S = 900


def healing(bench: Bench) -> None:
    """With the rate of the configuration beside clients, and with a higher one alone."""
    _beside_clients(bench)
    _alone(bench)


def _beside_clients(bench: Bench) -> None:
    name, cluster = _filled(bench, 2_000)
    load = Load(max(1, bench.jobs // 10), depth=1, queues=20, options=("-r", "2"))
    bench.run(cluster, load)
    before = [bench.run(cluster, load) for _ in range(bench.rounds)]
    meanwhile: list[Result] = []
    _lose(bench, name, cluster, 600, lambda: meanwhile.append(bench.run(cluster, load)))
    add = bench.report.add
    ratio = median_of(meanwhile, "jobs_s") / median_of(before, "jobs_s")
    add(name, "clients' jobs/s ÷ before", [ratio], at_least(0.8))
    tail = median_of(meanwhile, "add_p99_us") / median_of(before, "add_p99_us")
    add(name, "ADDJOB p99 ÷ before", [tail], at_most(2))
    cluster.stop()


def _alone(bench: Bench) -> None:
    name, cluster = _filled(bench, _RAISED)
    added_us = []
    for copies in ("1", "3"):
        load = Load(bench.jobs, depth=100, queues=1, options=("-m", "add", "-r", copies))
        added_us.append(bench.run(cluster, load).cpu_us)
    before_s = [node.cpu_s() for node in cluster.nodes[:-1]]
    made = _lose(bench, name, cluster, 90, lambda: time.sleep(0.5))
    spent_us = (cluster.cpu_s() - sum(before_s)) * 1e6 / made
    add = bench.report.add
    add(name, "CPU µs per copy", [spent_us])
    of_adding_us = (added_us[1] - added_us[0]) / 2
    add(name, "CPU per copy ÷ one made by ADDJOB", [spent_us / of_adding_us], at_most(1.5))
    cluster.stop()


def _filled(bench: Bench, rate: int) -> tuple[str, Cluster]:
    """The name of the row, and four nodes with jobs."""
    jobs = bench.backlog
    cluster = bench.cluster(4, "", "--replicate-again-rate", str(rate))
    bench.run(cluster, Load(jobs, depth=100, queues=1, options=("-m", "add", "-r", "3")))
    return f"{jobs:,} jobs with 3 copies, 1 of 4 nodes lost, rate {rate:,}", cluster


def _lose(
    bench: Bench, name: str, cluster: Cluster, goal_s: int, work: Callable[[], object]
) -> int:
    """Lose a node, and do ``work`` until no copy is lacking; how many were made."""
    cluster.lose()
    # Where copies were confirmed late while the nodes were filled, some were made again before.
    before = _made(cluster)
    began_s = time.monotonic()
    # The lost node had three jobs in four; the others may not know at once that it is lost.
    while _made(cluster) - before < bench.backlog // 2 or _lacking(cluster):
        work()
        if time.monotonic() - began_s > _PATIENCE_S:
            raise SystemExit(f"copies are still lacking after {_PATIENCE_S} s")
    took_s = time.monotonic() - began_s
    made = _made(cluster) - before
    add = bench.report.add
    add(name, "copies made", [float(made)])
    add(name, "s until none is lacking", [took_s], at_most(goal_s))
    return made


def _made(cluster: Cluster) -> int:
    """How many copies the nodes that run have made again."""
    return sum(figure(node, b"copies_made_again") for node in cluster.nodes)


def _lacking(cluster: Cluster) -> bool:
    """Whether a node knows of a job that lacks copies."""
    return any(
        figure(node, b"jobs_lacking_copies") or figure(node, b"copies_under_way")
        for node in cluster.nodes
    )


def figure(node: Server, name: bytes) -> int:
    """One of the figures of INFO copies."""
    answer = node.ask(b"INFO copies\r\n")
    return int(answer.split(name + b":")[1].split(b"\r\n")[0])


def median_of(results: list[Result], name: str) -> float:
    """The median of one figure."""
    values = sorted(float(getattr(one, name)) for one in results)
    return values[len(values) // 2]
