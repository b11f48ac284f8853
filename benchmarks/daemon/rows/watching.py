"""A node that is watched: a console is open, and metrics of all its queues are fetched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.request import urlopen

from benchmarks.daemon.bench import Bench, Load, Result
from benchmarks.daemon.report import at_least
from benchmarks.daemon.servers import free_port

_QUEUES: Final = 10_000
_STEP_S: Final = 5
#: A round must contain some of the steps.
_TIMES: Final = 12
#: What Prometheus fetches, and what the console's first page asks for.
_PATHS: Final = (
    "metrics",
    "metrics/detailed",
    "api/v1/info",
    "api/v1/history?span=1h",
    "api/v1/counts?sort=oldest&limit=6",
)


def watched(bench: Bench) -> None:
    """Beside the same node while nobody watches: two nodes differ by more than what is measured."""
    port = free_port()
    node = bench.disque("--listen", "http", f"tcp:{port}:interface=127.0.0.1")
    bench.run(node, Load(_QUEUES, queues=_QUEUES, options=("-w", "-m", "add")))
    for depth in (1, 16):
        name = f"{_QUEUES:,} queues, console and Prometheus, depth {depth}"
        load = Load(bench.jobs * _TIMES * (1 if depth == 1 else 4), depth=depth)

        def with_watchers(load: Load = load) -> Result:
            with _watchers(port):
                return bench.run(node, load)

        def alone(load: Load = load) -> Result:
            return bench.run(node, load)

        rows = bench.in_turn(name, with_watchers, alone)
        ratios = [a.jobs_s / b.jobs_s for a, b in rows]
        bench.report.add(name, "jobs/s ÷ unwatched", ratios, at_least(0.97))
        bench.report.add(name, "CPU ÷ unwatched", [a.cpu_us / b.cpu_us for a, b in rows])
    node.stop()


@contextmanager
def _watchers(port: int) -> Iterator[None]:
    """Ask for everything every few seconds meanwhile."""

    def ask(ended: threading.Event) -> None:
        while True:
            for path in _PATHS:
                with urlopen(f"http://127.0.0.1:{port}/{path}") as answer:
                    answer.read()
            if ended.wait(_STEP_S):
                return

    with meanwhile([ask]):
        yield


@contextmanager
def meanwhile(works: list[Callable[[threading.Event], None]]) -> Iterator[None]:
    """Do all these in threads until the end, of which an event tells them."""
    ended = threading.Event()
    threads = [threading.Thread(target=work, args=(ended,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
