"""The backend: tasks become jobs, and results are kept beside them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import get_random_string

from disque_tx.client import BadAddress
from disque_tx.client.blocking import Disque
from disque_tx.integrations.django.compat import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
)
from disque_tx.integrations.django.options import BackendOptions, backend_options
from disque_tx.integrations.django.records import DamagedRecord, change, decoded, encoded
from disque_tx.integrations.results import Results

_ID_CHARACTERS: Final = 32


class DisqueBackend(BaseTaskBackend):
    """See Django's ``BaseTaskBackend``; the options are those of :class:`BackendOptions`."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.alias = alias
        self._client: Disque | None = None

    @property
    def settings(self) -> BackendOptions:
        """The options.

        :raises ImproperlyConfigured: one of them cannot be used.
        """
        try:
            return backend_options(self.options)
        except (ValueError, BadAddress) as error:
            raise ImproperlyConfigured(f"TASKS[{self.alias!r}]['OPTIONS']: {error}") from error

    @property
    def client(self) -> Disque:
        """The connections, which may be used by all threads."""
        if self._client is None:
            settings = self.settings
            self._client = Disque(settings.nodes, settings.password, tls=settings.tls)
        return self._client

    @property
    def results(self) -> Results:
        """Where results are kept."""
        settings = self.settings
        return Results(self.client, f"{settings.prefix}result:", settings.terms.replicate)

    # -- of Django ---------------------------------------------------------------------------

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Send a task; with ``enqueue_on_commit``, when the transaction ends, if there is one."""
        self.validate_task(task)
        result = TaskResult(
            task=task,
            id=get_random_string(_ID_CHARACTERS),
            status=TaskResultStatus.READY,
            enqueued_at=None,
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        if self.settings.on_commit:
            transaction.on_commit(partial(self._send, result))
        else:
            self._send(result)
        return result

    def _send(self, result: TaskResult) -> None:
        settings = self.settings
        task = result.task
        change(result, enqueued_at=timezone.now())
        delay_s = 0.0
        if task.run_after is not None:
            delay_s = max(0.0, (task.run_after - timezone.now()).total_seconds())
        self.save(result, delay_s)
        queue = settings.queue(task.queue_name, task.priority)
        self.client.add_job_with(queue, encoded(result), settings.terms.options(delay_s))
        task_enqueued.send(type(self), task_result=result)

    def save(self, result: TaskResult, delay_s: float = 0.0) -> None:
        """Keep a result for its time, or while its task waits."""
        settings = self.settings
        ttl_s = settings.result_ttl_s
        if not result.is_finished:
            ttl_s = max(ttl_s, settings.terms.ttl_s)
        self.results.put(result.id, encoded(result), int(delay_s) + ttl_s)

    def get_result(self, result_id: str) -> TaskResult:
        value = self.results.get(str(result_id))
        if value is None:
            raise TaskResultDoesNotExist(result_id)
        try:
            return decoded(value)
        except DamagedRecord as error:
            raise TaskResultDoesNotExist(f"{result_id}: {error}") from error

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """Name what is wrong in the settings."""
        try:
            _ = self.settings
        except ImproperlyConfigured as error:
            hint = "See the page 'Use Django's tasks with Disque' for all options."
            yield checks.Error(str(error), hint=hint, id="disque_tx.E001")
