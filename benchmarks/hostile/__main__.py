"""What one client can do to others: ``python -m benchmarks.hostile [options]``.

Starts a node with many queues of long names, jobs of a megabyte, dead letters, schedules and an
event log, and sends to it, beside a client that sends PING:

- ``http``: every request of the API's description at its largest, the metrics, and a form of
  16 MiB; one alone and ten at once, plain and ten with TLS.
- ``unread``: 1,500 requests on a connection that reads no answer, plain and with TLS.
- ``commands``: every command with huge numbers, long names and evil patterns, by a client that may
  only read; one alone, and ten with TLS.
- ``streams``: ADDJOBs beside streams of events whose filters match nothing, plain and with TLS.

Prints the longest PING in ms, by how much the memory of the node grew, how long it took, the size
of the answer, and how it begins.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.hostile import rows
from benchmarks.hostile.node import Bench
from tests.commands.generated import hostile_requests as hostile_commands
from tests.protocols.http.generated import ENDLESS, Hostile, hostile_requests

_AT_ONCE: Final = 10
_PARTS: Final = ("http", "unread", "commands", "streams")
#: Pages that are not in the description of the API.
_PAGES: Final = ("/metrics", "/metrics/detailed", "/console/main.js", "/api/v1/openapi.json")
#: Commands that wait are given up after so long.
_WAIT_S: Final = 5.0


def arguments() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile")
    parser.add_argument("--queues", type=int, default=20_000, help="queues with names of 1 KB")
    parser.add_argument("--log-mib", type=int, default=35, help="size of the event log")
    parser.add_argument("--only", default="", help="rows whose request matches this expression")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS)
    parser.add_argument("--streams", type=int, default=20, help="streams of events, up to 20")
    parser.add_argument("--seconds", type=float, default=5.0, help="of ADDJOBs beside them")
    return parser.parse_args()


def described(bench: Bench) -> dict[str, Any]:
    """The description of the API."""
    with bench.connect(bench.http[0], False) as sock:
        sock.sendall(b"GET /api/v1/openapi.json HTTP/1.0\r\nHost: localhost\r\n\r\n")
        data = b"".join(iter(lambda: sock.recv(1 << 20), b""))
    document: dict[str, Any] = json.loads(data.partition(b"\r\n\r\n")[2])
    return document


def by_http(bench: Bench) -> Iterator[Hostile]:
    """All requests by HTTP."""
    form = b"password=" + b"x" * (16 << 20)
    head = "POST /login HTTP/1.1\r\nHost: localhost\r\n"
    head += "Content-Type: application/x-www-form-urlencoded\r\n"
    head += f"Content-Length: {len(form)}\r\n\r\n"
    yield Hostile("POST /login", head.encode() + form)
    for path in _PAGES:
        yield Hostile(f"GET {path}", f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    yield from hostile_requests(described(bench), "large")


def measure_http(bench: Bench, only: str) -> None:
    """Each of them: one alone, ten at once, ten with TLS."""
    for one in by_http(bench):
        if one.what in ENDLESS or not re.search(only, one.what):
            continue
        line = one.data.split(b"\r\n")[0].decode()[:110]
        for count, secure in ((1, False), (_AT_ONCE, False), (_AT_ONCE, True)):
            sockets = [bench.connect(bench.http[secure], secure) for _ in range(count)]
            rows.at_once(bench, line, sockets, secure, partial(rows.http, one.data))


def measure_commands(bench: Bench, only: str) -> None:
    """Each command, by clients that may only read."""
    bench.protect()
    for argv in hostile_commands(b"large"):
        line = b" ".join(word[:20] for word in argv[:8]).decode("latin-1")[:110]
        if re.search(only, line):
            for count, secure in ((1, False), (_AT_ONCE, True)):
                sockets = [rows.reader(bench, secure) for _ in range(count)]
                rows.at_once(bench, line, sockets, secure, partial(rows.command, argv, _WAIT_S))


def main() -> None:
    """Measure, and print."""
    wanted = arguments()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        try:
            if set(wanted.parts) - {"streams"}:
                bench.fill(wanted.queues)
                print(f"  event log: {bench.fill_log(wanted.log_mib):.1f} MiB")
            bench.longest_ms()
            print(f"  quiet: {bench.longest_ms():.1f} ms", flush=True)
            if "http" in wanted.parts:
                measure_http(bench, wanted.only)
            for path in _PAGES if "unread" in wanted.parts else ():
                for secure in (False, True):
                    rows.unread(bench, path, secure)
            for secure in (False, True) if "streams" in wanted.parts else ():
                rows.streams(bench, wanted.streams, secure, wanted.seconds)
            if "commands" in wanted.parts:
                measure_commands(bench, wanted.only)
        finally:
            bench.close()


if __name__ == "__main__":
    main()
