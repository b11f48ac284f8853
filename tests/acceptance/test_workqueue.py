"""The Redis work queue on a real redis-server, alone and together with the published package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from disque_tx.workqueue import (
    BadRedisUrl,
    CleaningService,
    Counts,
    Item,
    PasswordRefused,
    Redis,
    RedisLost,
    WorkQueue,
    WrongKeyType,
)
from disque_tx.workqueue.deferreds import deferred
from tests.acceptance.daemon import free_port
from tests.acceptance.redisserver import RedisServer

_SETTLE_S: Final = 0.02


def rest(seconds: float) -> Deferred[None]:
    """Wait for real time to pass."""
    return deferLater(reactor, seconds)


class RedisTestCase(TestCase):
    """Starts a Redis server, and a queue ``P`` on it, for each test."""

    timeout = 60
    options: Sequence[str] = ()

    def setUp(self) -> None:
        folder = Path(self.mktemp()).resolve()
        folder.mkdir(parents=True)
        self.server = RedisServer(folder, *self.options)
        self.addCleanup(self.server.stop)
        self.server.start()
        self.redis = self.connected()
        self.queue = self.same_queue()

    def connected(self, url: str | None = None) -> Redis:
        """Connections that are closed at the end of the test."""
        redis = Redis.at(url or self.server.url, reactor, timeout_s=5)
        self.addCleanup(redis.close)
        return redis

    def same_queue(self, redis: Redis | None = None) -> WorkQueue:
        """The queue ``P``, as another program would open it."""
        return WorkQueue("P", redis or self.redis, settle_s=_SETTLE_S)

    async def keys(self) -> list[bytes]:
        """All keys on the server."""
        return sorted(await self.redis.execute("KEYS", "*"))

    async def complete_all(self) -> list[str]:
        """Clean, then lease and complete all items; returns their IDs in order."""
        await self.queue.deep_clean()
        done = []
        while (item := await self.queue.lease(10, block=False)) is not None:
            self.assertTrue(await self.queue.complete(item))
            done.append(item.id)
        return done


class ItemTests(RedisTestCase):
    """Operations on one queue."""

    async def test_bytes(self) -> None:
        """Data is returned as the same bytes, even if it looks like a number."""
        for data in (b"123", b"1.5", b"\xff\x00\r\n", b"", b"nan"):
            item = Item.create(data)
            await self.queue.add_item(item)
            self.assertEqual(item, await self.queue.lease(5))
            self.assertTrue(await self.queue.complete(item))
        self.assertEqual([], await self.keys())

    async def test_ids(self) -> None:
        """IDs that look like numbers, or are not UTF-8, are returned unchanged."""
        for name in ("007", "1.50", "über", "a b:c*", b"\xff".decode(errors="surrogateescape")):
            await self.queue.add_item(Item.create(b"x", name))
            item = await self.queue.lease(5)
            assert item is not None
            self.assertEqual(name, item.id)
            self.assertTrue(await self.queue.lease_exists(name))
            self.assertTrue(await self.queue.complete(item))

    async def test_added_once(self) -> None:
        """Equal work is queued once, refused while a worker has it, and accepted again
        afterwards."""
        item = Item.by_hash("work")
        self.assertEqual([True, False], await self.queue.add_items([item, item]))
        await self.queue.lease(5)
        self.assertFalse(await self.queue.add_item(item))
        await self.queue.complete(item)
        self.assertTrue(await self.queue.add_item(item))
        self.assertEqual(1, await self.queue.queue_len())

    async def test_completed_once(self) -> None:
        """When several workers complete an item, only one of them gets True."""
        item = Item.create("x")
        await self.queue.add_unique_item(item)
        await self.queue.lease(5)
        others = [self.same_queue().complete(item) for _ in range(20)]
        self.assertEqual(1, [await other for other in others].count(True))
        self.assertEqual([], await self.keys())

    async def test_order_and_counts(self) -> None:
        """Items are leased first in, first out; counts of both lists are from the same moment."""
        await self.queue.add_items(Item.create("x", str(number)) for number in range(1200))
        first = await self.queue.lease(5)
        assert first is not None
        self.assertEqual(("0", Counts(1199, 1)), (first.id, await self.queue.counts()))
        self.assertEqual(1, await self.queue.processing())
        self.assertTrue(await self.queue.give_back(first))
        self.assertEqual([str(number) for number in range(1200)], await self.complete_all())

    async def test_duplicate_ids(self) -> None:
        """An ID that is queued twice is leased by only one worker at a time."""
        item = Item.create("x")
        for _ in range(3):
            await self.queue.add_unique_item(item)
        self.assertEqual(item, await self.queue.lease(5, block=False))
        self.assertIsNone(await self.queue.lease(5, block=False))
        self.assertTrue(await self.queue.complete(item))
        self.assertEqual([], await self.keys())

    async def test_ids_without_data(self) -> None:
        """An ID without data is skipped and removed."""
        await self.redis.execute("LPUSH", "P:queue", *(f"gone{n}" for n in range(250)))
        await self.queue.add_item(Item.create("x", "there"))
        item = await self.queue.lease(5, block=False)
        assert item is not None
        self.assertEqual("there", item.id)
        await self.queue.complete(item)
        self.assertEqual([], await self.keys())

    async def test_in_a_transaction(self) -> None:
        """Items can be added in a transaction with other writes of a program, or not at all."""
        import txredisapi

        connection = await txredisapi.Connection("127.0.0.1", self.server.port, reconnect=False)
        transaction = await connection.multi()
        await self.queue.add_unique_item_to(transaction, Item.create(b"\xff", "a"))
        self.assertEqual([], await self.keys())
        await transaction.commit()
        self.assertEqual(["a"], await self.complete_all())
        await connection.disconnect()

    async def test_extended(self) -> None:
        """Only the worker that holds a lease can extend it."""
        item = Item.create("x")
        await self.queue.add_item(item)
        await self.queue.lease(0.05)
        self.assertTrue(await self.queue.extend_lease(item, 60))
        self.assertFalse(await self.same_queue().extend_lease(item, 60))
        self.assertFalse(await self.same_queue().give_back(item))
        await rest(0.1)
        self.assertEqual(0, await self.queue.light_clean())

    async def test_bad_times(self) -> None:
        """Times that Redis would misinterpret are refused."""
        for arguments in ({"expiry_s": 0}, {"expiry_s": float("nan")}, {"expiry_s": 1e20}):
            self.assertRaises(ValueError, self.queue.lease, **arguments)
        self.assertRaises(ValueError, self.queue.lease, 1, timeout_s=-1)

    async def test_forgotten_scripts(self) -> None:
        """Scripts are loaded again after the server lost them."""
        await self.queue.add_item(Item.create("x"))
        await self.redis.execute("SCRIPT", "FLUSH")
        self.assertTrue(await self.queue.add_item(Item.create("y")))


class WaitTests(RedisTestCase):
    """Leases that wait for an item."""

    async def test_arrives(self) -> None:
        """A worker that waits gets the next item, and IDs without data are skipped."""
        waiting = self.queue.lease(5)
        await rest(0.05)
        await self.redis.execute("LPUSH", "P:queue", "gone")
        item = Item.create("x")
        await self.queue.add_item(item)
        self.assertEqual(item, await waiting)
        self.assertTrue(await self.queue.lease_exists(item.id))
        self.assertTrue(await self.queue.complete(item))
        self.assertEqual([], await self.keys())

    async def test_timeout(self) -> None:
        """Without an item, the lease returns nothing after the timeout."""
        self.assertIsNone(await self.queue.lease(5, timeout_s=0.1))
        self.assertIsNone(await self.queue.lease(5, block=False))

    async def test_cancelled(self) -> None:
        """A cancelled lease takes no item, and its connection can be used again."""
        for _ in range(3):
            waiting = self.queue.lease(5)
            await rest(0.02)
            waiting.cancel()
            await self.assertFailure(waiting, CancelledError)
        item = Item.create("x")
        await rest(0.1)
        await self.queue.add_item(item)
        self.assertEqual(Counts(1, 0), await self.queue.counts())
        self.assertEqual(item, await self.queue.lease(5))

    async def test_cancelled_at_any_moment(self) -> None:
        """Whenever a lease is cancelled, its item is either returned to the caller or stays
        queued."""
        for step in range(25):
            item = Item.create("x", f"{step}")
            waiting = self.queue.lease(60)
            await rest(0.02 if step % 2 else 0)
            adding = self.same_queue().add_item(item)
            await rest(0.0001 * step)
            waiting.cancel()
            got = await waiting.addErrback(lambda failure: failure.trap(CancelledError) and None)
            await adding
            await rest(0.08)
            if got is None:
                got = await self.queue.lease(60, block=False)
            self.assertEqual(item, got)
            self.assertTrue(await self.queue.complete(item))
        self.assertEqual([], await self.keys())

    async def test_server_lost(self) -> None:
        """A waiting lease fails when the server is lost, and works again when the server is
        back."""
        waiting = self.queue.lease(5)
        await rest(0.05)
        self.server.stop()
        await self.assertFailure(waiting, RedisLost)
        await self.assertFailure(self.queue.counts(), RedisLost)
        self.server.start()
        self.assertTrue(await self.queue.add_item(Item.create("x")))
        self.assertIsNotNone(await self.queue.lease(5))


class CleanTests(RedisTestCase):
    """What cleaning returns to the queue, and what it leaves alone."""

    async def test_light(self) -> None:
        """Items whose lease has expired are returned to the queue, the oldest first; others stay
        where they are."""
        await self.queue.add_items(Item.create("x", name) for name in "abcd")
        for expiry_s in (0.01, 0.01, 60):
            await self.queue.lease(expiry_s)
        await self.redis.execute("LPUSH", "P:processing", "gone", "d")
        await rest(0.05)
        self.assertEqual(2, await self.queue.light_clean())
        self.assertEqual([b"b", b"a", b"d"], await self.redis.execute("LRANGE", "P:queue", 0, -1))
        processing = await self.redis.execute("LRANGE", "P:processing", 0, -1)
        self.assertEqual([b"d", b"c"], processing)

    async def test_deep(self) -> None:
        """Items that are in no list are returned; the prefix may contain characters of patterns."""
        queue = WorkQueue("P[a]*?\\", self.redis, settle_s=_SETTLE_S)
        await queue.add_items(Item.create("x", f"{n}") for n in range(2500))
        await self.same_queue().add_item(Item.create("x"))
        await self.redis.execute("DEL", "P[a]*?\\:queue")
        self.assertEqual((0, 2500), (await queue.light_clean(), await queue.deep_clean()))
        self.assertEqual((0, 1), (await queue.deep_clean(), await self.queue.queue_len()))

    async def test_many_cleaners(self) -> None:
        """Cleaners at the same time return each item only once."""
        await self.queue.add_items(Item.create("x", f"{n}") for n in range(300))
        for _ in range(200):
            await self.queue.lease(0.001)
        await self.redis.execute("LTRIM", "P:queue", 0, 49)
        await rest(0.02)
        cleans = [self.same_queue().deep_clean() for _ in range(5)]
        self.assertEqual(250, sum([await clean for clean in cleans]))
        self.assertEqual(Counts(300, 0), await self.queue.counts())

    async def test_service(self) -> None:
        """The service cleans, continues after the server was down, and waits for its last run when
        stopped."""
        await self.queue.add_item(Item.create("x"))
        await self.queue.lease(0.01)
        service = CleaningService([self.queue], 0.05, clock=reactor)
        service.startService()
        self.assertIsNotNone(await self.queue.lease(0.01, timeout_s=10))
        self.server.stop()
        await rest(0.2)
        self.server.start()
        await rest(0.2)
        await self.queue.add_item(Item.create("y"))
        await self.queue.lease(0.01)
        self.assertIsNotNone(await self.queue.lease(60, timeout_s=10))
        ended = service.stopService()
        assert ended is not None
        await ended


class Stopping(Redis):
    """Connections of a program that is killed before command number ``left``."""

    left = 0

    @deferred
    async def execute(self, *words: str | bytes | int | float) -> Any:
        """Run the command, or fail as if the program was killed."""
        if self.left == 0:
            raise RedisLost(str(self.address), "the program was killed", False)
        self.left -= 1
        return await super().execute(*words)


class CrashTests(RedisTestCase):
    """A program may end between any two of its commands."""

    async def prepare(self) -> None:
        """Add items that wait, one that is leased, and one whose lease has expired."""
        await self.redis.execute("FLUSHALL")
        await self.queue.add_items(Item.create(name, name) for name in "abcd")
        await self.queue.lease(0.001)
        await self.queue.lease(60)
        await rest(0.01)

    async def check(self, what: str, names: set[str], optional: set[str]) -> None:
        """After cleaning, every item is there once, and is completed once."""
        for name in "abcd":
            for kind in ("lease", "leased_by_session"):
                await self.redis.execute("DEL", f"P:{kind}:{name}")
        done = await self.complete_all()
        self.assertEqual(len(set(done)), len(done), what)
        self.assertTrue(names <= set(done) <= names | optional, (what, done))
        self.assertEqual([], await self.keys(), what)

    async def test_plain_commands(self) -> None:
        """What the plain commands of other programs leave, cut after any of them, is cleaned up."""
        session: tuple[Any, ...] = ("SETEX", "P:leased_by_session:c", 60, "s")
        move = ("RPOPLPUSH", "P:queue", "P:processing")
        operations: list[tuple[set[str], set[str], list[tuple[Any, ...]]]] = [
            (set("abcd"), {"e"}, [("SET", "P:item:e", "e", "NX"), ("LPUSH", "P:queue", "e")]),
            (set("abcd"), set(), [move, ("GET", "P:item:c"), session]),
            (set("acd"), {"b"}, [("LREM", "P:processing", 0, "b"), ("DEL", "P:item:b"),
                                 ("DEL", "P:leased_by_session:b")]),
            (set("acd"), {"b"}, [("DEL", "P:item:b"), ("LREM", "P:processing", 0, "b"),
                                 ("DEL", "P:lease:b")]),
            (set("abcd"), set(), [("LREM", "P:processing", 0, "a"), ("LPUSH", "P:queue", "a")]),
            (set("abcd"), set(), [("LPUSH", "P:cleaning", "a"), ("LREM", "P:processing", 0, "a"),
                                  ("LPUSH", "P:queue", "a"), ("LREM", "P:cleaning", 0, "a")]),
        ]  # fmt: skip
        for names, optional, commands in operations:
            for cut in range(len(commands) + 1):
                await self.prepare()
                for words in commands[:cut]:
                    await self.redis.execute(*words)
                await self.check(f"{commands} cut after {cut}", names, optional)

    async def test_our_operations(self) -> None:
        """The operations of this package, cut before any of their commands, leave nothing that
        cleaning misses."""
        b = Item.create("b", "b")
        operations: dict[str, Callable[[WorkQueue], Awaitable[Any]]] = {
            "add": lambda queue: queue.add_item(Item.create("e", "e")),
            "add unique": lambda queue: queue.add_unique_item(Item.create("e", "e")),
            "lease": lambda queue: queue.lease(60),
            "complete": lambda queue: queue.complete(b),
            "give back": lambda queue: queue.give_back(b),
            "light clean": lambda queue: queue.light_clean(),
            "deep clean": lambda queue: queue.deep_clean(),
        }
        optional = {"add": {"e"}, "add unique": {"e"}, "complete": {"b"}}
        for what, operation in operations.items():
            for cut in range(30):
                await self.prepare()
                redis = Stopping(self.redis.address, reactor, 5)
                redis.left = cut
                killed = await self.is_killed(operation(self.same_queue(redis)))
                await redis.close()
                maybe = optional.get(what, set())
                await self.check(f"{what} cut before {cut}", set("abcd") - maybe, maybe)
                if not killed:
                    break
            else:
                self.fail(f"{what} takes too many commands")

    async def test_killed_while_claiming(self) -> None:
        """A worker that is killed just after its wait leaves its item to the light clean."""
        redis = Stopping(self.redis.address, reactor, 5)
        redis.left = 2
        waiting = self.same_queue(redis).lease(60)
        await rest(0.1)
        await self.queue.add_item(Item.create("x"))
        self.assertTrue(await self.is_killed(waiting))
        self.assertEqual(Counts(0, 1), await self.queue.counts())
        self.assertEqual(1, await self.queue.light_clean())
        await redis.close()

    async def is_killed(self, operation: Awaitable[Any]) -> bool:
        """Whether the operation was cut."""
        try:
            await operation
        except RedisLost:
            return True
        return False


class RefusalTests(RedisTestCase):
    """Servers and keys that refuse an operation."""

    options = ("--requirepass", "open:sesame")

    def connected(self, url: str | None = None) -> Redis:
        """Connections with the password by default."""
        return super().connected(url or self.url("open%3Asesame"))

    def url(self, password: str) -> str:
        """The server's URL with a password."""
        return f"redis://:{password}@127.0.0.1:{self.server.port}/1"

    async def test_password(self) -> None:
        """A missing or wrong password is reported as such, without showing it."""
        self.assertTrue(await self.queue.add_item(Item.create("x")))
        for url in (self.url("wrongword"), self.server.url):
            error = await self.assertFailure(
                self.same_queue(self.connected(url)).counts(), PasswordRefused
            )
            self.assertNotIn("wrongword", str(error))
        self.assertNotIn("sesame", repr(self.redis) + repr(self.redis.address))

    async def test_wrong_type(self) -> None:
        """A key of another type is named in the error, and nothing is half done."""
        await self.redis.execute("SET", "P:queue", "text")
        await self.assertFailure(self.queue.add_item(Item.create("x", "a")), WrongKeyType)
        await self.assertFailure(self.queue.lease(5), WrongKeyType)
        self.assertEqual([b"P:queue"], await self.keys())

    async def test_wrong_data(self) -> None:
        """An item whose data has another type does not block the items behind it."""
        await self.redis.execute("HSET", "P:item:bad", "a", "b")
        await self.redis.execute("LPUSH", "P:queue", "bad")
        await self.queue.add_item(Item.create("x", "good"))
        await self.assertFailure(self.queue.lease(5), WrongKeyType)
        good = await self.queue.lease(5)
        assert good is not None
        self.assertEqual("good", good.id)

    async def test_connection_refused(self) -> None:
        """The error says that the request was not sent to a server that is down."""
        redis = self.connected(f"redis://127.0.0.1:{free_port()}")
        error: Any = await self.assertFailure(self.same_queue(redis).counts(), RedisLost)
        self.assertFalse(error.sent)

    def test_bad_urls(self) -> None:
        """A malformed URL is refused, without repeating it in the message, because it may contain a
        password."""
        for url in ("http://h:secret@x", "redis://", "redis://h:99999", "redis://secret@h", "h:1"):
            error = self.assertRaises(BadRedisUrl, Redis.at, url, reactor)
            self.assertNotIn("secret", str(error))
