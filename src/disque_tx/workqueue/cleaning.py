"""Items that nobody works on any more come back to the main queue.

A **light clean** looks at the IDs in processing. A **deep clean** looks at every data key too, and
so finds what programs lose that stop between two of their commands:

1. data is set, and the ID is not pushed yet;
2. the ID is removed from processing, and the data is not deleted yet (the published Python
   package completes in this order);
3. the ID is removed from processing, and not pushed to main yet, by a clean in plain commands; the
   published package notes such IDs in the list ``P:cleaning``.

A program in the midst of these looks just like one that stopped there, so a deep clean waits a
moment before it believes what it found.

Nothing here asks for more than a bounded piece at a time. Reading main from the left misses no ID
that stays in it: new ones are pushed on the left, which moves the others to the right, and are then
read again. What changed since it was read is noticed by the script that returns an item.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from twisted.internet.task import deferLater

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
    """``prefix``: of the work queue. ``lists``: main, processing, cleaning. ``settle_s``: what a
    program may take between two commands before a deep clean takes it for dead."""

    def __init__(self, redis: Redis, prefix: str, lists: Sequence[str], settle_s: float) -> None:
        self._redis = redis
        self._prefix = prefix
        self._lists = lists
        self._settle_s = settle_s

    async def light(self) -> int:
        """Return what stands in processing without a lease; how many items that were."""
        found: Counter[bytes] = Counter()
        async for page in self._pages(self._lists[1]):
            found.update(page)
        # The oldest stand at the right end: taken first, they are found at once and served first.
        abandoned = await self._abandoned(list(reversed(found)))
        abandoned -= await self._in_main(abandoned)
        return await self._give_back({i: -found[i] for i in reversed(found) if i in abandoned})

    async def deep(self) -> int:
        """The same for every item; how many items were returned."""
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
        """Those that are in no list, at two times with a rest between."""
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
        """Those that have data and no lease."""
        found: set[bytes] = set()
        for batch in _batches(ids):
            found.update(await self._redis.run(ABANDONED, self._lists, self._prefix, *batch))
        return found

    async def _in_main(self, ids: set[bytes]) -> set[bytes]:
        """Those that stand in the main queue."""
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
