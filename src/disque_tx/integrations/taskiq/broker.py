"""taskiq's broker on Disque: messages as jobs, leased for as long as the worker lives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, Final

from taskiq import AckableMessage, AsyncBroker, BrokerMessage

from disque_tx.client import ClientError
from disque_tx.client.aio import Disque, TakenJob
from disque_tx.client.options import TLS, AddOptions
from disque_tx.integrations.adding import PRIORITY_MAX, JobTerms, names_by_priority, priority_name
from disque_tx.integrations.leases import Leases

#: What the body of a job of a schedule begins with. All of them have the same body, so the task
#: gets the ID of its job.
SCHEDULED: Final = b"disque-schedule:"


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
        name, options = self.placed(message.labels)
        await self.client.add_job_with(name, message.message, options)

    def placed(self, labels: dict[str, Any], delay_s: float = 0) -> tuple[str, AddOptions]:
        """The queue for a message with these labels, and how it is added, after ``delay_s`` or the
        delay that they name.

        :raises ValueError: a label is not a number.
        """
        queue = str(labels.get("queue_name") or self.queue_name)
        labelled_s, ttl_s = _number(labels, "delay"), _number(labels, "ttl")
        name = priority_name(queue, int(_number(labels, "priority") or 0))
        return name, self._terms.options(delay_s or labelled_s or 0, ttl_s)

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        names = [name for queue in self.queues for name in names_by_priority(queue, PRIORITY_MAX)]
        while True:
            room = max(1, self._prefetch - len(self._held))
            jobs = await self.client.take_in_order(*names, count=room)
            self._leases.keep([(job.id, job.address) for job in jobs])
            self._held.update((job.id, job) for job in jobs)
            for job in jobs:
                yield AckableMessage(data=self._message(job), ack=_Ack(self, job))

    def _message(self, job: TakenJob) -> bytes:
        if not job.data.startswith(SCHEDULED):
            return job.data
        message = self.formatter.loads(job.data[len(SCHEDULED) :])
        message.task_id = job.id
        return self.formatter.dumps(message).message

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


def _number(labels: dict[str, Any], name: str) -> float | None:
    """A label as a number.

    :raises ValueError: it is none.
    """
    value = labels.get(name)
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"The label {name} is a number, not {value!r}.") from None
