"""A channel of kombu on Disque.

A message that was delivered is leased: it is not delivered to others while this process lives, and
comes back after RETRY when it dies. So nothing has to be restored, and no time-out has to be longer
than the longest task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from queue import Empty
from typing import Any, Final

from kombu.transport import virtual

from disque_tx.client import ClientError
from disque_tx.client.blocking import TakenJob
from disque_tx.integrations.celery.bindings import Binding, matches
from disque_tx.integrations.celery.broker import Broker
from disque_tx.integrations.celery.fetcher import MessageFetcher, give_back
from disque_tx.integrations.celery.messages import DamagedMessage, decoded, original

#: Arguments of a queue's declaration by which it ends with whoever uses it.
_PASSING: Final = "x-expires"


class DisqueChannel(virtual.Channel):
    """See :mod:`kombu.transport.virtual`, whose names these are."""

    do_restore = False
    supports_fanout = True

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self.broker: Broker = connection.broker
        self._ready: deque[TakenJob] = deque()
        self._error: ClientError | None = None
        self._taken: dict[str, TakenJob] = {}
        self._unacknowledged: set[str] = set()
        self._passing: set[str] = set()
        self._fetcher = MessageFetcher(self.broker.client, self._arrived)

    # -- queues and exchanges ----------------------------------------------------------------

    def _new_queue(self, queue: str, **kwargs: Any) -> None:
        arguments: Mapping[str, Any] = kwargs.get("arguments") or {}
        if kwargs.get("auto_delete") or kwargs.get("exclusive") or _PASSING in arguments:
            self._passing.add(queue)
        self.broker.declare(queue, arguments)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str | None, queue: str) -> None:
        if exchange:
            binding = (routing_key or "", pattern, queue)
            self.broker.bindings.add(exchange, binding, queue not in self._passing)

    def queue_unbind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Any = None,
        **kwargs: Any,
    ) -> None:
        super().queue_unbind(queue, exchange, routing_key, arguments, **kwargs)
        if exchange:
            self._unbind(exchange, queue, routing_key)

    def _unbind(self, exchange: str, queue: str, routing_key: str | None = None) -> None:
        """Unbind a queue, for this program as well: kombu keeps what was bound here."""
        local = self.state.exchanges.get(exchange, {}).get("table", [])
        local[:] = [binding for binding in local if not matches(binding, queue, routing_key)]
        self.broker.bindings.remove(exchange, queue, routing_key)

    def get_table(self, exchange: str) -> list[Binding]:
        local = self.state.exchanges.get(exchange, {}).get("table", ())
        return list({*map(tuple, local), *self.broker.bindings.table(exchange)})

    def _lookup(self, exchange: str, routing_key: str, default: str | None = None) -> Any:
        if exchange and not self._bound(exchange, routing_key):
            self.broker.bindings.table(exchange, fresh=True)
        return super()._lookup(exchange, routing_key, default)

    def _bound(self, exchange: str, routing_key: str) -> bool:
        lookup = self.typeof(exchange).lookup
        return bool(lookup(self.get_table(exchange), exchange, routing_key, None))

    def _put(self, queue: str, message: Mapping[str, Any], **kwargs: Any) -> None:
        self.broker.put(queue, message)

    def _put_fanout(
        self, exchange: str, message: Mapping[str, Any], routing_key: str, **kwargs: Any
    ) -> None:
        for queue in {queue for _, _, queue in self.broker.bindings.table(exchange, fresh=True)}:
            self.broker.put(queue, message)

    def _size(self, queue: str) -> int:
        return self.broker.size(queue)

    def _purge(self, queue: str) -> int:
        return self.broker.purge(queue)

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        exchange = args[0] if args else None
        if exchange:
            self._unbind(exchange, queue)
        self.broker.purge(queue)
        self._passing.discard(queue)

    # -- delivery ----------------------------------------------------------------------------

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **kwargs: Any
    ) -> None:
        super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)
        if no_ack:
            self._unacknowledged.add(queue)
        else:
            self._unacknowledged.discard(queue)
        self._fetch_anew()

    def basic_cancel(self, consumer_tag: str) -> None:
        super().basic_cancel(consumer_tag)
        self._fetch_anew()

    def _fetch_anew(self) -> None:
        """The queues are others now: a fetch from those of before would go on until it found
        something, and what it finds may not be wanted any more."""
        if not self._fetcher.idle:
            self._fetcher.abandon()
            self._fetcher = MessageFetcher(self.broker.client, self._arrived)

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        while (job := self.broker.take(queue)) is not None:
            message = self._received(job)
            if message is not None:
                return message
        raise Empty

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        message = super().basic_get(queue, no_ack, **kwargs)
        if message is not None and no_ack:
            self._end(message.delivery_tag, TakenJob.ack)
        return message

    def fetch(self) -> None:
        """Have more messages fetched, if the consumers of this channel take more."""
        if self.closed or not self._consumers or not self._fetcher.idle:
            return
        if not self.qos.can_consume():
            return
        room = self.qos.can_consume_max_estimate()
        most = self.broker.options.prefetch
        count = (most if room is None else min(room, most)) - len(self._ready)
        self._fetcher.want([name for queue in self._in_turn() for name in queue], count)

    def _in_turn(self) -> Iterator[list[str]]:
        """The queues that are consumed from, another one first each time."""
        queues = list(dict.fromkeys(self._active_queues))
        self._turn = (self._turn + 1) % len(queues)
        return (self.broker.names(queue) for queue in queues[self._turn :] + queues[: self._turn])

    _turn = 0

    def _arrived(self, found: list[TakenJob] | ClientError) -> None:
        """Called by the fetcher's thread."""
        if isinstance(found, ClientError):
            self._error = found
        else:
            self.broker.leases.keep([(job.id, job.address) for job in found])
            self._ready.extend(found)
        transport = self.connection
        if transport is not None:
            transport.wake()

    def deliver(self) -> int:
        """Give what was fetched to the consumers; returns how many messages.

        :raises ClientError: the error that ended the last fetch.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error
        count = 0
        while self._ready and not self.closed:
            job = self._ready.popleft()
            queue = original(job.queue, self.broker.options)
            if queue not in self.connection._callbacks:
                self.broker.leases.withdraw(job.id)
                give_back(self.broker.client, [job])
                continue
            message = self._received(job)
            if message is None:
                continue
            if queue in self._unacknowledged:
                self._end(job.id, TakenJob.ack)
            count += 1
            self.connection._deliver(message, queue)
        return count

    def _received(self, job: TakenJob) -> dict[str, Any] | None:
        """The message of a job, which is held from now on; ``None`` if it is none."""
        try:
            message = decoded(job.data)
        except DamagedMessage as error:
            self._release(job)
            self.broker.bury(job, str(error))
            return None
        message["properties"]["delivery_tag"] = job.id
        if job.job.nacks or job.job.additional_deliveries:
            message["redelivered"] = True
            message["properties"]["delivery_info"]["redelivered"] = True
        self._taken[job.id] = job
        if not self.broker.leases.holds(job.id):
            self.broker.leases.keep([(job.id, job.address)])
        return message

    # -- the end of a message ----------------------------------------------------------------

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        tags = [delivery_tag]
        if multiple:
            delivered = list(self._taken)
            tags = delivered[: delivered.index(delivery_tag) + 1]
        for tag in tags:
            self._end(tag, TakenJob.ack)
            super().basic_ack(tag)

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if requeue:
            self.broker.leases.withdraw(delivery_tag)
        self._end(delivery_tag, TakenJob.nack if requeue else TakenJob.ack)
        self.qos.ack(delivery_tag)

    def basic_recover(self, requeue: bool = False) -> None:
        if not requeue:
            raise NotImplementedError("Messages can be recovered by requeueing them only.")
        for tag in list(self._taken):
            self.basic_reject(tag, requeue=True)

    def _end(self, tag: str, end: Any) -> None:
        job = self._taken.pop(tag, None)
        if job is not None:
            self._release(job)
            end(job)

    def _release(self, job: TakenJob) -> None:
        self.broker.leases.release(job.id)

    def close(self) -> None:
        """What was fetched and is not acknowledged goes back to its queue now."""
        if self.closed:
            return
        self._fetcher.close()
        held = [*self._ready, *self._taken.values()]
        self._ready.clear()
        self._taken.clear()
        for job in held:
            self.broker.leases.withdraw(job.id)
        give_back(self.broker.client, held)
        super().close()
