"""Dramatiq on Disque: a broker, and a backend for results.

    import dramatiq
    from disque_tx.integrations.dramatiq import DisqueBroker

    dramatiq.set_broker(DisqueBroker("disque://node1:7711,node2:7711"))

A delayed message waits in the nodes. A message that a worker has is leased for as long as the
worker lives, and goes to another one after ``retry_s`` when it is killed. See
docs/how-to/use-dramatiq-taskiq-django-q2.md.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from dramatiq import Broker, Consumer, Message, MessageProxy
from dramatiq.common import xq_name
from dramatiq.errors import ConnectionFailed, DecodeError, QueueJoinTimeout, QueueNotFound
from dramatiq.middleware import Middleware
from dramatiq.results import Missing, ResultBackend

from disque_tx.client import CannotConnect, ClientError, ConnectionLost, OutcomeUnknown
from disque_tx.client.blocking import Disque, TakenJob
from disque_tx.client.options import TLS, AddOptions
from disque_tx.client.requests import scans
from disque_tx.integrations.adding import PRIORITY_MAX, JobTerms, names_by_priority, priority_name
from disque_tx.integrations.cluster import ask_all
from disque_tx.integrations.leases import Leases
from disque_tx.integrations.results import Results

_AWAY: Final = (CannotConnect, ConnectionLost, OutcomeUnknown)
_FLUSHED_AT_ONCE: Final = 500
_JOIN_POLL_S: Final = 0.05
#: How long a full consumer waits at most until it looks again.
_ROOM_POLL_S: Final = 1.0


class DisqueBroker(Broker):
    """A broker on a cluster of Disque.

    ``url``: as :class:`disque_tx.client.blocking.Disque` takes addresses; ``password``, ``tls``
    likewise. ``namespace``: of the queues. ``retry_s``, ``ttl_s``, ``replicate``: see
    :class:`JobTerms`. ``max_priority``: the greatest ``broker_priority`` that messages may have, up
    to 9; 0 for none. ``dead_message_ttl_s``: how long a message is kept that could not be done.

    :raises BadAddress, ValueError: for a setting that cannot be used.
    """

    def __init__(
        self,
        url: str | Iterable[str] = "disque://127.0.0.1:7711",
        password: str | None = None,
        *,
        tls: bool | TLS = False,
        middleware: list[Middleware] | None = None,
        namespace: str = "dramatiq",
        retry_s: int = 60,
        ttl_s: int = 10 * 86_400,
        replicate: int | None = None,
        max_priority: int = 0,
        dead_message_ttl_s: int = 7 * 86_400,
    ) -> None:
        super().__init__(middleware)
        if not 0 <= max_priority <= PRIORITY_MAX:
            raise ValueError(f"max_priority is from 0 to {PRIORITY_MAX}, not {max_priority!r}.")
        self.queues: dict[str, None] = {}
        self.namespace = namespace
        self.terms = JobTerms(retry_s, ttl_s, replicate)
        self.max_priority = max_priority
        self._dead_ttl_s = dead_message_ttl_s
        if max_priority:
            self.actor_options |= {"broker_priority"}
        self.client = Disque(url, password, tls=tls)
        self.leases = Leases(self.client.servers)

    def close(self) -> None:
        """Close the connections; they open again when they are needed."""
        self.leases.stop()
        self.client.close()

    # -- queues ------------------------------------------------------------------------------

    def declare_queue(self, queue_name: str) -> None:
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = None
            self.emit_after("declare_queue", queue_name)

    def names(self, queue_name: str) -> list[str]:
        """The queues of Disque for a queue, the most urgent first.

        :raises QueueNotFound: it was not declared.
        """
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        return names_by_priority(self._name(queue_name), self.max_priority)

    def _name(self, queue_name: str) -> str:
        return f"{self.namespace}:{queue_name}"

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Add a message; ``delay``: in milliseconds, rounded up to seconds."""
        if message.queue_name not in self.queues:
            raise QueueNotFound(message.queue_name)
        self.emit_before("enqueue", message, delay)
        priority = min(int(message.options.get("broker_priority") or 0), self.max_priority)
        name = priority_name(self._name(message.queue_name), priority)
        with connection_errors():
            self.client.add_job_with(
                name, message.encode(), self.terms.options((delay or 0) / 1000)
            )
        self.emit_after("enqueue", message, delay)
        return message

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 30_000) -> Consumer:
        return _Consumer(self, queue_name, prefetch, timeout)

    def bury(self, queue_name: str, body: bytes) -> None:
        """Keep a message that could not be done, in the queue for such messages."""
        options = AddOptions(
            replicate=self.terms.replicate, retry_s=self.terms.retry_s, ttl_s=self._dead_ttl_s
        )
        self.client.add_job_with(self._name(xq_name(queue_name)), body, options)

    def flush(self, queue_name: str) -> None:
        """Drop the messages that wait in a queue, delayed ones included."""
        names = self.names(queue_name)
        with connection_errors():
            while jobs := self.client.take(*names, count=_FLUSHED_AT_ONCE, no_hang=True):
                self.client.ack_jobs(*[job.id for job in jobs])
            for name in names:
                for job_id in self._unfinished(name, delayed=True):
                    self.client.ack_jobs(job_id)

    def flush_all(self) -> None:
        for queue_name in self.queues:
            self.flush(queue_name)

    def join(self, queue_name: str, *, timeout: int | None = None) -> None:
        """Wait until all messages of a queue are done; for tests: it looks at all jobs of the
        nodes.

        :raises QueueJoinTimeout: they are not after ``timeout`` milliseconds.
        """
        deadline_s = None if timeout is None else time.monotonic() + timeout / 1000
        names = self.names(queue_name)
        while any(next(self._unfinished(name), None) for name in names):
            if deadline_s is not None and time.monotonic() >= deadline_s:
                raise QueueJoinTimeout(queue_name)
            time.sleep(_JOIN_POLL_S)

    def _unfinished(self, name: str, delayed: bool = False) -> Iterator[str]:
        """The IDs of jobs of a queue that are not done, on all nodes; or of the delayed ones."""
        scan = scans.job_scan(name, ("queued", "active"), 1000)
        cursor = 0
        while True:
            with connection_errors():
                pages = ask_all(self.client, scan.page(cursor))
            for _, jobs in pages:
                for job in jobs:
                    if not delayed or (job.state == "active" and job.delay_s):
                        yield job.id
            # Pages of several nodes have cursors of their own; small queues have one page.
            if len(pages) != 1 or not pages[0][0]:
                return
            cursor = pages[0][0]


