"""What others notice of one client that sends without end.

One connection pipelines 400,000 requests and reads its replies; another one sends a PING every
millisecond, and each is timed. The same is done to redis-server, with a list.
"""

from __future__ import annotations

import multiprocessing
import socket
import threading
import time

from benchmarks.daemon.bench import Bench, progress
from benchmarks.daemon.report import at_most

REQUESTS = 400_000
_LINES = {"disque": b"ADDJOB q body 0 RETRY 0\r\n", "redis": b"RPUSH q body\r\n"}
_EMPTY = {"disque": b"DEBUG FLUSHALL\r\n", "redis": b"FLUSHALL\r\n"}


def fairness(bench: Bench) -> None:
    """The longest answer to a PING beside a long pipeline."""
    servers = bench.disque(), bench.reference()
    longest: list[list[float]] = [[], []]
    for number in range(bench.rounds):
        progress(f"fairness, round {number + 1} of {bench.rounds}")
        for server, times in zip(servers, longest, strict=True):
            times.append(_round(server.port, _LINES[server.kind]))
            server.ask(_EMPTY[server.kind])
    name = f"PING beside {REQUESTS:,} pipelined requests"
    bench.report.add(name, "longest, ms", longest[0], at_most(15))
    beside = "the other version" if bench.other else "Redis"
    bench.report.add(name, f"longest, ms, {beside}", longest[1])
    for server in servers:
        server.stop()


def _round(port: int, line: bytes) -> float:
    """The longest time of a PING, in milliseconds."""
    longest_s = 0.0
    greedy = multiprocessing.Process(target=_pipeline, args=(port, line))
    with socket.create_connection(("127.0.0.1", port)) as other:
        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        greedy.start()
        while greedy.is_alive():
            begun_s = time.perf_counter()
            other.sendall(b"PING\r\n")
            other.recv(64)
            longest_s = max(longest_s, time.perf_counter() - begun_s)
            time.sleep(0.001)
    greedy.join()
    return longest_s * 1000


def _pipeline(port: int, line: bytes) -> None:
    """Send all requests as fast as they are taken, and read the replies."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sender = threading.Thread(target=sock.sendall, args=(line * REQUESTS,))
        sender.start()
        left = REQUESTS
        while left > 0:
            left -= sock.recv(1 << 20).count(b"\n")
        sender.join()
