"""GETJOB MATCH: over many queues, and with one queue that has a backlog."""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import threading
import time
from multiprocessing.synchronize import Event

from benchmarks.daemon.bench import Bench, Load, progress
from benchmarks.daemon.report import at_least, at_most

_QUEUES = 10_000
_CONSUMERS = 20
_PROCESSES = 2
_QUIET_JOBS = 60
_PAUSE_S = 0.2


def many(bench: Bench) -> None:
    """50 clients get jobs of 10,000 queues by pattern, and of one queue by name."""
    name = f"MATCH over {_QUEUES:,} queues"
    ours, other = bench.disque(), bench.disque()
    matching = Load(bench.jobs, queues=_QUEUES, options=("-w", "-g", "*"))
    rows = bench.pair(name, (ours, matching), (other, Load(bench.jobs, queues=1)))
    ratios = [a.jobs_s / b.jobs_s for a, b in rows]
    bench.report.add(name, "jobs/s ÷ FROM one queue", ratios, at_least(0.7))
    ours.stop()
    other.stop()


def tenants(bench: Bench) -> None:
    """How long the jobs of a quiet queue wait beside a queue with a backlog, and without it."""
    name = f"a quiet queue beside {bench.backlog:,} jobs"
    ratios = []
    for number in range(bench.rounds):
        progress(f"{name}, round {number + 1} of {bench.rounds}")
        server = bench.disque()
        alone_s = _p99_s(server.port)
        bench.run(server, Load(bench.backlog, depth=16, queues=1, options=("-m", "add")))
        ratios.append(_p99_s(server.port) / alone_s)
        server.stop()
    bench.report.add(name, "wait, p99 ÷ alone", ratios, at_most(2))


def _p99_s(port: int) -> float:
    """How long jobs of the quiet queue wait, from before each is added until a consumer has it."""
    waits: multiprocessing.Queue[float] = multiprocessing.Queue()
    over = multiprocessing.Event()
    consumers = [
        multiprocessing.Process(target=_consume, args=(port, waits, over), daemon=True)
        for _ in range(_PROCESSES)
    ]
    for consumer in consumers:
        consumer.start()
    found = []
    with socket.create_connection(("127.0.0.1", port)) as producer:
        for _ in range(_QUIET_JOBS):
            time.sleep(_PAUSE_S)
            producer.sendall(b"ADDJOB quiet %.9f 0\r\n" % time.monotonic())
            producer.recv(100)
            found.append(waits.get(timeout=60))
    over.set()
    for consumer in consumers:
        consumer.join()
    return statistics.quantiles(found, n=100)[98]


def _consume(port: int, waits: multiprocessing.Queue[float], over: Event) -> None:
    """Be some of the consumers."""
    threads = [
        threading.Thread(target=_work, args=(port, waits, over))
        for _ in range(_CONSUMERS // _PROCESSES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _work(port: int, waits: multiprocessing.Queue[float], over: Event) -> None:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        replies = sock.makefile("rb")
        while not over.is_set():
            sock.sendall(b"GETJOB TIMEOUT 200 MATCH *\r\n")
            if replies.readline() == b"*-1\r\n":
                continue
            words = [replies.readline() for _ in range(7)][2::2]
            if words[0] == b"quiet\r\n":
                waits.put(time.monotonic() - float(words[2]))
            sock.sendall(b"ACKJOB %s\r\n" % words[1].strip())
            replies.readline()
