"""The price of the logs: the same node with and without them."""

from __future__ import annotations

import time

from benchmarks.daemon.bench import Bench, Load, Result
from benchmarks.daemon.report import Goal, at_least


def aof(bench: Bench) -> None:
    """The append only file."""
    for policy, depth, goal in (
        ("everysec", 1, at_least(0.92)), ("everysec", 16, at_least(0.92)), ("always", 16, None),
    ):  # fmt: skip
        options = ("--appendonly", "yes", "--appendfsync", policy)
        name = f"AOF, appendfsync {policy}, depth {depth}"
        _with_and_without(bench, name, options, depth, goal)


def events(bench: Bench) -> None:
    """The event log; its lines are made by another process meanwhile."""
    for depth in (1, 16):
        name = f"event log, depth {depth}"
        _with_and_without(bench, name, ("--eventlog", "yes"), depth, at_least(0.94))


def _with_and_without(
    bench: Bench, name: str, options: tuple[str, ...], depth: int, goal: Goal | None
) -> None:
    logging = bench.disque(*options)
    without = bench.reference(*options) if bench.other else bench.disque()
    load = Load(bench.jobs * (6 if depth > 1 else 1), depth=depth)

    def logged() -> Result:
        result = bench.run(logging, load)
        # What is converted after the round must not slow down the next one.
        while b"segments_waiting:0" not in logging.ask(b"INFO eventlog\r\n"):
            if "--eventlog" not in options:
                break
            time.sleep(0.1)
        return result

    rows = bench.in_turn(name, logged, lambda: bench.run(without, load))
    beside = bench.beside if bench.other else "without"
    add = bench.report.add
    ratios = [a.jobs_s / b.jobs_s for a, b in rows]
    add(name, f"jobs/s ÷ {beside}", ratios, goal)
    add(name, f"CPU ÷ {beside}", [a.cpu_us / b.cpu_us for a, b in rows])
    if "--eventlog" in options:
        add(name, "events dropped", [float(_dropped(logging.ask(b"INFO eventlog\r\n")))])
    logging.stop()
    without.stop()


def _dropped(info: bytes) -> int:
    for line in info.split():
        if line.startswith(b"eventlog_dropped:"):
            return int(line.split(b":")[1])
    raise SystemExit("INFO eventlog has no eventlog_dropped")
