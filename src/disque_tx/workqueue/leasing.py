"""Waiting for an item to lease, without losing one when the wait is cancelled."""

from __future__ import annotations

from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from disque_tx.workqueue.connection import RedisConnection
from disque_tx.workqueue.items import Item
from disque_tx.workqueue.redis import SLICE_S, Redis

#: How long after the server's own timeout the reply to a blocking command may arrive.
_GRACE_S = 10.0


class LeasingQueue(Protocol):
    """The steps of a lease, which the queue executes."""

    def take(self, expiry_ms: int) -> Deferred[Item | None]:
        """Lease an item that waits already."""
        ...

    def claim(self, item_id: bytes, expiry_ms: int) -> Deferred[Item | None]:
        """Lease an item that was just moved to processing."""
        ...

    def give_back(self, item: Item) -> Deferred[bool]:
        """Release an item for other workers."""
        ...


class LeaseRequest:
    """One call of ``lease``. ``lists``: main and processing. ``wait_s``: how long to wait for an
    item, infinity forever.

    An item that waits already is leased in one step. Waiting for one takes two steps, because Redis
    cannot wait inside a script: the ID is moved to processing, then the lease is set. A crash
    between the two leaves an ID in processing without a lease, which the next light clean
    returns.
    """

    def __init__(
        self,
        redis: Redis,
        queue: LeasingQueue,
        lists: tuple[str, str],
        expiry_ms: int,
        wait_s: float,
    ) -> None:
        self._redis = redis
        self._queue = queue
        self._lists = lists
        self._expiry_ms = expiry_ms
        self._deadline_s = redis.reactor.seconds() + wait_s
        self._cancelled = False
        self._waiting: tuple[RedisConnection, Deferred[Any]] | None = None
        self._running: Deferred[Any] = Deferred()
        self.result: Deferred[Item | None] = Deferred(self._cancel)

    def start(self) -> Deferred[Item | None]:
        """Start. When the Deferred is cancelled, an item that arrives later is given back."""
        self._running = Deferred.fromCoroutine(self._run())
        self._running.addCallbacks(self._arrived, self._failed)
        return self.result

    def _cancel(self, _result: object) -> None:
        self._cancelled = True
        self._redis.finish(self._running)
        if self._waiting is not None:
            self._redis.finish(self._redis.unblock(*self._waiting))

    def _arrived(self, item: Item | None) -> object:
        if not self._cancelled:
            self.result.callback(item)
        elif item is not None:
            return self._queue.give_back(item)
        return None

    def _failed(self, failure: Failure) -> Failure | None:
        if self._cancelled:
            return failure
        self.result.errback(failure)
        return None

    async def _run(self) -> Item | None:
        item = await self._queue.take(self._expiry_ms)
        while item is None and not self._cancelled:
            left_s = self._deadline_s - self._redis.reactor.seconds()
            if left_s <= 0:
                return None
            moved = await self._wait(min(left_s, SLICE_S))
            if moved is not None:
                item = await self._queue.claim(moved, self._expiry_ms)
        return item

    async def _wait(self, wait_s: float) -> bytes | None:
        """The ID that was moved to processing, or ``None``."""
        connection = await self._redis.blocking_connection()
        if self._cancelled:
            self._redis.put_back(connection)
            return None
        words = ("BRPOPLPUSH", *self._lists, max(round(wait_s, 3), 0.001))
        reply = Deferred.fromCoroutine(connection.execute(wait_s + _GRACE_S, *words))
        self._waiting = (connection, reply)
        try:
            moved: bytes | None = await reply
        finally:
            self._waiting = None
            self._redis.put_back(connection)
        return moved
