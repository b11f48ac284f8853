"""The published package ``redis-work-queue`` and this one, on the same keys at the same time."""

from __future__ import annotations

import contextlib
import io
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SkipTest

from disque_tx.workqueue import Counts, Item
from tests.acceptance.daemon import environment
from tests.acceptance.test_workqueue import RedisTestCase, rest

_T = TypeVar("_T")
_Worker = tuple[str, subprocess.Popen[bytes]]
_ITEMS: Final = 10_000
_KILLS: Final = 24


class PeerTests(RedisTestCase):
    """Items that one package adds and the other completes. "Theirs" is the published package,
    "ours" is this one."""

    def setUp(self) -> None:
        if find_spec("redis_work_queue") is None:
            raise SkipTest("The package redis-work-queue is not installed: see the extra 'test'.")
        super().setUp()
        import redis
        from redis_work_queue import KeyPrefix, WorkQueue

        self.database = redis.Redis(port=self.server.port)
        self.addCleanup(self.database.close)
        self.theirs = WorkQueue(KeyPrefix("P"))

    def call(self, method: Callable[..., _T], *words: Any, **named: Any) -> Deferred[_T]:
        """Run a blocking call to the published package in a thread."""
        return deferToThread(method, self.database, *words, **named)

    def item(self, data: bytes, name: str) -> Any:
        """An item of the published package."""
        from redis_work_queue import Item as Theirs

        return Theirs(data, name)

    async def test_theirs_then_ours(self) -> None:
        """An item of their package is leased here with the same bytes, and completed for both."""
        await self.call(self.theirs.add_item, self.item(b"\x00\xff1", "1"))
        self.assertFalse(await self.queue.add_item(Item.create("other", "1")))
        item = await self.queue.lease(5)
        self.assertEqual(Item.create(b"\x00\xff1", "1"), item)
        assert item is not None
        self.assertEqual(1, await self.call(self.theirs.processing))
        self.assertTrue(await self.queue.complete(item))
        self.assertFalse(await self.call(self.theirs.complete, self.item(b"", "1")))
        self.assertEqual([], await self.keys())

    async def test_ours_then_theirs(self) -> None:
        """An item of this package is leased there with the same bytes, and completed for both."""
        await self.queue.add_item(Item.create(b"123", "1"))
        self.assertEqual(1, await self.call(self.theirs.queue_len))
        item = await self.call(self.theirs.lease, 5)
        self.assertEqual((b"123", "1"), (item.data(), item.id()))
        self.assertTrue(await self.queue.lease_exists("1"))
        self.assertEqual((0, 0), (await self.queue.light_clean(), await self.queue.deep_clean()))
        self.assertTrue(await self.call(self.theirs.complete, item))
        self.assertFalse(await self.queue.complete(Item.create(b"", "1")))
        self.assertEqual([], await self.keys())

    async def test_they_clean(self) -> None:
        """Their clean leaves valid leases of this package alone, and returns items whose lease has
        expired."""
        await self.queue.add_items([Item.create("x", "kept"), Item.create("x", "left")])
        await self.queue.lease(60)
        await self.queue.lease(0.01)
        await rest(0.05)
        with contextlib.redirect_stdout(io.StringIO()):
            await self.call(self.theirs.light_clean)
        self.assertEqual(Counts(1, 1), await self.queue.counts())
        left = await self.queue.lease(5)
        assert left is not None
        self.assertEqual("left", left.id)

    async def test_we_clean(self) -> None:
        """The clean of this package returns items whose lease from their package has expired."""
        await self.queue.add_item(Item.create("x"))
        await self.call(self.theirs.lease, 1)
        await rest(1.1)
        self.assertEqual(1, await self.queue.light_clean())
        self.assertIsNotNone(await self.call(self.theirs.lease, 1, block=False))

    async def test_they_wait(self) -> None:
        """A waiting worker of their package gets an item that this one adds."""
        waiting = self.call(self.theirs.lease, 5, timeout=10)
        await rest(0.1)
        await self.queue.add_item(Item.create("x", "1"))
        self.assertEqual("1", (await waiting).id())

    async def test_killed_at_random(self) -> None:
        """With 10,000 items, and workers of both packages and a cleaner killed at random, each item
        is completed once, and no key is left."""
        dice = random.Random(1)
        kinds = ("ours", "theirs", "ours", "theirs", "cleaner")
        workers = [(what, self.start(what)) for what in kinds]
        half = _ITEMS // 2
        adding = self.queue.add_items(Item.create("x", f"{n}") for n in range(half))
        for n in range(half, _ITEMS):
            await self.call(self.theirs.add_item, self.item(b"x", f"{n}"))
            if n % (half // _KILLS) == 0:
                self.kill_one(workers, dice)
        self.assertEqual(half, sum(await adding))
        while await self.unfinished():
            await rest(0.2)
        ours = Counter(await self.redis.execute("LRANGE", "done:ours", 0, -1))
        theirs = Counter(await self.redis.execute("LRANGE", "done:theirs", 0, -1))
        done = ours + theirs
        self.assertTrue(len(ours) > _KILLS and len(theirs) > _KILLS)
        self.assertEqual({1}, set(done.values()))
        self.assertTrue(_ITEMS - _KILLS <= len(done) <= _ITEMS, len(done))

    def kill_one(self, workers: list[_Worker], dice: random.Random) -> None:
        """Kill one worker at random and start it again."""
        index = dice.randrange(len(workers))
        what, process = workers[index]
        process.kill()
        process.wait()
        workers[index] = (what, self.start(what))

    def start(self, what: str) -> subprocess.Popen[bytes]:
        """Start a program of :mod:`tests.acceptance.workers`."""
        words = [sys.executable, "-m", "tests.acceptance.workers", what, str(self.server.port)]
        paths = os.pathsep.join([environment()["PYTHONPATH"], *filter(None, sys.path), os.getcwd()])
        process = subprocess.Popen(
            words, env=environment(PYTHONPATH=paths), stdin=subprocess.DEVNULL
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    async def unfinished(self) -> bool:
        """Whether any key of the queue is left."""
        return bool([key for key in await self.keys() if key.startswith(b"P:")])
