"""beanstalkd's protocol: put a job, reserve it, delete it; one node beside beanstalkd."""

from __future__ import annotations

import shutil

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_least
from benchmarks.daemon.servers import Server, beanstalkd, free_port


class _Listener:
    """A node, loaded by its listener for this protocol."""

    kind = "beanstalk"

    def __init__(self, bench: Bench) -> None:
        self.port = free_port()
        endpoint = f"tcp:{self.port}:interface=127.0.0.1"
        self.node: Server = bench.disque("--listen", "beanstalk", endpoint)

    def cpu_s(self) -> float:
        """Processor time used so far."""
        return self.node.cpu_s()


def cycle(bench: Bench) -> None:
    """50 connections, with one request at a time and with 16."""
    if bench.other or shutil.which("beanstalkd") is None:
        print("(beanstalk: left out, beanstalkd is not in the path, or no part of this comparison)")
        return
    ours, theirs = _Listener(bench), beanstalkd()
    for depth in (1, 16):
        load = Load(bench.jobs * (1 if depth == 1 else 3), depth=depth)
        rows = bench.pair(f"beanstalk, depth {depth}", (ours, load), (theirs, load))
        name, add = f"beanstalk, depth {depth}", bench.report.add
        add(name, "jobs/s", [a.jobs_s for a, _ in rows])
        add(name, "jobs/s ÷ beanstalkd", [a.jobs_s / b.jobs_s for a, b in rows], at_least(0.8))
        add(name, "µs of processor per job", [a.cpu_us for a, _ in rows])
    ours.node.stop()
    theirs.stop()
