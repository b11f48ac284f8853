"""Workers and nodes are killed while tasks of each framework run: every task is done.

``WORKER_KILLS`` and ``NODE_KILLS`` in the environment say how often, in each test.
"""

from __future__ import annotations

import os

import attrs

from tests.acceptance.cluster.fleet import shared
from tests.acceptance.daemon import wait_for
from tests.acceptance.integrations.frameworks import FrameworkTestCase, kill

_WORKER_KILLS = int(os.environ.get("WORKER_KILLS", "2"))
_NODE_KILLS = int(os.environ.get("NODE_KILLS", "2"))
#: Tasks that must be done between two kills, and how many there are for each kill.
_BETWEEN = 3
_TASKS_PER_KILL = 12
_ALL_DONE_S = 300.0
_TASK = """
def work(number):
    time.sleep(0.1)
    report(f"done {number}")
"""


@attrs.frozen
class Framework:
    """``program``: the module ``app``, in which ``send(number)`` sends a task. ``worker``: the
    command of a worker. ``settings``: of Django, if it is used."""

    program: str
    worker: tuple[str, ...]
    settings: str = ""


_CELERY = Framework(
    """
import disque_tx.integrations.celery
from celery import Celery
app = Celery("app", broker=os.environ["BROKER"])
app.conf.broker_transport_options = {"retry": 2, "replicate": 2}
app.conf.task_ignore_result = True
app.conf.task_acks_late = True
send = app.task(name="work")(work).delay
""",
    ("-m", "celery", "-A", "app", "worker", "-c", "2"),
)
_DRAMATIQ = Framework(
    """
import dramatiq
from disque_tx.integrations.dramatiq import DisqueBroker
dramatiq.set_broker(DisqueBroker(os.environ["BROKER"], retry_s=2, replicate=2))
send = dramatiq.actor(work).send
""",
    ("-m", "dramatiq", "app", "-p", "1", "-t", "2"),
)
_TASKIQ = Framework(
    """
import asyncio
from disque_tx.integrations.taskiq import DisqueBroker
broker = DisqueBroker(os.environ["BROKER"], retry_s=2, replicate=2)
task = broker.task(task_name="work")(work)
loop = asyncio.new_event_loop()
def send(number):
    loop.run_until_complete(task.kiq(number))
""",
    ("-m", "taskiq", "worker", "app:broker", "--workers", "1"),
)
_DJANGO = Framework(
    """
import django
django.setup()
try:
    from django.tasks import task
except ImportError:
    from django_tasks import task
work = task(work)
send = work.enqueue
""",
    ("-m", "django", "disque_worker", "--concurrency", "2"),
    settings="""
SECRET_KEY = "x"
USE_TZ = True
INSTALLED_APPS = ["disque_tx.integrations.django"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
TASKS = {"default": {
    "BACKEND": "disque_tx.integrations.django.backend.DisqueBackend",
    "OPTIONS": {"nodes": os.environ["NODES"].split(","), "retry_s": 2, "replicate": 2},
}}
""",
)
_DJANGO_Q2 = Framework(
    """
import django
django.setup()
def send(number):
    from django_q.tasks import async_task
    async_task("app.work", number)
""",
    ("-m", "django", "qcluster"),
    settings="""
SECRET_KEY = "x"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "django_q"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DB"],
                         "OPTIONS": {"timeout": 60}}}
Q_CLUSTER = {
    "name": "shop",
    "broker_class": "disque_tx.integrations.django_q2.DisqueBroker",
    "disque_nodes": os.environ["NODES"].split(","),
    "disque_replicate": 2,
    "workers": 2,
    "timeout": 3,
    "retry": 5,
    "poll": 0.1,
    "save_limit": -1,
    "ack_failures": True,
}
""",
)


class KillTests(FrameworkTestCase):
    """Three nodes with logs, copies on two of them, and two workers."""

    def begin(self, framework: Framework) -> None:
        """Start the nodes and the workers."""
        self.fleet = shared(3, "appendonly yes")
        nodes = ",".join(f"{node.ip}:{node.port}" for node in self.fleet.nodes)
        self.variables |= {"NODES": nodes, "BROKER": f"disque://{nodes}"}
        self.write("app", _TASK + framework.program)
        if framework.settings:
            self.variables |= {"DJANGO_SETTINGS_MODULE": "settings", "DB": str(self.place / "db")}
            self.write("settings", framework.settings)
            self.run_program(
                "import app\nfrom django.core.management import call_command\n"
                "call_command('migrate')"
            )
        self.workers = [self.spawn(*framework.worker) for _ in range(2)]

    def send(self, kills: int) -> list[str]:
        """Send tasks; returns the lines that they will report."""
        count = (kills + 1) * _TASKS_PER_KILL
        self.run_program(f"import app\nfor number in range({count}):\n    app.send(number)")
        return [f"done {number}" for number in range(count)]

    def wait_progress(self, lines: list[str]) -> None:
        """Until some more tasks are done, or all."""
        enough = min(len(lines), len(self.reported()) + _BETWEEN)
        wait_for(lambda: len(self.reported()) >= enough, "tasks are done", _ALL_DONE_S)

    def kill_workers(self, framework: Framework) -> None:
        """Each time another one, which is replaced."""
        self.begin(framework)
        lines = self.send(_WORKER_KILLS)
        for number in range(_WORKER_KILLS):
            self.wait_progress(lines)
            kill(self.workers[number % 2])
            self.workers[number % 2] = self.spawn(*framework.worker)
        self.wait_reported(*lines, timeout_s=_ALL_DONE_S)

    def kill_nodes(self, framework: Framework) -> None:
        """Each time another one, which is started again when the others have done some tasks."""
        self.begin(framework)
        lines = self.send(_NODE_KILLS)
        for number in range(_NODE_KILLS):
            self.wait_progress(lines)
            node = self.fleet.nodes[number % 3]
            node.kill()
            self.wait_progress(lines)
            node.boot()
        self.wait_reported(*lines, timeout_s=_ALL_DONE_S)

    def test_celery_workers(self) -> None:
        """Tasks that killed workers of Celery had begun are done by others."""
        self.kill_workers(_CELERY)

    def test_celery_nodes(self) -> None:
        """Workers of Celery go on with other nodes when one is killed, and no task is lost."""
        self.kill_nodes(_CELERY)

    def test_dramatiq_workers(self) -> None:
        """Tasks that killed workers of dramatiq had begun are done by others."""
        self.kill_workers(_DRAMATIQ)

    def test_dramatiq_nodes(self) -> None:
        """Workers of dramatiq go on with other nodes when one is killed, and no task is lost."""
        self.kill_nodes(_DRAMATIQ)

    def test_taskiq_workers(self) -> None:
        """Tasks that killed workers of taskiq had begun are done by others."""
        self.kill_workers(_TASKIQ)

    def test_taskiq_nodes(self) -> None:
        """Workers of taskiq go on with other nodes when one is killed, and no task is lost."""
        self.kill_nodes(_TASKIQ)

    def test_django_workers(self) -> None:
        """Tasks that killed workers of Django had begun are done by others."""
        self.kill_workers(_DJANGO)

    def test_django_nodes(self) -> None:
        """Workers of Django go on with other nodes when one is killed, and no task is lost."""
        self.kill_nodes(_DJANGO)

    def test_django_q2_workers(self) -> None:
        """Tasks that killed workers of Django-Q2 had begun are done by others."""
        self.kill_workers(_DJANGO_Q2)

    def test_django_q2_nodes(self) -> None:
        """Workers of Django-Q2 go on with other nodes when one is killed, and no task is lost."""
        self.kill_nodes(_DJANGO_Q2)
