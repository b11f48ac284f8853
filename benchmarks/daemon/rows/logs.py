"""The price of the logs: the same node with and without them, at depth 16."""

from __future__ import annotations

import time

from benchmarks.daemon.bench import Bench, Load, Result
from benchmarks.daemon.report import Goal, at_least


def aof(bench: Bench) -> None:
    """The append only file."""
    for policy, goal in (("everysec", at_least(0.92)), ("always", None)):
        options = ("--appendonly", "yes", "--appendfsync", policy)
        _with_and_without(bench, f"AOF, appendfsync {policy}", options, goal)


def events(bench: Bench) -> None:
    """The event log; its lines are made by another process meanwhile."""
    _with_and_without(bench, "event log", ("--eventlog", "yes"), at_least(0.94))


def _with_and_without(bench: Bench, name: str, options: tuple[str, ...], goal: Goal | None) -> None:
    logging = bench.disque(*options)
    without = bench.reference(*options) if bench.other else bench.disque()
    load = Load(bench.jobs * 6, depth=16)

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
