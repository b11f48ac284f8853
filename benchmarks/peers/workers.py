"""Workers: how many tasks a second that do next to nothing, one at a time, and at which cost.

Each worker has its tasks put in first and is then started; measured is from the first task that is
seen done to the last. The processor time is that of the worker and of its broker, which keep
nothing on disk, except RabbitMQ, whose tasks are persistent as Celery makes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from benchmarks.daemon.bench import progress
from benchmarks.daemon.servers import Server, disque, redis
from benchmarks.frameworks import TASKIQ_SEND, Framework, Worked, worked
from benchmarks.peers.contests import Running
from benchmarks.peers.report import begin, ratios, row, spread
from benchmarks.peers.servers import RabbitMQ

_OURS: Final = """
from disque_tx import Disque
client = Disque(os.environ["BROKER"])
def send():
    client.add_job("noop", b"")
"""
_CELERY: Final = """
from celery import Celery
app = Celery("app", broker=os.environ["BROKER"])
app.conf.task_ignore_result = True
send = app.task(name="noop")(noop).delay
"""
_RQ: Final = """
import redis, rq
queue = rq.Queue(connection=redis.Redis.from_url(os.environ["BROKER"]))
def send():
    queue.enqueue("app.noop", result_ttl=0)
"""
_DRAMATIQ: Final = """
import dramatiq
from dramatiq.brokers.redis import RedisBroker
dramatiq.set_broker(RedisBroker(url=os.environ["BROKER"]))
send = dramatiq.actor(noop).send
"""
_TASKIQ: Final = """
from taskiq_redis import RedisStreamBroker
broker = RedisStreamBroker(url=os.environ["BROKER"])
"""
_CELERY_WORKER: Final = "-m celery -A app worker -c 1 -l ERROR --without-gossip --without-mingle"
_RQ_WORKER: Final = "-m rq.cli worker --url {broker} --quiet"
_OUR_WORKER: Final = (
    "-m disque_tx.cli.programs.client work app:noop --queue noop --concurrency 1"
    " --addresses {broker}"
)


@attrs.frozen
class _Worker:
    """``broker``: the name of the server that has the tasks."""

    framework: Framework
    broker: str


OURS: Final = _Worker(Framework("disque-tx", _OURS, _OUR_WORKER, 20_000), "Disque")
OTHERS: Final = (
    _Worker(Framework("Celery", _CELERY, _CELERY_WORKER, 3000), "Redis"),
    _Worker(Framework("Celery", _CELERY, _CELERY_WORKER, 3000), "RabbitMQ"),
    _Worker(Framework("RQ", _RQ, _RQ_WORKER, 300), "Redis"),
    _Worker(
        Framework("RQ without forks", _RQ, f"{_RQ_WORKER} --worker-class rq.SimpleWorker", 2000),
        "Redis",
    ),
    _Worker(Framework("dramatiq", _DRAMATIQ, "-m dramatiq app -p 1 -t 1", 3000), "Redis"),
    _Worker(
        Framework(
            "taskiq",
            _TASKIQ + TASKIQ_SEND,
            "-m taskiq worker app:broker --workers 1 --max-async-tasks 1",
            3000,
        ),
        "Redis, a stream",
    ),
)
#: How the programs call a server at a port.
_URLS: Final[dict[str, str]] = {
    "Disque": "127.0.0.1:{}",
    "Redis": "redis://127.0.0.1:{}/0",
    "Redis, a stream": "redis://127.0.0.1:{}/1",
    "RabbitMQ": "amqp://guest:guest@127.0.0.1:{}//",
}


def compare(folder: Path, python: Path, rounds: int) -> None:
    """Print the table. ``python``: of an environment that has the frameworks."""
    starts: dict[str, Callable[[], Running]] = {
        "Disque": lambda: disque(sys.executable, folder),
        "Redis": lambda: redis(folder),
        "RabbitMQ": lambda: RabbitMQ(folder, 1, quorum=False),
    }
    servers: dict[str, Running] = {}
    try:
        for name, start in starts.items():
            servers[name] = start()
        servers["Redis, a stream"] = servers["Redis"]
        results: dict[_Worker, list[Worked]] = {}
        for number in range(rounds):
            for worker in (OURS, *OTHERS):
                name = worker.framework.name
                progress(f"{name} on {worker.broker}, round {number + 1} of {rounds}")
                server = servers[worker.broker]
                executable = sys.executable if worker is OURS else str(python)
                url = _URLS[worker.broker].format(server.port)
                result = worked(worker.framework, folder, executable, url, server.cpu_s)
                results.setdefault(worker, []).append(result)
                if name != OURS.framework.name and isinstance(server, Server):
                    # What a worker had not acknowledged when it was stopped.
                    server.ask(b"FLUSHALL\r\n")
    finally:
        for name in starts.keys() & servers.keys():
            servers[name].stop()
    _tell(results)


def _tell(results: dict[_Worker, list[Worked]]) -> None:
    columns = ["worker", "broker", "tasks/s", "disque-tx is faster by"]
    begin("Workers", [*columns, "CPU µs per task, with the broker", "disque-tx takes less by"])
    ours = results[OURS]
    for worker, each in results.items():
        speeds, costs = [one.tasks_s for one in each], [one.cpu_us for one in each]
        faster = less = ""
        if worker is not OURS:
            faster = spread(ratios([one.tasks_s for one in ours], speeds))
            less = spread(ratios(costs, [one.cpu_us for one in ours]))
        row([worker.framework.name, worker.broker, spread(speeds), faster, spread(costs), less])
