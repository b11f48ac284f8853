"""The atomic steps of the Redis work queue, executed in every possible order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import redis
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue.scripts import ABANDONED, LEASE, RETURN, Script
from tests.acceptance.redisserver import RedisServer

_LISTS: Final = ("P:queue", "P:processing", "P:cleaning")
_LEASE_MS: Final = 600_000
_ID: Final = b"item"


def orders(left: tuple[int, ...]) -> Iterator[list[int]]:
    """Every order in which actors can run their steps; ``left``: the number of steps of each."""
    if not any(left):
        yield []
    for actor, steps in enumerate(left):
        if steps:
            rest = (*left[:actor], steps - 1, *left[actor + 1 :])
            for order in orders(rest):
                yield [actor, *order]


class Steps:
    """One item whose worker died, and the steps that lease or return it. ``holders``: the sessions
    with a lease; no lease expires."""

    def __init__(self, server: redis.Redis) -> None:
        self.server = server
        self.holders: list[str] = []

    def run(self, script: Script, *words: Any) -> Any:
        """Run one step in Lua."""
        return self.server.eval(script.source, 3, *_LISTS, "P", *words)

    def begin(self) -> None:
        """Put the item into the list of processed ones, without a lease."""
        self.holders = []
        self.server.flushall()
        self.server.set(b"P:item:" + _ID, b"data")
        self.server.lpush("P:processing", _ID)

    def lease(self, session: str) -> None:
        """Lease with a worker of this package."""
        if self.run(LEASE, session, _LEASE_MS, 10):
            self.holders.append(session)

    def lease_theirs(self, session: str) -> None:
        """Lease with a worker of the published package; no clean is fast enough to run between its
        commands."""
        found = self.server.rpoplpush("P:queue", "P:processing")
        if isinstance(found, bytes):
            self.server.set(b"P:lease:" + found, session, px=_LEASE_MS)
            self.server.set(b"P:leased_by_session:" + found, session, px=_LEASE_MS)
            self.holders.append(session)

    def cleaner(self, count: int) -> list[Callable[[], None]]:
        """The two steps of a cleaner: find abandoned items, and return what it found. ``count`` 0:
        as if the item was found in no list."""
        found: list[bytes] = []

        def look() -> None:
            found.extend(self.run(ABANDONED, *self.server.lrange("P:processing", 0, -1)))

        def give_back() -> None:
            if found:
                self.run(RETURN, found[0], count)

        return [look, give_back]


class StepTests(SynchronousTestCase):
    """Two cleaners and three workers."""

    def setUp(self) -> None:
        folder = Path(self.mktemp()).resolve()
        folder.mkdir(parents=True)
        server = RedisServer(folder)
        self.addCleanup(server.stop)
        server.start()
        self.redis = redis.Redis(port=server.port)
        self.addCleanup(self.redis.close)

    def test_one_holder(self) -> None:
        """An item is never leased by two workers at once, in whatever order cleaners and workers
        run."""
        steps = Steps(self.redis)
        for count in (-1, 0):
            for order in orders((2, 2, 1, 1, 1)):
                steps.begin()
                actors: list[list[Callable[[], None]]] = [
                    steps.cleaner(-1),
                    steps.cleaner(count),
                    [lambda: steps.lease_theirs("their 1")],
                    [lambda: steps.lease_theirs("their 2")],
                    [lambda: steps.lease("ours")],
                ]
                for actor in order:
                    actors[actor].pop(0)()
                self.assertLessEqual(len(steps.holders), 1, (count, order, steps.holders))
