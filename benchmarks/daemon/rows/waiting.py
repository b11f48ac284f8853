"""One consumer is blocked, one producer adds a job: how long until it is received."""

from __future__ import annotations

from benchmarks.daemon.bench import Bench, Load


def blocked(bench: Bench) -> None:
    """GETJOB beside BRPOP."""
    load = Load(max(1, bench.jobs // 10), queues=1, options=("-m", "blocked"))
    ours, reference = bench.disque(), bench.reference()
    rows = bench.pair("blocked", (ours, load), (reference, load))
    beside = "the other version" if bench.other else "BRPOP"
    add = bench.report.add
    add("blocked consumer", "µs until received, p50", [a.add_p50_us for a, _ in rows])
    add("blocked consumer", "µs until received, p99", [a.add_p99_us for a, _ in rows])
    add("blocked consumer", f"p50 ÷ {beside}", [a.add_p50_us / b.add_p50_us for a, b in rows])
    add("blocked consumer", f"p99 ÷ {beside}", [a.add_p99_us / b.add_p99_us for a, b in rows])
    ours.stop()
    reference.stop()
