"""Tasks of Django on a node: what a task leaves in its result, whatever becomes of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings

if not settings.configured:
    settings.configure(USE_TZ=True)

from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.dispatch import Signal
from django.utils import timezone

from disque_tx.client.values import Job
from disque_tx.integrations.django import running
from disque_tx.integrations.django.backend import DisqueBackend
from disque_tx.integrations.django.compat import (
    SUCCESSFUL,
    Task,
    TaskContext,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
    task_finished,
    task_started,
)
from disque_tx.integrations.django.records import change
from disque_tx.integrations.django.running import TaskFailed, TaskRunner
from disque_tx.worker import Context, Hopeless
from tests.cli.livenode import VerbCase


def _double(number: int, plus: int = 0) -> int:
    return 2 * number + plus


def _attempts(context: TaskContext) -> list[Any]:
    result = context.task_result
    return [str(result.status), len(result.worker_ids)]


def _fail(text: str) -> None:
    raise ValueError(text)


def _strange() -> object:
    return object()


def _task(work: Callable[..., Any], **values: Any) -> Task:
    terms = {"priority": 0, "backend": "default", "queue_name": "default", "run_after": None}
    return Task(func=work, **{**terms, **values})


double, fail, strange = _task(_double), _task(_fail), _task(_strange)
attempts = _task(_attempts, takes_context=True)
for _name, _one in (("double", double), ("fail", fail), ("strange", strange)):
    _one.func.__qualname__ = _name
attempts.func.__qualname__ = "attempts"


class RunningTests(VerbCase):
    """A backend on a node, and the handler of its jobs."""

    def setUp(self) -> None:
        super().setUp()
        logging.disable()  # Django logs each failure of a task
        self.addCleanup(logging.disable, logging.NOTSET)
        self.backend = self.configured(retries=1)
        self.runner = TaskRunner(self.backend)
        self.closings = 0
        self.patch(running, "close_old_connections", self.note_closing)
        self.signals: list[str] = []
        for name, signal in (
            ("enqueued", task_enqueued), ("started", task_started), ("finished", task_finished),
        ):  # fmt: skip
            self.listen(name, signal)

    def listen(self, name: str, signal: Signal) -> None:
        """Note a signal of Django."""

        def note(sender: Any, task_result: TaskResult, **_: Any) -> None:
            self.assertIs(DisqueBackend, sender)
            self.signals.append(f"{name} {task_result.status}")

        signal.connect(note, weak=False, dispatch_uid=name)
        self.addCleanup(signal.disconnect, dispatch_uid=name)

    def note_closing(self) -> None:
        """Old connections to the database are closed."""
        self.closings += 1

    def configured(self, **options: Any) -> DisqueBackend:
        """A backend with these options."""
        options = {"nodes": self.node.address, **options}
        backend = DisqueBackend("default", {"OPTIONS": options, "QUEUES": ["default"]})
        self.addCleanup(lambda: backend._client and backend._client.close())
        return backend

    def job(self, attempt: int = 1) -> Context:
        """The job that was added last, as a worker gets it."""
        ((_, job_id, body),) = self.call("QPEEK", "django:default", -1)
        return Context(Job("django:default", job_id.decode(), body, attempt - 1, 0), "w1")

    def test_done(self) -> None:
        """A result has the value, when the task was begun and when it was over, and by whom; who
        listens to signals hears of each step once."""
        before = timezone.now()
        sent = self.backend.enqueue(double, [21], {"plus": 1})
        assert sent.enqueued_at is not None
        self.assertTrue(before <= sent.enqueued_at <= timezone.now())
        waiting = self.backend.get_result(sent.id)
        self.assertEqual((TaskResultStatus.READY, None), (waiting.status, waiting.started_at))
        self.runner(self.job())
        result = self.backend.get_result(sent.id)
        self.assertEqual((SUCCESSFUL, 43), (result.status, result.return_value))
        self.assertEqual(([21], {"plus": 1}), (result.args, result.kwargs))
        self.assertEqual(["w1"], result.worker_ids)
        times = [result.enqueued_at, result.started_at, result.last_attempted_at]
        found = [time for time in (*times, result.finished_at) if time is not None]
        self.assertEqual(4, len(found))
        self.assertEqual(sorted(found), found)
        steps = [f"enqueued {TaskResultStatus.READY}", "started RUNNING", f"finished {SUCCESSFUL}"]
        self.assertEqual(steps, self.signals)
        self.assertEqual(2, self.closings, "before it, and after it")

    def test_context(self) -> None:
        """A task that wants its context sees its own state in it."""
        sent = self.backend.enqueue(attempts, [], {})
        self.runner(self.job())
        self.assertEqual(["RUNNING", 1], self.backend.get_result(sent.id).return_value)

    def test_failed(self) -> None:
        """A task that fails waits for its next attempt with the error in its result; after the last
        one it has failed, with all errors, and is not tried again."""
        sent = self.backend.enqueue(fail, ["why"], {})
        job = self.job()
        error = self.assertRaises(TaskFailed, self.runner, job)
        self.assertEqual("ValueError: why", str(error))
        self.assertIsInstance(error.__cause__, ValueError)
        first = self.backend.get_result(sent.id)
        self.assertEqual((TaskResultStatus.READY, 1), (first.status, len(first.errors)))
        self.assertEqual(None, first.finished_at)
        error = self.assertRaises(Hopeless, self.runner, self.job(attempt=2))
        self.assertEqual("ValueError: why", str(error))
        last = self.backend.get_result(sent.id)
        self.assertEqual((TaskResultStatus.FAILED, 2), (last.status, len(last.errors)))
        self.assertEqual(["w1", "w1"], last.worker_ids)
        self.assertEqual("builtins.ValueError", last.errors[0].exception_class_path)
        self.assertIn("raise ValueError(text)\nValueError: why", last.errors[1].traceback)
        self.assertEqual(first.started_at, last.started_at)
        assert last.last_attempted_at is not None and last.started_at is not None
        self.assertTrue(last.last_attempted_at > last.started_at)
        self.assertNotEqual(None, last.finished_at)
        self.assertEqual("finished FAILED", self.signals[-1])
        self.assertEqual(1, len([one for one in self.signals if one.startswith("finished")]))
        self.assertEqual(4, self.closings)

    def test_done_before(self) -> None:
        """A task whose worker died before it could acknowledge it is not done twice."""
        sent = self.backend.enqueue(double, [1], {})
        self.runner(self.job())
        self.signals.clear()
        self.runner(self.job(attempt=2))
        result = self.backend.get_result(sent.id)
        self.assertEqual((["w1"], []), (result.worker_ids, self.signals))

    def test_unkept(self) -> None:
        """A second attempt whose result is gone begins anew, as the first one."""
        sent = self.backend.enqueue(double, [1], {})
        self.backend.results.delete(sent.id)
        self.runner(self.job(attempt=2))
        self.assertEqual(2, self.backend.get_result(sent.id).return_value)

    def test_no_task(self) -> None:
        """A job that is no task of this program is hopeless, and nothing of it is run; a value that
        no result can hold is the failure of its task."""
        error = self.assertRaises(Hopeless, self.runner, Context(Job("q", "D-1", b"x"), "w"))
        self.assertTrue(str(error).startswith("This is no task: "), error)
        self.assertEqual(0, self.closings)
        self.backend.enqueue(strange, [], {})
        error = self.assertRaises(TaskFailed, self.runner, self.job())
        self.assertTrue(str(error).startswith("TypeError: "), error)

    def test_missing(self) -> None:
        """Who asks for a result that is not there, or is none, hears so."""
        self.assertRaises(TaskResultDoesNotExist, self.backend.get_result, "none")
        self.backend.results.put("bad", b"x", 60)
        error = self.assertRaises(TaskResultDoesNotExist, self.backend.get_result, "bad")
        self.assertTrue(str(error).startswith("bad: This is no task: "), error)

    def test_later(self) -> None:
        """A task with a time is a job with a delay, and one whose time is over is not delayed."""
        for hours, delayed in ((1, True), (-1, False)):
            at = timezone.now() + timedelta(hours=hours)
            task = _task(_double)
            change(task, run_after=at)  # Django lets only configured backends have such a task
            self.backend.enqueue(task, [1], {})
            self.assertEqual(0 if delayed else 1, self.length("django:default"))

    def test_on_commit(self) -> None:
        """With ``enqueue_on_commit`` a task is sent by the transaction, and not before."""
        sent: list[Callable[[], object]] = []
        self.patch(transaction, "on_commit", sent.append)
        self.configured(enqueue_on_commit=True).enqueue(double, [1], {})
        self.assertEqual((0, 1), (self.length("django:default"), len(sent)))
        sent[0]()
        self.assertEqual(1, self.length("django:default"))

    def test_validated(self) -> None:
        """A task for a queue that the backend does not have is refused, and nothing is sent."""
        task = _task(_double)
        change(task, queue_name="other")
        try:
            self.backend.enqueue(task, [1], {})
        except Exception as error:  # Django 6 and its predecessor call it differently
            self.assertEqual("Queue 'other' is not valid for backend.", str(error))
        else:
            self.fail("The task is taken.")
        self.assertEqual(0, int(self.client.info()["registered_jobs"]))

    def test_checks(self) -> None:
        """``manage.py check`` names the backend and what is wrong with its options."""
        self.assertEqual([], list(self.backend.check()))
        wrong = self.configured(ttl_s=0)
        (message,) = wrong.check()
        self.assertEqual("disque_tx.E001", message.id)
        self.assertTrue(message.msg.startswith("TASKS['default']['OPTIONS']: "), message.msg)
        self.assertRaises(ImproperlyConfigured, wrong.enqueue, double, [1], {})
