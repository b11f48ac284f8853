"""What the clients cost: to add, get and acknowledge one job.

``python benchmarks/clients.py [cycles] [rounds]``, with the package installed. Starts a daemon of
its own and measures in turn, in the same process: the blocking client and three bare commands of
redis-py, one cycle at a time; the Twisted client and three bare commands of txredisapi, 50 cycles
under way. Prints Markdown; exit status 1 when the blocking client takes more than 1.3 times as long
as redis-py, or the Twisted client makes fewer than 15,000 cycles a second.
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
import txredisapi
from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.protocol import Factory
from twisted.internet.task import react

from disque_tx import Disque
from disque_tx.client import DisqueClient

_LIMIT = 1.3
_CYCLES_PER_S_MIN = 15_000
_UNDER_WAY = 50
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
        [sys.executable, "-m", "disque_tx.cli.programs.server", *words], stdout=subprocess.DEVNULL
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


def blocking(port: int, cycles: int, rounds: int) -> bool:
    """The table of the blocking client; whether it is good enough."""
    plain = bare(redis.Redis(port=port, protocol=2))
    client = ours(Disque(f"127.0.0.1:{port}"))
    seconds(plain, cycles // 10), seconds(client, cycles // 10)
    pairs = [(seconds(plain, cycles), seconds(client, cycles)) for _ in range(rounds)]
    bare_us, ours_us = (min(times) / cycles * 1e6 for times in zip(*pairs, strict=True))
    print("| redis-py | add + get + ack, bare | with the client | ratio |")
    print("|---|---|---|---|")
    ratio = ours_us / bare_us
    print(f"| {redis.__version__} | {bare_us:.0f} us | {ours_us:.0f} us | {ratio:.2f} |")
    return bool(ratio <= _LIMIT)


async def bare_tx(protocol: Any) -> None:
    """Three commands, as somebody without a client would send them."""
    await protocol.execute_command("ADDJOB", "bare", _BODY, 5000)
    jobs = await protocol.execute_command("GETJOB", "WITHCOUNTERS", "FROM", "bare")
    await protocol.execute_command("ACKJOB", jobs[0][1])


async def ours_tx(client: DisqueClient) -> None:
    """The same with the client."""
    await client.add_job("ours", _BODY)
    jobs = await client.get_jobs("ours")
    await client.ack_jobs(jobs[0].id)


async def cycles_per_s(cycle: Callable[[], Any], cycles: int) -> float:
    """How many are made in a second with some under way."""

    async def work() -> None:
        for _ in range(cycles // _UNDER_WAY):
            await cycle()

    start_s = time.perf_counter()
    await gatherResults([Deferred.fromCoroutine(work()) for _ in range(_UNDER_WAY)])
    return cycles / (time.perf_counter() - start_s)


async def twisted(port: int, cycles: int, rounds: int) -> bool:
    """The table of the Twisted client; whether it is good enough."""
    factory = Factory.forProtocol(lambda: txredisapi.RedisProtocol(None, convertNumbers=False))
    factory.noisy = False
    protocol: Any = await HostnameEndpoint(reactor, "127.0.0.1", port).connect(factory)
    client = DisqueClient(f"127.0.0.1:{port}")
    pairs = []
    for _ in range(rounds + 1):
        plain = await cycles_per_s(lambda: bare_tx(protocol), cycles)
        pairs.append((plain, await cycles_per_s(lambda: ours_tx(client), cycles)))
    await client.close()
    protocol.transport.loseConnection()
    plain, own = (max(rates) for rates in zip(*pairs[1:], strict=True))
    print(f"\n| txredisapi | cycles/s with {_UNDER_WAY} under way, bare | with the client |")
    print("|---|---|---|")
    print(f"| {txredisapi.__version__} | {plain:,.0f} | {own:,.0f} |")
    return bool(own >= _CYCLES_PER_S_MIN)


async def measured(cycles: int, rounds: int) -> None:
    """Both tables, and the exit status."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        daemon = start(port, folder)
        try:
            good = blocking(port, cycles, rounds)
            good = await twisted(port, 5 * cycles, rounds) and good
        finally:
            daemon.terminate()
            daemon.wait()
    if not good:
        raise SystemExit(1)


def main() -> None:
    """Measure."""
    cycles, rounds = (int(word) for word in (sys.argv[1:] + ["2000", "7"][len(sys.argv) - 1 :])[:2])
    react(lambda _: Deferred.fromCoroutine(measured(cycles, rounds)))


if __name__ == "__main__":
    main()
