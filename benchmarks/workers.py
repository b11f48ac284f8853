"""How many no-op jobs a second one worker process does, beside RQ and Celery.

``python benchmarks/workers.py PYTHON [rounds]``, with the package installed. PYTHON: of an
environment that has ``rq`` and ``celery[redis]``. Needs redis-server. In each round each has its
jobs put in first and then its worker started; measured is from the first job that is seen done to
the last, so that starting costs nothing. RQ runs as it does by itself (a fork per job), and without
forks; Celery with one prefork process and no results; ours with one thread. Prints Markdown; exit
status 1 below 5 times RQ or 2 times Celery.
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import attrs
import redis

from disque_tx import Disque

_RQ_TIMES: Final = 5
_CELERY_TIMES: Final = 2
_START_S: Final = 60.0
_STOP_S: Final = 30.0
_POLL_S: Final = 0.005
_PORT_MAX: Final = 55_535
_MODULE: Final = """
def noop(*_):
    pass
"""
_CELERY_MODULE: Final = """
import os
from celery import Celery
app = Celery("celery_jobs", broker=os.environ["BROKER"])
app.conf.task_ignore_result = True
@app.task
def noop():
    pass
"""
_RQ_ADD: Final = """
import sys, redis, rq, noop_jobs
queue = rq.Queue(connection=redis.Redis(port=int(sys.argv[1])))
many = [rq.Queue.prepare_data(noop_jobs.noop, result_ttl=0) for _ in range(int(sys.argv[2]))]
queue.enqueue_many(many)
"""
_CELERY_ADD: Final = """
import sys, celery_jobs
for _ in range(int(sys.argv[1])):
    celery_jobs.noop.delay()
"""
_OURS: Final = "from disque_tx.cli.verbs.workers.work import command; command()"


def free_port() -> int:
    """A port that is free at the moment, and low enough for the bus to have one 10,000 above."""
    port = _PORT_MAX + 1
    while port > _PORT_MAX:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = int(sock.getsockname()[1])
    return port


@contextmanager
def running(words: list[str], folder: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process, for so long."""
    with open(Path(folder) / "output", "ab") as output:
        environ = {**os.environ, "PYTHONPATH": folder, **variables}
        environ["PYTHONPATH"] += os.pathsep + os.environ.get("PYTHONPATH", "")
        process = subprocess.Popen(
            words,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environ,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for it."""
    deadline_s = time.monotonic() + _START_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise SystemExit(f"In {_START_S:.0f} s it did not happen that {what}.")
        time.sleep(_POLL_S)


def listens(port: int) -> bool:
    """Whether somebody does."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@attrs.frozen
class Contestant:
    """``add``: puts that many jobs in. ``left``: how many are not done. ``worker``: its command."""

    name: str
    jobs: int
    add: Callable[[int], object]
    left: Callable[[], int]
    worker: list[str]
    variables: dict[str, str]

    def speed(self, folder: str) -> float:
        """Jobs per second."""
        self.add(self.jobs)
        until(lambda: self.left() == self.jobs, f"{self.name} has its jobs")
        with running(self.worker, folder, **self.variables):
            until(lambda: self.left() < self.jobs, f"{self.name} begins")
            start_s, jobs = time.perf_counter(), self.left()
            until(lambda: self.left() == 0, f"{self.name} is done")
            return jobs / (time.perf_counter() - start_s)


def contestants(peers: str, folder: str, redis_port: int, port: int) -> list[Contestant]:
    """All of them."""
    broker = redis.Redis(port=redis_port)
    client = Disque(f"127.0.0.1:{port}")
    variables = {"BROKER": f"redis://127.0.0.1:{redis_port}/0"}
    environ = {**os.environ, **variables, "PYTHONPATH": folder}

    def script(text: str, *words: object) -> None:
        command = [peers, "-c", text, *map(str, words)]
        subprocess.run(command, check=True, cwd=folder, env=environ)

    def add_ours(count: int) -> None:
        for _ in range(count):
            client.add_job("noop", b"", retry_s=600)

    def add_rq(count: int) -> None:
        script(_RQ_ADD, redis_port, count)

    def celery_left() -> int:
        return int(broker.llen("celery")) + int(broker.hlen("unacked"))

    def rq_left() -> int:
        # A job's own key goes when it is done and its result is not kept.
        return sum(1 for _ in broker.scan_iter("rq:job:*", count=10_000))

    celery = [peers, "-m", "celery", "-A", "celery_jobs", "worker", "--pool", "prefork"]
    celery += ["-c", "1", "-l", "ERROR", "--without-gossip", "--without-mingle"]
    rq = [peers, "-m", "rq.cli", "worker", "--url", variables["BROKER"], "--quiet"]
    simple_rq = [*rq, "--worker-class", "rq.SimpleWorker"]
    ours = [sys.executable, "-c", _OURS, "noop_jobs:noop", "--queue", "noop"]
    ours += ["--concurrency", "1", "--addresses", f"127.0.0.1:{port}"]
    return [
        Contestant("RQ", 500, add_rq, rq_left, rq, variables),
        Contestant("RQ without forks", 2000, add_rq, rq_left, simple_rq, variables),
        Contestant(
            "Celery", 5000, lambda n: script(_CELERY_ADD, n), celery_left, celery, variables
        ),
        Contestant(
            "disque-tx",
            150_000,
            add_ours,
            lambda: int(client.info("jobs")["registered_jobs"]),
            ours,
            {},
        ),
    ]


def main() -> int:
    """The table."""
    peers = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        (Path(folder) / "noop_jobs.py").write_text(_MODULE)
        (Path(folder) / "celery_jobs.py").write_text(_CELERY_MODULE)
        redis_port, port = free_port(), free_port()
        server = ["redis-server", "--port", str(redis_port), "--save", "", "--dir", folder]
        node = [
            sys.executable,
            "-m",
            "disque_tx.cli.programs.server",
            "--port",
            str(port),
            "--dir",
            folder,
        ]
        stack.enter_context(running(server, folder))
        stack.enter_context(running(node, folder))
        until(lambda: listens(redis_port) and listens(port), "the servers listen")
        several = contestants(peers, folder, redis_port, port)
        speeds: dict[str, list[float]] = {one.name: [] for one in several}
        for _ in range(rounds):
            for one in several:
                speeds[one.name].append(one.speed(folder))
    return told({name: statistics.median(each) for name, each in speeds.items()})


def told(speeds: dict[str, float]) -> int:
    """Print it; the exit status."""
    ours, celery = speeds["disque-tx"], speeds["Celery"]
    rq = max(speeds["RQ"], speeds["RQ without forks"])
    print("| worker | jobs/s | disque-tx is faster by |")
    print("|---|---|---|")
    for name, speed in speeds.items():
        print(f"| {name} | {speed:.0f} | {ours / speed:.1f} |")
    return 0 if ours >= max(_RQ_TIMES * rq, _CELERY_TIMES * celery) else 1


if __name__ == "__main__":
    sys.exit(main())
