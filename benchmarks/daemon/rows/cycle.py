"""Add a job, fetch it, acknowledge it: one node beside the Redis list."""

from __future__ import annotations

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import Goal, at_least, at_most


def one_connection(bench: Bench) -> None:
    """What every script and cron job has."""
    load = Load(max(1, bench.jobs // 5), connections=1, queues=1)
    _cycle(bench, "one connection", load, at_least(0.90), at_most(32))


def depth_1(bench: Bench) -> None:
    """50 connections without pipelining."""
    _cycle(bench, "depth 1", Load(bench.jobs), at_least(0.98), None)


def depth_16(bench: Bench) -> None:
    """50 connections, 16 requests at a time."""
    _cycle(bench, "depth 16", Load(bench.jobs * 3, depth=16), at_least(0.85), None)


def _cycle(bench: Bench, name: str, load: Load, jobs_goal: Goal, cpu_goal: Goal | None) -> None:
    ours, reference = bench.disque(), bench.reference()
    rows = bench.pair(name, (ours, load), (reference, load))
    add = bench.report.add
    ratios = [a.jobs_s / b.jobs_s for a, b in rows]
    add(name, f"jobs/s ÷ {bench.beside}", ratios, jobs_goal)
    add(name, "jobs/s", [a.jobs_s for a, _ in rows])
    add(name, "CPU µs per job", [a.cpu_us for a, _ in rows], cpu_goal)
    add(name, f"CPU ÷ {bench.beside}", [a.cpu_us / b.cpu_us for a, b in rows])
    ours.stop()
    reference.stop()
