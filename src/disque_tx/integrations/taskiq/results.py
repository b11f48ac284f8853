"""taskiq's results on Disque."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from taskiq import AsyncResultBackend, TaskiqResult
from taskiq.abc.serializer import TaskiqSerializer
from taskiq.depends.progress_tracker import TaskProgress
from taskiq.serializers import PickleSerializer

from disque_tx.client.aio import Disque
from disque_tx.client.options import TLS
from disque_tx.integrations.results import newest, peek, result_options, stamped

_T = TypeVar("_T")
_PROGRESS: Final = ":progress"


class ResultIsMissing(KeyError):
    """The result of a task is missing: the task is not done, or the time to keep its result is
    over."""


class DisqueResultBackend(AsyncResultBackend[_T]):
    """Results as jobs that nobody fetches: they can be read as often as one likes for their time.

    ``result_ttl_s``: how long they are kept. ``prefix``: of the queues. ``serializer``: pickle by
    default, as with taskiq's other backends. The other arguments are those of
    ``DisqueBroker``.
    """

    def __init__(
        self,
        url: str | Iterable[str] = "disque://127.0.0.1:7711",
        password: str | None = None,
        *,
        tls: bool | TLS = False,
        result_ttl_s: int = 86_400,
        replicate: int | None = None,
        prefix: str = "taskiq:result:",
        serializer: TaskiqSerializer | None = None,
    ) -> None:
        self._client = Disque(url, password, tls=tls)
        self._options = result_options(replicate, result_ttl_s)
        self._prefix = prefix
        self._serializer = serializer or PickleSerializer()

    async def shutdown(self) -> None:
        await self._client.close()
        await super().shutdown()

    async def set_result(self, task_id: str, result: TaskiqResult[_T]) -> None:
        await self._put(task_id, result.model_dump())

    async def is_result_ready(self, task_id: str) -> bool:
        return await self._get(task_id) is not None

    async def get_result(self, task_id: str, with_logs: bool = False) -> TaskiqResult[_T]:
        """The result of a task.

        :raises ResultIsMissing: there is none.
        """
        value = await self._get(task_id)
        if value is None:
            raise ResultIsMissing(task_id)
        result: TaskiqResult[_T] = TaskiqResult.model_validate(self._serializer.loadb(value))
        if not with_logs:
            result.log = None
        return result

    async def set_progress(self, task_id: str, progress: TaskProgress[Any]) -> None:
        await self._put(task_id + _PROGRESS, progress.model_dump())

    async def get_progress(self, task_id: str) -> TaskProgress[Any] | None:
        value = await self._get(task_id + _PROGRESS)
        if value is None:
            return None
        return TaskProgress.model_validate(self._serializer.loadb(value))

    async def _put(self, key: str, value: dict[str, Any]) -> None:
        body = stamped(self._serializer.dumpb(value), time.time())
        await self._client.add_job_with(self._prefix + key, body, self._options)

    async def _get(self, key: str) -> bytes | None:
        return newest(await self._client.ask_all(peek(self._prefix + key)))
