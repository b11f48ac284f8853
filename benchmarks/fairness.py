"""What others notice of one client that sends without end: the row 'fairness' of ``bench.py``.

One connection pipelines 400,000 requests and reads its replies; another one sends a PING every
millisecond, and each is timed. The same is done to redis-server, with a list.
"""

from __future__ import annotations

import multiprocessing
import socket
import statistics
import threading
import time
from typing import Any

REQUESTS = 400_000
_LINES = {"disque": b"ADDJOB q body 0 RETRY 0\r\n", "redis": b"RPUSH q body\r\n"}
_EMPTY = {"disque": b"DEBUG FLUSHALL\r\n", "redis": b"FLUSHALL\r\n"}


def fairness(bench: Any) -> None:
    """Print the longest, and the usual, answer to a PING beside a long pipeline."""
    daemons = [bench.disque(), bench.redis()]
    figures: dict[str, list[tuple[float, float]]] = {daemon.kind: [] for daemon in daemons}
    for number in range(bench.rounds):
        bench.progress(f"fairness, round {number + 1} of {bench.rounds}")
        for daemon in daemons:
            figures[daemon.kind].append(_round(daemon.port, _LINES[daemon.kind]))
            daemon.ask(_EMPTY[daemon.kind])
    print("\n| PING beside 400,000 pipelined requests | median of the longest | lowest | highest |")
    print("|---|---|---|---|")
    for daemon in daemons:
        longest = [row[1] for row in figures[daemon.kind]]
        usual = statistics.median(row[0] for row in figures[daemon.kind])
        print(
            f"| {daemon.kind} (median of all: {usual:.1f} ms) | {statistics.median(longest):.1f} ms"
            f" | {min(longest):.1f} ms | {max(longest):.1f} ms |"
        )
        daemon.stop()


def _round(port: int, line: bytes) -> tuple[float, float]:
    """The median and the longest time of a PING, in milliseconds."""
    times: list[float] = []
    greedy = multiprocessing.Process(target=_pipeline, args=(port, line))
    with socket.create_connection(("127.0.0.1", port)) as other:
        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        greedy.start()
        while greedy.is_alive():
            begun_s = time.perf_counter()
            other.sendall(b"PING\r\n")
            other.recv(64)
            times.append((time.perf_counter() - begun_s) * 1000)
            time.sleep(0.001)
    greedy.join()
    return statistics.median(times), max(times)


def _pipeline(port: int, line: bytes) -> None:
    """Send all requests as fast as they are taken, and read the replies."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sender = threading.Thread(target=sock.sendall, args=(line * REQUESTS,))
        sender.start()
        left = REQUESTS
        while left > 0:
            left -= sock.recv(1 << 20).count(b"\n")
        sender.join()
