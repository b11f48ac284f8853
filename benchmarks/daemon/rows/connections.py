"""Connections that do nothing: what they weigh, and what they cost the others."""

from __future__ import annotations

import resource
import socket

from benchmarks.daemon.bench import Bench, Load
from benchmarks.daemon.report import at_least, at_most

_IDLE = 10_000


def idle(bench: Bench) -> None:
    """10,000 idle connections."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < _IDLE + 100:
        print(f"(connections: left out, this user may open {most} files only)")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 2 * _IDLE), most))
    crowded, empty = bench.disque("--maxclients", "12000"), bench.disque()
    load = Load(bench.jobs)
    bench.run(crowded, load)
    before = crowded.resident()
    socks = [socket.create_connection(("127.0.0.1", crowded.port)) for _ in range(_IDLE)]
    for sock in socks:
        sock.sendall(b"PING\r\n")
    for sock in socks:
        sock.recv(64)
    each = (crowded.resident() - before) / _IDLE
    name = f"{_IDLE:,} idle connections"
    rows = bench.pair(name, (crowded, load), (empty, load))
    ratios = [a.jobs_s / b.jobs_s for a, b in rows]
    bench.report.add(name, "jobs/s ÷ without", ratios, at_least(0.95))
    bench.report.add(name, "bytes each", [each], at_most(4096))
    for sock in socks:
        sock.close()
    crowded.stop()
    empty.stop()
