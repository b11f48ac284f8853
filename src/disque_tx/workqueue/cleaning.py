"""Returns items that nobody works on any more to the main queue.

A **light clean** checks the IDs in processing. A **deep clean** checks every data key too, and so
finds items of programs that stopped between two of their commands:

1. data is set, and the ID is not pushed yet;
2. the ID is removed from processing, and the data is not deleted yet (the published Python
   package completes in this order);
3. the ID is removed from processing, and not pushed to main yet, by a clean in plain commands; the
   published package notes such IDs in the list ``P:cleaning``.

A program that is still between two such commands looks the same, so a deep clean waits a moment and
checks again.

Everything is read in pieces of limited size. Reading main from the left misses no ID that stays in
it: new ones are pushed on the left, which moves the others to the right, where they are read again.
The script that returns an item checks whether it has changed since it was read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger

from disque_tx.errors import DisqueError
from disque_tx.workqueue.deferreds import deferred
from disque_tx.workqueue.redis import Redis
from disque_tx.workqueue.scripts import ABANDONED, RETURN

#: IDs in one reply.
_PAGE: Final = 1000
#: IDs in one script.
_BATCH: Final = 100
#: Candidates of a deep clean that are held in memory at a time.
_ROUND: Final = 100_000
_GLOB: Final = re.compile(rb"([\\*?\[\]^])")


class Cleaner:
    """Cleans one work queue. ``prefix``: of its keys. ``lists``: main, processing, cleaning.
    ``settle_s``: how long a program may take between two commands before a deep clean considers it
    dead."""

    def __init__(self, redis: Redis, prefix: str, lists: Sequence[str], settle_s: float) -> None:
        self._redis = redis
        self._prefix = prefix
        self._lists = lists
        self._settle_s = settle_s

    async def light(self) -> int:
        """Return items in processing that have no lease. Returns how many there were."""
        found: Counter[bytes] = Counter()
        async for page in self._pages(self._lists[1]):
            found.update(page)
        # The oldest are at the right end: they are found fastest there, and are returned first.
        abandoned = await self._abandoned(list(reversed(found)))
        abandoned -= await self._in_main(abandoned)
        return await self._give_back({i: -found[i] for i in reversed(found) if i in abandoned})

    async def deep(self) -> int:
        """Return abandoned items, found by scanning all items. Returns their number."""
        returned = await self.light()
        cursor, first = b"0", True
        while first or cursor != b"0":
            first = False
            lost: set[bytes] = set()
            while len(lost) < _ROUND:
                cursor, ids = await self._scan(cursor)
                lost |= await self._abandoned(ids)
                if cursor == b"0":
                    break
            returned += await self._give_back(dict.fromkeys(await self._confirmed(lost), 0))
        return returned

    async def _confirmed(self, lost: set[bytes]) -> list[bytes]:
        """Lost items that are not in the main queue at two checks, ``settle_s`` seconds apart."""
        lost = lost - await self._in_main(lost)
        if lost and self._settle_s:
            await deferLater(self._redis.reactor, self._settle_s)
            lost -= await self._in_main(lost)
        return sorted(lost)

    async def _scan(self, cursor: bytes) -> tuple[bytes, list[bytes]]:
        """The next cursor, and IDs of some items."""
        start = f"{self._prefix}:item:".encode()
        pattern = _GLOB.sub(rb"\\\1", start) + b"*"
        cursor, keys = await self._redis.execute("SCAN", cursor, "MATCH", pattern, "COUNT", _PAGE)
        return cursor, [key[len(start) :] for key in keys]

    async def _abandoned(self, ids: Sequence[bytes]) -> set[bytes]:
        """Items that have data and no lease."""
        found: set[bytes] = set()
        for batch in _batches(ids):
            found.update(await self._redis.run(ABANDONED, self._lists, self._prefix, *batch))
        return found

    async def _in_main(self, ids: set[bytes]) -> set[bytes]:
        """Items that are in the main queue."""
        seen: set[bytes] = set()
        if ids:
            async for page in self._pages(self._lists[0]):
                seen.update(ids.intersection(page))
        return seen

    async def _pages(self, key: str) -> Any:
        """A list, from the left."""
        start = 0
        while page := await self._redis.execute("LRANGE", key, start, start + _PAGE - 1):
            yield page
            start += _PAGE

    async def _give_back(self, counts: dict[bytes, int]) -> int:
        returned = 0
        for batch in _batches(counts):
            words = [word for i in batch for word in (i, counts[i])]
            returned += await self._redis.run(RETURN, self._lists, self._prefix, *words)
        return returned


def _batches(ids: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(ids)
    while batch := list(islice(rest, _BATCH)):
        yield batch


class Cleanable(Protocol):
    """What a cleaning service needs of a work queue."""

    def light_clean(self) -> Awaitable[int]:
        """Return items whose lease has expired."""
        ...

    def deep_clean(self) -> Awaitable[int]:
        """Return all lost items."""
        ...


class CleaningService(Service):
    """Cleans work queues lightly, every ``every_s``, and deeply, every ``deep_every_s``.

    Runs never overlap: one that takes longer than ``every_s`` skips a turn. An error of a queue's
    server is logged, and the queue is cleaned again in the next turn. ``clock``: the reactor.

    :raises ValueError: when a time is not positive.
    """

    _log = Logger()

    def __init__(
        self,
        queues: Sequence[Cleanable],
        every_s: float,
        deep_every_s: float | None = None,
        *,
        clock: Any,
    ) -> None:
        if not every_s > 0 or (deep_every_s is not None and not deep_every_s > 0):
            raise ValueError("The time between two cleans is not positive. Give it in seconds.")
        self._queues = queues
        self._every_s = every_s
        self._deep_every_s = deep_every_s
        self._clock = clock
        self._next_deep_s = 0.0
        self._loop = LoopingCall(self._turn)
        self._loop.clock = clock
        self._ended: Deferred[Any] | None = None

    def startService(self) -> None:
        """Clean now, and then every ``every_s``; deeply at first after ``deep_every_s``."""
        super().startService()  # type: ignore[no-untyped-call]
        self._next_deep_s = self._clock.seconds() + (self._deep_every_s or 0.0)
        self._ended = self._loop.start(self._every_s)

    def stopService(self) -> Deferred[Any] | None:
        """Start no more cleans; fires when the current one has ended."""
        super().stopService()  # type: ignore[no-untyped-call]
        if self._loop.running:
            self._loop.stop()
        return self._ended

    @deferred
    async def _turn(self) -> None:
        deep = self._deep_every_s is not None and self._clock.seconds() >= self._next_deep_s
        if deep:
            self._next_deep_s = self._clock.seconds() + (self._deep_every_s or 0.0)
        for queue in self._queues:
            if self.running:
                await self._clean(queue, deep)

    async def _clean(self, queue: Cleanable, deep: bool) -> None:
        try:
            returned = await (queue.deep_clean() if deep else queue.light_clean())
        except DisqueError as error:
            self._log.warn("Cleaning {queue} failed: {error}", queue=queue, error=error)
        except Exception:
            self._log.failure("Cleaning {queue} failed", queue=queue)
        else:
            if returned:
                self._log.info("{queue}: {n} items returned", queue=queue, n=returned)
