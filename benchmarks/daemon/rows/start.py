"""From exec to the first PONG."""

from __future__ import annotations

import time

from benchmarks.daemon.bench import Bench
from benchmarks.daemon.report import at_most


def start(bench: Bench) -> None:
    """An empty node."""
    times = []
    for _ in range(bench.rounds + 2):
        begun_s = time.perf_counter()
        server = bench.disque()
        times.append(time.perf_counter() - begun_s)
        server.stop()
    bench.report.add("start", "s from exec to the first PONG", times, at_most(0.4))
