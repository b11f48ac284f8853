"""taskiq on Disque: a broker, and a backend for results.

    from disque_tx.integrations.taskiq import DisqueBroker, DisqueResultBackend

    broker = DisqueBroker("disque://node1:7711,node2:7711").with_result_backend(
        DisqueResultBackend("disque://node1:7711,node2:7711")
    )

Labels of a task: ``delay``, in seconds, waits in the nodes; ``priority``, 0 to 9, the greatest
first; ``queue_name``; ``ttl``, in seconds. A message that a worker has is leased for as long as the
worker lives, and goes to another one after ``retry_s`` when it is killed. See
docs/how-to/use-dramatiq-taskiq-django-q2.md.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, Final, TypeVar

from taskiq import AckableMessage, AsyncBroker, AsyncResultBackend, BrokerMessage, TaskiqResult
from taskiq.abc.serializer import TaskiqSerializer
from taskiq.depends.progress_tracker import TaskProgress
from taskiq.serializers import PickleSerializer

from disque_tx.client import ClientError
from disque_tx.client.aio import Disque, TakenJob
from disque_tx.client.options import TLS
from disque_tx.integrations.adding import PRIORITY_MAX, JobTerms, names_by_priority, priority_name
from disque_tx.integrations.leases import Leases
from disque_tx.integrations.results import newest, peek, result_options, stamped

_T = TypeVar("_T")
_PROGRESS: Final = ":progress"


class ResultIsMissing(KeyError):
    """There is no result of this task: it is not done, or its time is over."""


class DisqueBroker(AsyncBroker):
    """A broker on a cluster of Disque.

    ``url``, ``password``, ``tls``: as :class:`disque_tx.client.aio.Disque` takes them.
    ``queue_name``: for tasks without a label of that name; ``queues``: from which a worker takes,
    that one by default. ``retry_s``, ``ttl_s``, ``replicate``: see :class:`JobTerms`. ``prefetch``:
    most messages that a worker holds and has not acknowledged.

    :raises BadAddress, ValueError: for a setting that cannot be used.
    """

    def __init__(
        self,
        url: str | Iterable[str] = "disque://127.0.0.1:7711",
        password: str | None = None,
        *,
        tls: bool | TLS = False,
        queue_name: str = "taskiq",
        queues: Sequence[str] | None = None,
        retry_s: int = 60,
        ttl_s: int = 10 * 86_400,
        replicate: int | None = None,
        prefetch: int = 100,
    ) -> None:
        super().__init__()
        if prefetch < 1:
            raise ValueError(f"prefetch is at least 1, not {prefetch!r}.")
        self.queue_name = queue_name
        self.queues = tuple(queues or (queue_name,))
        self._terms = JobTerms(retry_s, ttl_s, replicate)
        self._prefetch = prefetch
        self.client = Disque(url, password, tls=tls)
        self._leases = Leases(self.client.servers)
        self._held: dict[str, TakenJob] = {}

    async def shutdown(self) -> None:
        """What is held and not acknowledged goes back to its queue now."""
        held = list(self._held.values())
        self._held.clear()
        self._leases.stop()
        for job in held:
            try:
                await job.nack()
            except ClientError:
                break  # no node answers: these jobs come back after their RETRY
        await self.client.close()
        await super().shutdown()

    async def kick(self, message: BrokerMessage) -> None:
        labels = message.labels
        queue = str(labels.get("queue_name") or self.queue_name)
        delay_s, ttl_s = _number(labels, "delay"), _number(labels, "ttl")
        name = priority_name(queue, int(_number(labels, "priority") or 0))
        options = self._terms.options(delay_s or 0, ttl_s)
        await self.client.add_job_with(name, message.message, options)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        names = [name for queue in self.queues for name in names_by_priority(queue, PRIORITY_MAX)]
        while True:
            room = max(1, self._prefetch - len(self._held))
            jobs = await self.client.take_in_order(*names, count=room)
            self._leases.keep([(job.id, job.address) for job in jobs])
            self._held.update((job.id, job) for job in jobs)
            for job in jobs:
                yield AckableMessage(data=job.data, ack=_Ack(self, job))

    async def acknowledge(self, job: TakenJob) -> None:
        """The message is done."""
        self._leases.release(job.id)
        self._held.pop(job.id, None)
        await job.ack()


class _Ack:
    """Acknowledges one message."""

    def __init__(self, broker: DisqueBroker, job: TakenJob) -> None:
        self._broker = broker
        self._job = job

    async def __call__(self) -> None:
        await self._broker.acknowledge(self._job)


class DisqueResultBackend(AsyncResultBackend[_T]):
    """Results as jobs that nobody fetches: they can be read as often as one likes for their time.

    ``result_ttl_s``: how long they are kept. ``prefix``: of the queues. ``serializer``: pickle by
    default, as with taskiq's other backends. The other arguments are those of
    :class:`DisqueBroker`.
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


def _number(labels: dict[str, Any], name: str) -> float | None:
    """A label as a number.

    :raises ValueError: it is none.
    """
    value = labels.get(name)
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"The label {name} is a number, not {value!r}.") from None
