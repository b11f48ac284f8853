"""Runs the tasks of a backend, as a handler of a worker."""

from __future__ import annotations

import traceback
from typing import Any

from django.db import close_old_connections
from django.utils import timezone

from disque_tx.integrations.django.backend import DisqueBackend
from disque_tx.integrations.django.compat import (
    SUCCESSFUL,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    plain,
    task_finished,
    task_started,
)
from disque_tx.integrations.django.records import DamagedRecord, change, decoded
from disque_tx.worker import Context, Hopeless


class TaskFailed(Exception):
    """A task failed and is to be tried again."""


class TaskRunner:
    """Does the jobs of one backend, each in a thread of the worker."""

    def __init__(self, backend: DisqueBackend) -> None:
        self._backend = backend
        self.__qualname__ = f"Task runner of backend {backend.alias!r}"  # its name in the log

    def __call__(self, job: Context) -> None:
        """Run the task of a job, and keep its result.

        :raises Hopeless: it failed for the last time, or the job is not a task. :raises TaskFailed:
        it failed, and is to be tried again.
        """
        try:
            result = decoded(job.body)
        except DamagedRecord as error:
            raise Hopeless(str(error)) from error
        close_old_connections()
        try:
            self._run(self._known(result, job), job.worker)
        finally:
            close_old_connections()

    def _known(self, result: TaskResult, job: Context) -> TaskResult:
        """The result as it was kept last, if the task was tried before."""
        if job.attempt == 1:
            return result
        value = self._backend.results.get(result.id)
        return result if value is None else decoded(value)

    def _run(self, result: TaskResult, worker: str) -> None:
        if result.is_finished:
            return  # done by a worker that died before it could acknowledge the job
        now = timezone.now()
        change(
            result,
            status=TaskResultStatus.RUNNING,
            started_at=result.started_at or now,
            last_attempted_at=now,
        )
        result.worker_ids.append(worker)
        self._backend.save(result)
        sender = type(self._backend)
        task_started.send(sender=sender, task_result=result)
        try:
            value = plain(_call(result))
        except Exception as error:
            self._failed(result, error)
        else:
            change(result, status=SUCCESSFUL, _return_value=value)
            self._finished(result)

    def _failed(self, result: TaskResult, error: Exception) -> None:
        kind = type(error)
        path = f"{kind.__module__}.{kind.__qualname__}"
        text = "".join(traceback.format_exception(error))
        result.errors.append(TaskError(exception_class_path=path, traceback=text))
        reason = f"{kind.__name__}: {error}"
        if len(result.errors) <= self._backend.settings.retries:
            change(result, status=TaskResultStatus.READY)
            self._backend.save(result)
            raise TaskFailed(reason) from error
        change(result, status=TaskResultStatus.FAILED)
        self._finished(result)
        raise Hopeless(reason) from error

    def _finished(self, result: TaskResult) -> None:
        change(result, finished_at=timezone.now())
        self._backend.save(result)
        task_finished.send(type(self._backend), task_result=result)


def _call(result: TaskResult) -> Any:
    task = result.task
    if task.takes_context:
        return task.call(TaskContext(task_result=result), *result.args, **result.kwargs)
    return task.call(*result.args, **result.kwargs)
