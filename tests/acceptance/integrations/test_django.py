"""Django's tasks on real nodes, with real workers."""

from __future__ import annotations

import json
import subprocess

from disque_tx.client.blocking import Disque
from tests.acceptance.daemon import wait_for
from tests.acceptance.integrations.frameworks import FrameworkTestCase, kill, stop

_SETTINGS = """
import json
SECRET_KEY = "x"
USE_TZ = True
INSTALLED_APPS = ["disque_tx.integrations.django"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
TASKS = {
    "default": {
        "BACKEND": "disque_tx.integrations.django.backend.DisqueBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {
            "nodes": os.environ["NODE"],
            "retry_s": int(os.environ["RETRY"]),
            **json.loads(os.environ["OPTIONS"]),
        },
    }
}
"""
_TASKS = """
from datetime import timedelta
from django.db import transaction
from django.utils import timezone
from disque_tx.integrations.django.compat import SUCCESSFUL
try:
    from django.tasks import task, default_task_backend
except ImportError:
    from django_tasks import task, default_task_backend

@task
def add(left, right):
    report(f"add {left} {right}")
    return left + right

@task
async def later(text):
    report(text)

@task(queue_name="mail")
def slow(text, wait_s):
    report("begun " + text)
    time.sleep(wait_s)
    report("done " + text)

@task
def failing():
    report("failing")
    raise ValueError("no such customer")

@task(takes_context=True)
def flaky(context):
    if context.attempt < 3:
        raise OSError("try again")
    return context.attempt

@task
def ordered(text):
    report(text)

def wait(result):
    deadline_s = time.monotonic() + 100
    while not result.is_finished and time.monotonic() < deadline_s:
        time.sleep(0.05)
        result.refresh()
    return result
"""
_SETUP = "import django; django.setup()\nfrom tasks import *\n"


