"""Results of tasks as JSON, and the jobs that ask for tasks."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from django.utils.module_loading import import_string

from disque_tx.integrations.django.compat import Task, TaskError, TaskResult, status_of

_TIMES: Final = ("enqueued_at", "started_at", "finished_at", "last_attempted_at")


class DamagedRecord(ValueError):
    """The job is not a task of Django, or not a task of this program."""


def encoded(result: TaskResult) -> bytes:
    """A result, or a job, as bytes."""
    task = result.task
    values: dict[str, Any] = {
        "id": result.id,
        "task": task.module_path,
        "priority": task.priority,
        "queue_name": task.queue_name,
        "run_after": _written(task.run_after),
        "backend": result.backend,
        "status": str(result.status),
        "args": result.args,
        "kwargs": result.kwargs,
        "errors": [[error.exception_class_path, error.traceback] for error in result.errors],
        "worker_ids": result.worker_ids,
        "return_value": result._return_value,
        **{name: _written(getattr(result, name)) for name in _TIMES},
    }
    return json.dumps(values).encode()


def decoded(body: bytes) -> TaskResult:
    """The result in these bytes.

    :raises DamagedRecord: there is none, or its task is not one of this program.
    """
    try:
        values = json.loads(body)
        task = _task(str(values["task"]))
        task = replace(
            task,
            priority=int(values["priority"]),
            queue_name=str(values["queue_name"]),
            backend=str(values["backend"]),
            run_after=_read(values["run_after"]),
        )
        result = TaskResult(
            task=task,
            id=str(values["id"]),
            status=status_of(str(values["status"])),
            args=list(values["args"]),
            kwargs=dict(values["kwargs"]),
            backend=str(values["backend"]),
            errors=[
                TaskError(exception_class_path=str(path), traceback=str(text))
                for path, text in values["errors"]
            ],
            worker_ids=[str(worker) for worker in values["worker_ids"]],
            **{name: _read(values[name]) for name in _TIMES},
        )
        change(result, _return_value=values["return_value"])
    except DamagedRecord:
        raise
    except Exception as error:  # whatever a stranger wrote, and whatever Django says to it
        raise DamagedRecord(f"This is no task: {error!r}.") from error
    return result


def change(result: TaskResult, **values: Any) -> None:
    """Change a result, which Django freezes for everybody but a backend."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def _task(path: str) -> Task:
    """The task with this path. Only tasks: a job says what is called."""
    try:
        task = import_string(path)
    except ImportError as error:
        raise DamagedRecord(f"There is no task {path!r} here: {error}.") from error
    if not isinstance(task, Task):
        raise DamagedRecord(f"{path!r} is no task.")
    return task


def _written(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _read(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
