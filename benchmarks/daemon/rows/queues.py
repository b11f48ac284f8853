"""Many queues with a job each, beside few."""

from __future__ import annotations

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_least

_QUEUES = 100_000


def many(bench: Bench) -> None:
    """All queues are used in turn, and each keeps a job all the time."""
    name = f"{_QUEUES:,} queues"
    pairs = []
    for queues in (_QUEUES, 50):
        server = bench.disque()
        bench.run(server, Load(queues, queues=queues, options=("-m", "add", "-w")))
        pairs.append((server, Load(bench.jobs * 2, queues=queues, options=("-w",))))
    rows = bench.pair(name, *pairs)
    ratios = [a.jobs_s / b.jobs_s for a, b in rows]
    bench.report.add(name, "jobs/s ÷ 50 queues", ratios, at_least(0.85))
    for server, _ in pairs:
        server.stop()
