"""Three nodes on which ten people have the console open, and the same ones when nobody looks: two
clusters differ by more than what is measured, although they are alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Final

from benchmarks.daemon.bench import Bench, Load, Result
from benchmarks.daemon.report import at_least
from benchmarks.daemon.rows.watching import meanwhile
from benchmarks.daemon.servers import Cluster, free_port

_QUEUES: Final = 10_000
_NODES: Final = 3
#: A round must contain some refreshes of each page.
_TIMES: Final = 12
#: What every page asks for each time, and, behind it, what the pages that people look at most do;
#: the processor time of ten real browsers would be that of the machine.
_FRAME: Final = ("nodes", "figures?scope=cluster")
_OLDEST: Final = "counts?sort=oldest&limit=18&cluster=1"
_OVERVIEW: Final = (
    "figures?scope=cluster",
    "history?span=1h&scope=cluster",
    _OLDEST,
    "findings?scope=cluster",
)
#: Asked for every second time only.
_SELDOM: Final = frozenset((_OLDEST,))
_LIST: Final = ("counts?sort=queued&limit=50&cluster=1",)
_QUEUE: Final = (
    "counts/q1?cluster=1",
    "queues/q1/peek?count=20&from=oldest&scope=cluster",
    "queues/q1/history?span=1h&scope=cluster",
)
#: Of ten people.
_LOOKS: Final = 5 * (_OVERVIEW,) + 3 * (_LIST,) + 2 * (_QUEUE,)
#: As the console does: how often a page is asked for, in answers' times and at most and at least.
_STEP_S: Final = 5.0
_RESTS: Final = 40
_REST_MAX_S: Final = 30.0
#: Seconds without an event, of which there is one each second, after which something is wrong.
_SILENT_S: Final = 30.0
#: The pages are open already when a round begins.
_OPENED_S: Final = 8.0


def consoles(bench: Bench) -> None:
    """Jobs of clients at one of the nodes."""
    ports = [free_port() for _ in range(_NODES)]
    cluster = Cluster(
        [bench.disque("--listen", "http", f"tcp:{port}:interface=127.0.0.1") for port in ports]
    )
    for node in cluster.nodes:
        bench.run(node, Load(_QUEUES, queues=_QUEUES, options=("-w", "-m", "add")))
    for depth in (1, 16):
        name = f"Ten consoles, 3 nodes of {_QUEUES:,} queues, depth {depth}"
        load = Load(bench.jobs * _TIMES * (1 if depth == 1 else 2), depth=depth)

        def with_consoles(load: Load = load) -> Result:
            people = [_browser(ports[at % _NODES], paths) for at, paths in enumerate(_LOOKS)]
            with meanwhile(people):
                time.sleep(_OPENED_S)
                return bench.run(cluster, load)

        def without(load: Load = load) -> Result:
            return bench.run(cluster, load)

        rows = bench.in_turn(name, with_consoles, without)
        ratios = [a.jobs_s / b.jobs_s for a, b in rows]
        bench.report.add(name, "jobs/s ÷ without", ratios, at_least(0.97))
        cpu = [a.cpu_us / b.cpu_us for a, b in rows]
        bench.report.add(name, "CPU ÷ without, all nodes", cpu)
    cluster.stop()


def _browser(port: int, paths: tuple[str, ...]) -> Callable[[threading.Event], None]:
    """What a browser asks that shows a page."""

    def look(ended: threading.Event) -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)

        def get(path: str) -> None:
            connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise SystemExit(f"{path}: status {answer.status}")

        events = HTTPConnection("127.0.0.1", port, timeout=_SILENT_S)
        events.request("GET", "/api/v1/nodes/events")
        stream = events.getresponse()
        times, due_s = 0, 0.0
        while not ended.is_set():
            if not stream.read1():
                raise SystemExit("The stream of nodes has ended.")
            begun_s = time.monotonic()
            if begun_s < due_s:
                continue
            for path in (*_FRAME, *paths):
                if path not in _SELDOM or times % 2 == 0:
                    get(f"/api/v1/{path}")
            times += 1
            took_s = time.monotonic() - begun_s
            due_s = begun_s + took_s + min(_REST_MAX_S, max(_STEP_S, _RESTS * took_s))
        connection.close()
        events.close()

    return look