class _Consumer(Consumer):
    """Fetches for one consumer thread; ``timeout`` in milliseconds."""

    def __init__(self, broker: DisqueBroker, queue_name: str, prefetch: int, timeout: int) -> None:
        self._broker = broker
        self._queue_name = queue_name
        self._names = broker.names(queue_name)
        self._prefetch = max(1, prefetch)
        self._wait_s = timeout / 1000
        self._ready: deque[TakenJob] = deque()
        self._held: dict[str, TakenJob] = {}
        self._room = threading.Event()

    def __next__(self) -> MessageProxy | None:
        while True:
            job = self._ready.popleft() if self._ready else self._fetched()
            if job is None:
                return None
            try:
                message: Message[Any] = Message.decode(job.data)
            except DecodeError as error:
                self._broker.logger.error(
                    "Job %s is no message, and was moved to the dead messages: %s", job.id, error
                )
                with connection_errors():
                    self._end(job)
                    self._broker.bury(self._queue_name, job.data)
                    job.ack()
                continue
            return _Proxy(message, job)

    def _fetched(self) -> TakenJob | None:
        room = self._prefetch - len(self._held)
        if room <= 0:
            # Messages are acknowledged by the threads of the worker.
            self._room.wait(min(self._wait_s, _ROOM_POLL_S))
            self._room.clear()
            return None
        with connection_errors():
            jobs = self._broker.client.take_in_order(
                *self._names, count=room, timeout_s=self._wait_s
            )
        self._broker.leases.keep([(job.id, job.address) for job in jobs])
        for job in jobs:
            self._held[job.id] = job
        self._ready.extend(jobs)
        return self._ready.popleft() if self._ready else None

    def _end(self, job: TakenJob) -> None:
        self._broker.leases.release(job.id)
        self._held.pop(job.id, None)
        self._room.set()

    @contextmanager
    def _ending(self, job: TakenJob) -> Iterator[None]:
        """The end of a job. While the cluster is away dramatiq tries again, and the job stays held;
        of one that a node refuses there is no other attempt, and it comes back after its RETRY."""
        try:
            with connection_errors():
                yield
        except ConnectionFailed:
            raise
        except ClientError:
            self._end(job)
            raise
        self._end(job)

    def ack(self, message: MessageProxy) -> None:
        job = _job(message)
        with self._ending(job):
            job.ack()

    def nack(self, message: MessageProxy) -> None:
        """The message could not be done: it is kept apart, and then acknowledged."""
        job = _job(message)
        with self._ending(job):
            # In this order: after a crash in between there are two of it, and not none.
            self._broker.bury(self._queue_name, job.data)
            job.ack()

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        for message in messages:
            self._give_back(_job(message))

    def close(self) -> None:
        """What was fetched and not begun goes back to its queue now."""
        while self._ready:
            self._give_back(self._ready.popleft())

    def _give_back(self, job: TakenJob) -> None:
        self._broker.leases.withdraw(job.id)
        self._end(job)
        try:
            job.nack()
        except ClientError as error:
            self._broker.logger.info("Job %s comes back after its RETRY: %s", job.id, error)


class _Proxy(MessageProxy):
    """A message with its job."""

    def __init__(self, message: Message[Any], job: TakenJob) -> None:
        super().__init__(message)
        self.job = job


def _job(message: MessageProxy) -> TakenJob:
    job: TakenJob = message.job
    return job


class DisqueBackend(ResultBackend):
    """Results as jobs that nobody fetches: they can be read as often as one likes for their time.

    The arguments are those of :class:`DisqueBroker`, and of dramatiq's ``ResultBackend``.
    """

    def __init__(
        self,
        url: str | Iterable[str] = "disque://127.0.0.1:7711",
        password: str | None = None,
        *,
        tls: bool | TLS = False,
        replicate: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._results = Results(Disque(url, password, tls=tls), "", replicate)

    def _get(self, message_key: str) -> Any:
        value = self._results.get(f"{self.namespace}:{message_key}")
        return Missing if value is None else self.encoder.decode(value)

    def _store(self, message_key: str, result: Any, ttl: int) -> None:
        key = f"{self.namespace}:{message_key}"
        self._results.put(key, self.encoder.encode(result), -(-ttl // 1000))


@contextmanager
def connection_errors() -> Iterator[None]:
    """Errors of the cluster that is away as dramatiq's own, which its worker survives."""
    try:
        yield
    except _AWAY as error:
        raise ConnectionFailed(str(error)) from error
