"""The work queue on Redis: the same keys and guarantees as its other implementations."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred

from disque_tx.workqueue import scripts
from disque_tx.workqueue.cleaning import Cleaner
from disque_tx.workqueue.deferreds import deferred, gather_all
from disque_tx.workqueue.items import Counts, Item, KeyPrefix
from disque_tx.workqueue.leasing import LeaseRequest
from disque_tx.workqueue.redis import Redis

if TYPE_CHECKING:
    from disque_tx.client import DisqueClient
    from disque_tx.workqueue.disque import DisqueWorkQueue

#: How many scripts are sent without waiting for replies when many items are added.
_PIPELINED: Final = 500


class WorkQueue:
    """A work queue named by a key prefix. One object is one session: its leases are its own.

    Methods return Deferreds. Each is one atomic step in Redis, so a crash of any program leaves it
    done or not done. The exceptions are a lease that waits, and a clean, which is many such steps;
    their docstrings say what a crash leaves. After :class:`RedisLost` with ``sent`` it is not known
    whether the step was done.

    Every method raises :class:`RedisLost` when the server cannot be reached or does not answer,
    :class:`WrongKeyType` when a key holds something else, and :class:`RedisRefused` for any other
    error reply.

    All keys of a queue belong on one server: with Redis Cluster, put the prefix in braces.

    ``settle_s``: how long other programs may take between two commands of one operation before
    a deep clean considers them dead.
    """

    def __init__(self, prefix: KeyPrefix | str, redis: Redis, settle_s: float = 1.0) -> None:
        self.prefix = prefix if isinstance(prefix, KeyPrefix) else KeyPrefix(prefix)
        self.session = uuid.uuid4().hex
        self._redis = redis
        self._lists = tuple(self.prefix.of(name) for name in (":queue", ":processing", ":cleaning"))
        self._cleaner = Cleaner(redis, self.prefix.prefix, self._lists, settle_s)

    def __repr__(self) -> str:
        return f"<WorkQueue {self.prefix.prefix!r} on {self._redis.address}>"

    @classmethod
    def connect(
        cls, prefix: KeyPrefix | str, url: str, reactor: Any, password: str | None = None
    ) -> WorkQueue:
        """A queue with connections of its own; several queues share a :class:`Redis` instead.

        :raises BadRedisUrl: when the URL is not valid.
        """
        return cls(prefix, Redis.at(url, reactor, password=password))

    @staticmethod
    def on_disque(client: DisqueClient, name: str, retry_s: int = 300) -> DisqueWorkQueue:
        """The work queue on a queue of Disque; see :class:`DisqueWorkQueue`."""
        from disque_tx.workqueue.disque import DisqueWorkQueue

        return DisqueWorkQueue(client, name, retry_s)

    def close(self) -> Deferred[None]:
        """Close the connections."""
        return self._redis.close()

    # -- adding ------------------------------------------------------------------------------

    @deferred
    async def add_item(self, item: Item) -> bool:
        """Add it unless an item of this ID is incomplete; returns whether it was added."""
        return bool(await self.run(scripts.ADD, item.id, item.data, 0))

    @deferred
    async def add_unique_item(self, item: Item) -> None:
        """Add an item whose ID is new, without checking that.

        If it is not new, the data is replaced, and the ID is in the queue twice: the queue's length
        is then wrong, and leases take more steps.
        """
        await self.run(scripts.ADD, item.id, item.data, 1)

    @deferred
    async def add_items(self, items: Iterable[Item]) -> list[bool]:
        """Like :meth:`add_item` for many, without waiting for each. Returns which were added.

        After an error some are added and some not; repeating it does no harm.
        """
        rest, added = iter(items), list[bool]()
        while batch := [self.add_item(item) for item in islice(rest, _PIPELINED)]:
            added += await gather_all(batch)
        return added

    def add_unique_item_to(self, transaction: Any, item: Item) -> Deferred[None]:
        """Add the commands of :meth:`add_unique_item` to a transaction or a pipeline of
        txredisapi. The data goes first, so that nobody finds an ID without data.

        The Deferred fires when the commands are part of the transaction, or the pipeline was
        executed.
        """
        replies: list[Deferred[Any]] = [
            transaction.set(self.prefix.of(f":item:{item.id}"), item.data),
            transaction.lpush(self._lists[0], item.id),
        ]
        return gather_all(replies).addCallback(lambda _: None)

    # -- working -----------------------------------------------------------------------------

    def lease(
        self, expiry_s: float, block: bool = True, timeout_s: float = 0.0
    ) -> Deferred[Item | None]:
        """Get an item to work on, which nobody else gets for ``expiry_s``.

        ``block``: wait for one, forever with ``timeout_s`` 0. Returns ``None`` when none came.
        Cancelling the Deferred ends the wait; an item that arrives later is given back.

        An item that waits already is leased in one step. Waiting for one takes two: a crash
        between them leaves the item to the next light clean. IDs without data are removed.

        :raises ValueError: when a time is negative, not finite, or the lease under 1 ms.
        """
        if not (math.isfinite(timeout_s) and timeout_s >= 0):
            raise ValueError(f"timeout_s is {timeout_s}. Give seconds, or 0 to wait forever.")
        wait_s = (timeout_s or math.inf) if block else 0.0
        lists = (self._lists[0], self._lists[1])
        return LeaseRequest(self._redis, self, lists, _milliseconds(expiry_s), wait_s).start()

    @deferred
    async def complete(self, item: Item) -> bool:
        """The work is done: nobody gets the item any more. Returns ``True`` for the one caller
        that completed it, whoever holds the lease.

        Other implementations use other commands. When one of them, with a lease of the same item,
        completes it at the same moment, both get ``True``.
        """
        return bool(await self.run(scripts.COMPLETE, item.id))

    @deferred
    async def extend_lease(self, item: Item, expiry_s: float) -> bool:
        """The work takes longer: the lease ends ``expiry_s`` from now. Returns ``False``, and
        changes nothing, when it has expired: then another worker may have the item.

        :raises ValueError: when the time is not finite, or under 1 ms.
        """
        milliseconds = _milliseconds(expiry_s)
        return bool(await self.run(scripts.EXTEND, item.id, self.session, milliseconds))

    @deferred
    async def give_back(self, item: Item) -> bool:
        """Release the item for other workers, as the next one in the queue. Returns whether it was
        given back; it is not when it was completed, or its lease has expired and somebody else has
        leased or cleaned it."""
        return bool(await self.run(scripts.GIVE_BACK, item.id, self.session))

    @deferred
    async def lease_exists(self, item_id: str) -> bool:
        """Whether somebody holds a lease of this item."""
        return bool(await self.run(scripts.LEASED, item_id))

    @deferred
    async def take(self, expiry_ms: int, *note: str) -> Item | None:
        """Lease an item that waits already; the first step of :meth:`lease`. ``note``: a hash in
        which the script records the lease, for a move."""
        found: Any = 0
        while found == 0:
            tries = scripts.DROPS_MAX
            found = await self.run(scripts.LEASE, self.session, expiry_ms, tries, *note)
        return None if found is None else Item(_text(found[0]), found[1])

    @deferred
    async def claim(self, item_id: bytes, expiry_ms: int) -> Item | None:
        """Lease an item that was moved to processing; the step of :meth:`lease` after a wait."""
        data = await self.run(scripts.CLAIM, item_id, self.session, expiry_ms)
        return None if data is None else Item(_text(item_id), data)

    # -- counting and cleaning ---------------------------------------------------------------

    @deferred
    async def queue_len(self) -> int:
        """How many IDs wait."""
        return int(await self._redis.execute("LLEN", self._lists[0]))

    @deferred
    async def processing(self) -> int:
        """How many IDs are being worked on, or have an expired lease and are not returned yet."""
        return int(await self._redis.execute("LLEN", self._lists[1]))

    @deferred
    async def counts(self) -> Counts:
        """The lengths of both lists at one moment, in one round trip."""
        return Counts(*await self.run(scripts.COUNTS))

    @deferred
    async def light_clean(self) -> int:
        """Move items whose lease has expired back to the queue. Returns how many. Run it about as
        often as the shortest lease expires.

        A clean that is stopped half-way, or that runs twice at the same time, does no harm.
        """
        return await self._cleaner.light()

    @deferred
    async def deep_clean(self) -> int:
        """Return all abandoned items, including those that are in no list any more.
        Returns how many. Reads all keys of the database, in small pieces. Run it now and then: it
        finds the items of programs that stopped between two commands.
        """
        return await self._cleaner.deep()

    def run(self, script: scripts.Script, *words: str | bytes | int | float) -> Deferred[Any]:
        """Execute a script on this queue's keys."""
        encoded = (_bytes(word) if isinstance(word, str) else word for word in words)
        return self._redis.run(script, self._lists, _bytes(self.prefix.prefix), *encoded)


def _milliseconds(expiry_s: float) -> int:
    """A lease in milliseconds. Redis adds it to the time of day and stores the sum in 64 bits."""
    if not 0.001 <= expiry_s < 1e12:
        raise ValueError(f"expiry_s is {expiry_s}. Give seconds, at least 0.001.")
    return int(expiry_s * 1000)


def _text(item_id: bytes) -> str:
    """An ID as text. IDs of other programs need not be UTF-8."""
    return item_id.decode(errors="surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
