"""QLIST of many queues: the time of the node that it takes."""

from __future__ import annotations

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_most

_QUEUES = 10_000
_LISTS = 20


def many(bench: Bench) -> None:
    """The first page of all queues, by length."""
    name = f"QLIST of {_QUEUES:,} queues"
    server = bench.disque()
    bench.run(server, Load(_QUEUES, queues=_QUEUES, options=("-w", "-m", "add")))
    times_ms = []
    for _ in range(bench.rounds):
        before_s = server.cpu_s()
        for _ in range(_LISTS):
            server.ask(b"QLIST\r\n")
        times_ms.append((server.cpu_s() - before_s) * 1000 / _LISTS)
    bench.report.add(name, "CPU ms", times_ms, at_most(50))
    server.stop()
