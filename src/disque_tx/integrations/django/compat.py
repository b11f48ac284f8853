"""The names of Django's tasks, from Django 6 or from the package ``django-tasks``."""

from __future__ import annotations

import json
from typing import Any

try:
    from django.tasks import DEFAULT_TASK_QUEUE_NAME, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
except ImportError:
    from django_tasks import DEFAULT_TASK_QUEUE_NAME, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started

#: Earlier releases of the package call it otherwise.
_SUCCEEDED = "SUCCEEDED"
SUCCESSFUL: TaskResultStatus = getattr(TaskResultStatus, "SUCCESSFUL", None) or TaskResultStatus(
    _SUCCEEDED
)

__all__ = [
    "DEFAULT_TASK_QUEUE_NAME",
    "SUCCESSFUL",
    "BaseTaskBackend",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "plain",
    "status_of",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]


def status_of(name: str) -> TaskResultStatus:
    """The status with this name, by whichever release it was written.

    :raises ValueError: there is none.
    """
    if name in ("SUCCESSFUL", _SUCCEEDED):
        return SUCCESSFUL
    return TaskResultStatus(name)


def plain(value: Any) -> Any:
    """The value as it comes back from JSON.

    :raises TypeError: it cannot be JSON.
    """
    return json.loads(json.dumps(value))
