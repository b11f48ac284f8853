"""What one client can do to others by HTTP: ``python -m benchmarks.hostile [QUEUES] [PATH]``.

Starts a node with many queues of long names, jobs of a megabyte, dead letters and schedules, and
sends every request of the API's description at its largest, one alone and ten at once, plain and
with TLS, beside a client that sends PING. Prints the longest PING in ms, by how much the memory of
the node grew, how long it took, the size and the status of the answer. With PATH, a regular
expression, only routes whose method and path contain it.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import socket
import ssl
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from tests.acceptance.daemon import Daemon, free_port
from tests.protocols.http.api.queues.test_queues import letter
from tests.protocols.http.generated import Hostile, hostile_requests
from tests.services.net.certificates import Authority

_AT_ONCE: Final = 10
_ENDLESS: Final = "GET /api/v1/events"
_JOB_BYTES: Final = 1_000_000
_CLOSE: Final = b"Host: localhost\r\nConnection: close\r\n"


def pinging(port: int, control: Connection) -> None:
    """Send PING all the time; answers each message with the longest wait since the last one."""
    sock = socket.create_connection(("127.0.0.1", port))
    longest = 0.0
    while True:
        begun = time.perf_counter()
        sock.sendall(b"PING\r\n")
        sock.recv(100)
        longest = max(longest, time.perf_counter() - begun)
        if control.poll(0.0005):
            control.recv()
            control.send(longest)
            longest = 0.0


def fill(node: Daemon, queues: int) -> None:
    """All that a request can be about."""
    client = node.client()
    names = [f"{number:06}" + "a" * 994 for number in range(queues)]
    for first in range(0, queues, 500):
        some = names[first : first + 500]
        for name in some:
            client.send("ADDJOB", name, "x", "0")
        for _ in some:
            client.read()
    for _ in range(200):
        client.call("ADDJOB", "large", "x" * _JOB_BYTES, "0")
        client.call("ADDJOB", "dead:large", letter("y" * 500_000).decode(), "0")
    for number in range(3_000):
        client.call("SCHEDULE", "SET", f"s{number}", "0 3 * * *", "QUEUE", "q", "x" * 1_000)


def ask(port: int, data: bytes, tls: ssl.SSLContext | None) -> tuple[str, int]:
    """The status of the answer, and its size."""
    plain = socket.create_connection(("127.0.0.1", port))
    sock = plain if tls is None else tls.wrap_socket(plain)
    with sock:
        sock.sendall(data.replace(b"Host: localhost\r\n", _CLOSE, 1))
        head, size = b"", 0
        while chunk := sock.recv(1 << 20):
            head, size = head or chunk[:100], size + len(chunk)
    return head.split(b" ")[1].decode() if head else "none", size


def memory_mib(pid: int) -> int:
    """The greatest memory that a process had since it was set back."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


class Bench:
    """A node under load. ``ports``: of HTTP, plain and with TLS."""

    def __init__(self, folder: Path) -> None:
        certificate, key = Authority(folder, "ca").issue("node")
        self.ports = (free_port(), free_port())
        self.node = Daemon(
            folder,
            f"listen http tcp:{self.ports[0]}:interface=127.0.0.1",
            f"listen http ssl:{self.ports[1]}:privateKey={key}:certKey={certificate}",
        ).start()
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.control, theirs = multiprocessing.Pipe()
        arguments = (self.node.port, theirs)
        self.pinger = multiprocessing.Process(target=pinging, args=arguments, daemon=True)
        self.pinger.start()

    def longest_ms(self) -> float:
        """The longest PING since the last call."""
        self.control.send(None)
        return 1000 * float(self.control.recv())

    def measure(self, what: str, data: bytes, count: int, secure: bool) -> None:
        """Send so many of a request at once, and print what that did."""
        pid = self.node.pid
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        before, results = memory_mib(pid), []
        context = self.tls if secure else None

        def run() -> None:
            results.append(ask(self.ports[secure], data, context))

        threads = [threading.Thread(target=run) for _ in range(count)]
        self.longest_ms()
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took_s, longest = time.perf_counter() - begun, self.longest_ms()
        statuses = " ".join(sorted({status for status, _size in results}))
        size = max(size for _status, size in results) >> 10
        grown = memory_mib(pid) - before
        print(
            f"{longest:7.1f} ms  {grown:5} MiB  {took_s:6.2f} s  {size:7} KiB  {statuses:8}"
            f" {count:3} {'TLS' if secure else '   '} {what}",
            flush=True,
        )

    def pipelined(self, path: str, secure: bool) -> None:
        """1,500 requests of which no answer is read."""
        pid = self.node.pid
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        before = memory_mib(pid)
        plain = socket.create_connection(("127.0.0.1", self.ports[secure]))
        sock = self.tls.wrap_socket(plain) if secure else plain
        self.longest_ms()
        with sock:
            sock.settimeout(2)
            request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            try:
                sock.sendall(1_500 * request)
            except TimeoutError:
                pass
            time.sleep(2)
        grown = memory_mib(pid) - before
        print(f"{self.longest_ms():7.1f} ms  {grown:5} MiB  1500 x {path}", flush=True)


def described(bench: Bench) -> dict[str, Any]:
    """The description of the API."""
    sock = socket.create_connection(("127.0.0.1", bench.ports[0]))
    sock.sendall(b"GET /api/v1/openapi.json HTTP/1.0\r\nHost: localhost\r\n\r\n")
    data = b"".join(iter(lambda: sock.recv(1 << 20), b""))
    document: dict[str, Any] = json.loads(data.partition(b"\r\n\r\n")[2])
    return document


def login() -> Hostile:
    """A form of 16 MiB."""
    form = b"password=" + b"x" * (16 << 20)
    kind = "application/x-www-form-urlencoded"
    head = "POST /login HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: {kind}\r\nContent-Length: {len(form)}\r\n\r\n"
    return Hostile("POST /login", head.encode() + form)


def main() -> None:
    """Measure, and print."""
    queues = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        try:
            fill(bench.node, queues)
            document = described(bench)
            print("  quiet", bench.longest_ms(), "ms")
            form = b"password=" + b"x" * (16 << 20)
            head = (
                "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-"
            )
            head += f"urlencoded\r\nContent-Length: {len(form)}\r\n\r\n"
            hostile = [Hostile("POST /login, 16 MiB", head.encode() + form)]
            hostile += hostile_requests(document, "large")
            for one in hostile:
                if re.search(wanted, one.what) and one.what != _ENDLESS:
                    line = one.data.split(b"\r\n")[0].decode()[:110]
                    for count, secure in ((1, False), (_AT_ONCE, False), (_AT_ONCE, True)):
                        bench.measure(line, one.data, count, secure)
            for path in ("/console/main.js", "/api/v1/openapi.json", "/metrics"):
                if re.search(wanted, path):
                    for secure in (False, True):
                        bench.pipelined(path, secure)
        finally:
            bench.pinger.kill()
            bench.node.discard()


if __name__ == "__main__":
    main()
