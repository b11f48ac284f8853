"""What the blocking client costs on top of redis-py: add, get and acknowledge one job at depth 1.

``python benchmarks/clients.py [cycles] [rounds]``, with the package installed. Starts a daemon of
its own and measures both in turn, in the same process. Prints Markdown; exit status 1 when the
client takes more than 1.3 times as long as three bare commands of redis-py.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import redis

from disque_tx import Disque

_LIMIT = 1.3
_START_S = 20.0
_PORT_MAX = 55_535
_BODY = b"x" * 64


def free_port() -> int:
    """A port that is free at the moment, and low enough for the bus to have one 10,000 above."""
    port = _PORT_MAX + 1
    while port > _PORT_MAX:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = int(sock.getsockname()[1])
    return port


def start(port: int, folder: str) -> subprocess.Popen[bytes]:
    """A daemon that serves."""
    words = ["--port", str(port), "--dir", folder, "--bind", "127.0.0.1"]
    daemon = subprocess.Popen(
        [sys.executable, "-m", "disque_tx.cli.server", *words], stdout=subprocess.DEVNULL
    )
    deadline_s = time.monotonic() + _START_S
    while time.monotonic() < deadline_s:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return daemon
    raise SystemExit(f"The daemon did not start in {_START_S} s.")


def bare(client: Any) -> Callable[[], object]:
    """Three commands, as somebody without a client would send them."""

    def cycle() -> None:
        client.execute_command("ADDJOB", "bare", _BODY, 5000)
        jobs = client.execute_command("GETJOB", "WITHCOUNTERS", "FROM", "bare")
        client.execute_command("ACKJOB", jobs[0][1])

    return cycle


def ours(client: Disque) -> Callable[[], object]:
    """The same with the client."""

    def cycle() -> None:
        client.add_job("ours", _BODY)
        jobs = client.get_jobs("ours")
        client.ack_jobs(jobs[0].id)

    return cycle


def seconds(cycle: Callable[[], object], cycles: int) -> float:
    """How long that many take."""
    start_s = time.perf_counter()
    for _ in range(cycles):
        cycle()
    return time.perf_counter() - start_s


def main() -> int:
    """The table."""
    cycles, rounds = (int(word) for word in (sys.argv[1:] + ["2000", "7"][len(sys.argv) - 1 :])[:2])
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        daemon = start(port, folder)
        try:
            plain = bare(redis.Redis(port=port, protocol=2))
            client = ours(Disque(f"127.0.0.1:{port}"))
            seconds(plain, cycles // 10), seconds(client, cycles // 10)
            pairs = [(seconds(plain, cycles), seconds(client, cycles)) for _ in range(rounds)]
        finally:
            daemon.terminate()
            daemon.wait()
    bare_us = min(pair[0] for pair in pairs) / cycles * 1e6
    ours_us = min(pair[1] for pair in pairs) / cycles * 1e6
    print("| redis-py | add + get + ack, bare | with the client | ratio |")
    print("|---|---|---|---|")
    version = redis.__version__
    print(f"| {version} | {bare_us:.0f} us | {ours_us:.0f} us | {ours_us / bare_us:.2f} |")
    return 0 if ours_us / bare_us <= _LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