class TaskTests(FrameworkTestCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        node = self.running()
        self.client = Disque(f"127.0.0.1:{node.port}")
        self.addCleanup(self.client.close)
        self.options()
        self.variables |= {
            "NODE": f"127.0.0.1:{node.port}",
            "DJANGO_SETTINGS_MODULE": "settings",
        }
        self.write("settings", _SETTINGS)
        self.write("tasks", _TASKS)

    def options(self, **options: object) -> None:
        """The options of the backend, beside the node."""
        self.variables["OPTIONS"] = json.dumps(options)

    def worker(self, *words: str) -> subprocess.Popen[bytes]:
        """A worker."""
        return self.spawn("-m", "django", "disque_worker", "--concurrency", "2", *words)

    def run_tasks(self, source: str) -> list[str]:
        """The lines that a program prints which enqueues tasks."""
        return self.run_program(_SETUP + source).splitlines()

    def test_life(self) -> None:
        """Tasks are done, each once, and their results can be read again and again."""
        worker = self.worker()
        printed = self.run_tasks(
            "result = add.enqueue(2, right=3)\n"
            "print(result.status)\n"
            "for _ in range(2):\n"
            "    print(wait(add.get_result(result.id)).return_value, result.id != '')\n"
            "done = add.get_result(result.id)\n"
            "print(done.status == SUCCESSFUL, done.attempts, done.started_at <= done.finished_at)\n"
            "wait(later.enqueue('coroutine'))\n"
        )
        self.assertEqual(["READY", "5 True", "5 True", "True 1 True"], printed)
        self.wait_reported("add 2 3", "coroutine")
        self.assertEqual({1}, set(self.reported().values()))
        self.assertEqual(0, stop(worker), self.output())

    def test_deferred(self) -> None:
        """A task for later waits in the node."""
        self.worker()
        self.run_tasks(
            "later.using(run_after=timezone.now() + timedelta(days=1)).enqueue('tomorrow')\n"
            "wait(later.using(run_after=timezone.now() + timedelta(seconds=2)).enqueue('soon'))\n"
        )
        self.assertEqual({"soon": 1}, dict(self.reported()))
        delays = [job.delay_s for job in self.client.job_scan("django:default")]
        self.assertEqual(1, sum(86_390 <= delay <= 86_400 for delay in delays))

    def test_priorities(self) -> None:
        """Among tasks that wait, the most urgent is done first."""
        self.run_tasks(
            "for priority in (0, -50, 100, 10, -100, 50):\n"
            "    ordered.using(priority=priority).enqueue(str(priority))\n"
        )
        self.spawn("-m", "django", "disque_worker", "--concurrency", "1")
        self.wait_reported("-100")
        order = self.report.read_text().split()
        self.assertEqual(["100", "50", "10", "0", "-50", "-100"], order)

    def test_failed(self) -> None:
        """A task that fails is not tried again unless that is wanted; its error is kept, and a dead
        letter has the reason."""
        self.worker()
        printed = self.run_tasks(
            "result = wait(failing.enqueue())\n"
            "print(result.status, result.errors[0].exception_class.__name__)\n"
            "print('no such customer' in result.errors[0].traceback)\n"
        )
        self.assertEqual(["FAILED ValueError", "True"], printed)
        self.assertEqual({"failing": 1}, dict(self.reported()))
        (letter,) = wait_for(lambda: self.client.queue_peek("dead:django:default"), "a letter")
        self.assertIn("no such customer", json.loads(letter.body)["reason"])

    def test_retried(self) -> None:
        """With retries, a task that fails is tried again, and counts its attempts."""
        self.options(retries=5)
        self.worker()
        printed = self.run_tasks(
            "result = wait(flaky.enqueue())\n"
            "print(result.status == SUCCESSFUL, result.return_value, len(result.errors))\n"
        )
        self.assertEqual(["True 3 2"], printed)

    def test_long(self) -> None:
        """A task that takes several times RETRY is not begun again while its worker lives."""
        self.shorten_retry()
        for _ in range(2):
            self.worker()
        self.run_tasks("for text in 'abc': slow.enqueue(text, 7)")
        self.wait_reported("done a", "done b", "done c")
        self.assertEqual({1}, set(self.reported().values()))

    def test_killed(self) -> None:
        """The task of a worker that is killed is done by another one soon after RETRY."""
        self.shorten_retry()
        first = self.worker()
        self.run_tasks("slow.enqueue('x', 5)")
        self.wait_reported("begun x")
        self.worker()
        kill(first)
        self.wait_reported("done x")

    def test_on_commit(self) -> None:
        """With ``enqueue_on_commit`` a task of a transaction that fails is never sent."""
        self.options(enqueue_on_commit=True)
        self.run_tasks(
            "try:\n"
            "    with transaction.atomic():\n"
            "        ordered.enqueue('never')\n"
            "        raise KeyError\n"
            "except KeyError:\n"
            "    pass\n"
            "with transaction.atomic():\n"
            "    ordered.enqueue('sent')\n"
        )
        self.assertEqual(1, self.client.queue_length("django:default"))

    def test_damaged(self) -> None:
        """A job that is no task, or names something else than a task, becomes a dead letter; others
        go on."""
        bodies = [b"\xff", b"{}", json.dumps({"task": "os.system", "args": ["true"]}).encode()]
        for body in bodies:
            self.client.add_job("django:default", body)
        self.worker()
        self.run_tasks("wait(ordered.enqueue('fine'))")
        dead = wait_for(
            lambda: len(found := self.client.queue_peek("dead:django:default")) == 3 and found,
            "three letters",
        )
        reasons = " ".join(json.loads(letter.body)["reason"] for letter in dead)
        self.assertIn("'os.system' is no task", reasons)

    def test_unknown_result(self) -> None:
        """A result that is not there is Django's own error."""
        printed = self.run_tasks(
            "try:\n    add.get_result('none')\n"
            "except Exception as error:\n    print(type(error).__name__)\n"
        )
        self.assertEqual(["TaskResultDoesNotExist"], printed)

    def test_checks(self) -> None:
        """``manage.py check`` names a wrong option, and so does the worker."""
        for options in ({"retry": 5}, {"retries": -1}, {"ttl_s": "1"}):
            self.options(**options)
            (name,) = options
            for words in (("check",), ("disque_worker",)):
                process = self.spawn("-m", "django", *words)
                self.assertNotEqual(0, process.wait(60))
            self.assertIn(name, self.output())
