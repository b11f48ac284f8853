"""One row each: requests at once, requests whose answers are not read, streams of events."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from multiprocessing import Process, Queue
from typing import Final

from benchmarks.hostile.node import READER, Bench

_CLOSE: Final = b"Host: localhost\r\nConnection: close\r\n"
#: A stream whose filters match nothing.
_STREAM: Final = (
    b"GET /api/v1/events?queue=nothing-*&kinds=dead HTTP/1.1\r\nHost: localhost\r\n\r\n"
)
_BATCH: Final = 100


#: Gets the answer on a connection: how it begins, and its size.
Ask = Callable[[socket.socket], tuple[str, int]]


def at_once(bench: Bench, what: str, sockets: list[socket.socket], secure: bool, ask: Ask) -> None:
    """Ask on all connections at once, and print what that did. They are made before."""
    before, results = bench.forget_memory(), []

    def run(sock: socket.socket) -> None:
        with sock:
            results.append(ask(sock))

    threads = [threading.Thread(target=run, args=(sock,)) for sock in sockets]
    bench.longest_ms()
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s, longest = time.perf_counter() - begun, bench.longest_ms()
    words = " ".join(sorted({word for word, _size in results}))
    size = max((size for _word, size in results), default=0) >> 10
    grown = bench.memory_mib() - before
    print(
        f"{longest:7.1f} ms  {grown:5} MiB  {took_s:6.2f} s  {size:7} KiB  {words:8}"
        f" {len(sockets):3} {'TLS' if secure else '   '} {what}",
        flush=True,
    )


def http(data: bytes, sock: socket.socket) -> tuple[str, int]:
    """The status of the answer to a request by HTTP, and its size."""
    sock.sendall(data.replace(b"Host: localhost\r\n", _CLOSE, 1))
    head, size = b"", 0
    while chunk := sock.recv(1 << 20):
        head, size = head or chunk[:100], size + len(chunk)
    return head.split(b" ")[1].decode() if head else "none", size


def reader(bench: Bench, secure: bool) -> socket.socket:
    """A client that may only read."""
    sock = bench.connect(bench.resp[secure], secure)
    sock.sendall(b"AUTH %b\r\n" % READER.encode())
    sock.recv(100)
    return sock


def command(argv: list[bytes], wait_s: float, sock: socket.socket) -> tuple[str, int]:
    """How the reply to a command begins, and its size. One that waits is given up after a time."""
    data = b"*%d\r\n" % len(argv) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in argv)
    sock.settimeout(wait_s)
    head, tail, size = b"", b"", 0
    try:
        sock.sendall(data + b"PING\r\n")
        while not tail.endswith(b"+PONG\r\n") and (chunk := sock.recv(1 << 20)):
            head, size = head or chunk[:20], size + len(chunk)
            tail = (tail + chunk[-7:])[-7:]
    except (TimeoutError, ConnectionError):
        pass
    return head.split(b"\r")[0][:8].decode("latin-1") or "none", size


def unread(bench: Bench, path: str, secure: bool) -> None:
    """1,500 requests of which no answer is read."""
    before = bench.forget_memory()
    bench.longest_ms()
    with bench.connect(bench.http[secure], secure) as sock:
        sock.settimeout(2)
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        try:
            sock.sendall(1_500 * request)
        except TimeoutError:
            pass
        time.sleep(2)
    grown, tls = bench.memory_mib() - before, "TLS" if secure else "   "
    print(f"{bench.longest_ms():7.1f} ms  {grown:5} MiB  1500 {tls} unread {path}", flush=True)


def adding(port: int, seconds: float, found: Queue[float]) -> None:
    """Add jobs for so long, and acknowledge them; puts how many there were in a second."""
    sock = socket.create_connection(("127.0.0.1", port))
    reader = sock.makefile("rb")
    request = b"*4\r\n$6\r\nADDJOB\r\n$5\r\nbusy1\r\n$1\r\nx\r\n$1\r\n0\r\n" * _BATCH
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        sock.sendall(request)
        ids = [reader.readline()[1:-2] for _ in range(_BATCH)]
        count += _BATCH
        sock.sendall(b"FASTACK " + b" ".join(ids) + b"\r\n")
        reader.readline()
    found.put(count / (time.perf_counter() - begun))


def streams(bench: Bench, most: int, secure: bool, seconds: float) -> None:
    """ADDJOBs in a second without a stream of events, and with some whose filters match nothing."""
    opened: list[socket.socket] = []
    without = 0.0
    for count in (0, 1, 5, most):
        while len(opened) < count:
            sock = bench.connect(bench.http[secure], secure)
            sock.sendall(_STREAM)
            head = sock.recv(1_000)
            assert head.startswith(b"HTTP/1.1 200"), head
            opened.append(sock)
        bench.longest_ms()
        found: Queue[float] = Queue()
        producer = Process(target=adding, args=(bench.node.port, seconds, found))
        producer.start()
        rate = found.get()
        producer.join()
        without = without or rate
        print(
            f"{bench.longest_ms():7.1f} ms  {rate:9.0f} ADDJOBs/s  {rate / without:6.3f}  with"
            f" {count:2} {'TLS' if secure else '   '} streams that match nothing",
            flush=True,
        )
    for sock in opened:
        sock.close()
