"""How many no-op tasks a second a worker of each framework does on Disque, beside its Redis broker.

``python -m benchmarks.frameworks [rounds]``, in an environment that has the package with its extra
``frameworks``, and ``redis`` and ``taskiq-redis``. Needs redis-server. In each round each framework
has its tasks put in first and then its worker started, on one broker and then on the other;
measured is from the first task that is seen done to the last, so that starting costs nothing. Every
task adds a byte to a file, whose length is watched. Django's own tasks have no Redis broker and are
shown alone; taskiq's is its broker on lists, without acknowledgements. Prints Markdown: medians,
least and most.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import attrs
import redis

from benchmarks.daemon.servers import tree_cpu_s
from benchmarks.workers import free_port, listens, running, until
from disque_tx import Disque

_ROUNDS: Final = 7
TASK: Final = """
import os
_done = os.open(os.environ["DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def noop(*_):
    os.write(_done, b".")
"""
_CELERY: Final = """
import disque_tx.integrations.celery
from celery import Celery
app = Celery("app", broker=os.environ["BROKER"])
app.conf.task_ignore_result = True
send = app.task(name="noop")(noop).delay
"""
_DRAMATIQ: Final = """
import dramatiq
from disque_tx.integrations.dramatiq import DisqueBroker
from dramatiq.brokers.redis import RedisBroker
url = os.environ["BROKER"]
dramatiq.set_broker(DisqueBroker(url) if url.startswith("disque") else RedisBroker(url=url))
send = dramatiq.actor(noop).send
"""
#: Behind the lines that make a ``broker`` of taskiq.
TASKIQ_SEND: Final = """
import asyncio
async def work():
    noop()
task = broker.task(task_name="noop")(work)
loop = asyncio.new_event_loop()
def send():
    if not hasattr(broker, "begun"):
        broker.begun = loop.run_until_complete(broker.startup())
    loop.run_until_complete(task.kiq())
"""
_TASKIQ: Final = """
from disque_tx.integrations.taskiq import DisqueBroker
from taskiq_redis import ListQueueBroker
url = os.environ["BROKER"]
broker = DisqueBroker(url) if url.startswith("disque") else ListQueueBroker(url=url)
"""
_DJANGO: Final = """
import django
django.setup()
try:
    from django.tasks import task
except ImportError:
    from django_tasks import task
noop = task(noop)
send = noop.enqueue
"""
_DJANGO_Q2: Final = """
import django
django.setup()
def send():
    from django_q.tasks import async_task
    async_task("app.noop")
"""
_SETTINGS: Final = """
import os
SECRET_KEY = "x"
USE_TZ = True
INSTALLED_APPS = [
    "django.contrib.contenttypes", "disque_tx.integrations.django", "django_q"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DB"]}}
url = os.environ["BROKER"]
node = url.removeprefix("disque://")
Q_CLUSTER = {"name": "bench", "workers": 1, "timeout": 60, "retry": 120, "save_limit": -1,
             "log_level": "ERROR"}
if url.startswith("disque"):
    TASKS = {"default": {"BACKEND": "disque_tx.integrations.django.backend.DisqueBackend",
                         "OPTIONS": {"nodes": [node]}}}
    Q_CLUSTER["broker_class"] = "disque_tx.integrations.django_q2.DisqueBroker"
    Q_CLUSTER["disque_nodes"] = [node]
else:
    Q_CLUSTER["redis"] = url
"""
_SEND: Final = "import app, sys\nfor _ in range(int(sys.argv[1])):\n    app.send()\n"


@attrs.frozen
class Framework:
    """``program``: has ``send()``. ``worker``: its command. ``tasks``: in each round.
    ``has_redis``: whether there is a Redis broker to compare with."""

    name: str
    program: str
    worker: str
    tasks: int
    has_redis: bool = True


FRAMEWORKS: Final = (
    Framework(
        "Celery, 1 process",
        _CELERY,
        "-m celery -A app worker -c 1 -l ERROR --without-gossip --without-mingle",
        5000,
    ),
    Framework("dramatiq, 1 process, 4 threads", _DRAMATIQ, "-m dramatiq app -p 1 -t 4", 5000),
    Framework(
        "taskiq, 1 process", _TASKIQ + TASKIQ_SEND, "-m taskiq worker app:broker --workers 1", 5000
    ),
    Framework("Django-Q2, 1 worker", _DJANGO_Q2, "-m django qcluster", 500),
    Framework(
        "Django tasks, 1 thread", _DJANGO, "-m django disque_worker --concurrency 1", 2000, False
    ),
)


@attrs.frozen
class Worked:
    """``tasks_s``: tasks a second. ``cpu_us``: processor time of the worker per task."""

    tasks_s: float
    cpu_us: float


def worked(
    framework: Framework,
    folder: Path,
    python: str,
    broker: str,
    watched: Callable[[], float] = lambda: 0.0,
) -> Worked:
    """Put the tasks in, then start the worker and measure it. ``python``: has the framework.
    ``broker``: the URL; also in the place of ``{broker}`` in the command of the worker.
    ``watched``: processor time of others, in seconds, that is added to the worker's."""
    place = Path(tempfile.mkdtemp(dir=folder))
    (place / "app.py").write_text(TASK + framework.program)
    done = place / "done"
    done.touch()
    variables = {
        "BROKER": broker,
        "DONE": str(done),
    }
    if "django" in framework.worker:
        (place / "settings.py").write_text(_SETTINGS)
        variables |= {"DB": str(place / "db"), "DJANGO_SETTINGS_MODULE": "settings"}
        _run([python, "-m", "django", "migrate", "--verbosity", "0"], place, variables)
    _run([python, "-c", _SEND, str(framework.tasks)], place, variables)
    command = [python, *framework.worker.format(broker=broker).split()]
    with running(command, str(place), **variables) as process:
        until(lambda: done.stat().st_size > 0, f"{framework.name} on {broker} begins")
        start_s, before = time.perf_counter(), done.stat().st_size
        used_s = tree_cpu_s(process.pid) + watched()
        until(
            lambda: done.stat().st_size >= framework.tasks,
            f"{framework.name} on {broker} is done; see {place}",
        )
        took_s = time.perf_counter() - start_s
        used_s = tree_cpu_s(process.pid) + watched() - used_s
    tasks = framework.tasks - before
    return Worked(tasks / took_s, used_s * 1e6 / tasks)


def _run(command: list[str], place: Path, variables: dict[str, str]) -> None:
    path = f"{place}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environ = {**os.environ, **variables, "PYTHONPATH": path}
    subprocess.run(command, check=True, cwd=place, env=environ)


class Bench:
    """Runs one framework after the other. ``urls``: of the brokers, by name."""

    def __init__(self, folder: Path, urls: dict[str, str], clients: tuple[Disque, redis.Redis]):
        self._folder = folder
        self._urls = urls
        self._disque, self._redis = clients

    def speed(self, framework: Framework, broker: str) -> float:
        """Tasks a second."""
        speed = worked(framework, self._folder, sys.executable, self._urls[broker]).tasks_s
        self._clean()
        return speed

    def _clean(self) -> None:
        """What workers did not acknowledge when they were stopped is not for the next round."""
        self._redis.flushall()
        for job in self._disque.job_scan():
            self._disque.delete_jobs(job.id)


def main() -> int:
    """The table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else _ROUNDS
    speeds: dict[tuple[str, str], list[float]] = {}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        redis_port, port = free_port(), free_port()
        server = ["redis-server", "--port", str(redis_port), "--save", "", "--dir", folder]
        node = [sys.executable, "-m", "disque_tx.cli.programs.server", "--port", str(port)]
        stack.enter_context(running(server, folder))
        stack.enter_context(running([*node, "--dir", folder], folder))
        until(lambda: listens(redis_port) and listens(port), "the servers listen")
        urls = {
            "Disque": f"disque://127.0.0.1:{port}",
            "Redis": f"redis://127.0.0.1:{redis_port}/0",
        }
        client = stack.enter_context(Disque(f"127.0.0.1:{port}"))
        bench = Bench(Path(folder), urls, (client, redis.Redis(port=redis_port)))
        for _ in range(rounds):
            for framework in FRAMEWORKS:
                for broker in urls if framework.has_redis else ("Disque",):
                    speed = bench.speed(framework, broker)
                    speeds.setdefault((framework.name, broker), []).append(speed)
    _print(speeds)
    return 0


def _print(speeds: dict[tuple[str, str], list[float]]) -> None:
    print("| framework | broker | tasks/s | least | most | of Redis |")
    print("|---|---|---|---|---|---|")
    for (name, broker), each in speeds.items():
        median = statistics.median(each)
        peer = speeds.get((name, "Redis"))
        times = f"{median / statistics.median(peer):.2f}" if peer else ""
        print(f"| {name} | {broker} | {median:.0f} | {min(each):.0f} | {max(each):.0f} | {times} |")


if __name__ == "__main__":
    sys.exit(main())
