"""What each method of the work queue on Redis asks of the server, and what its caller gets."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue import scripts
from disque_tx.workqueue.errors import PasswordRefused, RedisLost, RedisRefused, WrongKeyType
from disque_tx.workqueue.items import Counts, Item
from disque_tx.workqueue.queue import WorkQueue
from disque_tx.workqueue.redis import Redis
from tests.workqueue.redisdouble import RedisDouble, Refusal

_ITEM = Item("one", b"data")


class StepCase(SynchronousTestCase):
    """A work queue on a server that answers ``reply`` to everything."""

    def setUp(self) -> None:
        self.reply: Any = 1
        self.server = RedisDouble(lambda words: self.reply)
        self.queue = WorkQueue("P", self.server.redis)

    def settled(self, of: Deferred[Any]) -> Deferred[Any]:
        """This, when the server has answered."""
        self.server.settle()
        return of

    def result(self, of: Deferred[Any]) -> Any:
        """The result, when the server has answered."""
        return self.successResultOf(self.settled(of))

    def check(self, of: Deferred[Any], script: scripts.Script, *arguments: bytes) -> None:
        """The last request was this script, on the keys of the queue, with these arguments."""
        self.settled(of)
        keys = [b"P:queue", b"P:processing", b"P:cleaning"]
        expected = [b"EVALSHA", script.sha.encode(), b"3", *keys, b"P", *arguments]
        self.assertEqual(expected, self.server.requests[-1][1])


class StepTests(StepCase):
    """Each method is one script."""

    def test_requests(self) -> None:
        """Each step is about its item and this session, so that no other one's lease is touched."""
        mine = self.queue.session.encode()
        self.check(self.queue.add_item(_ITEM), scripts.ADD, b"one", b"data", b"0")
        self.check(self.queue.add_unique_item(_ITEM), scripts.ADD, b"one", b"data", b"1")
        self.check(self.queue.complete(_ITEM), scripts.COMPLETE, b"one")
        self.check(self.queue.extend_lease(_ITEM, 1.5), scripts.EXTEND, b"one", mine, b"1500")
        self.check(self.queue.give_back(_ITEM), scripts.GIVE_BACK, b"one", mine)
        self.check(self.queue.lease_exists("one"), scripts.LEASED, b"one")

    def test_results(self) -> None:
        """The caller sees whether the step had an effect."""
        for reply in (1, 0):
            self.reply = reply
            for call in (
                self.queue.add_item(_ITEM),
                self.queue.complete(_ITEM),
                self.queue.extend_lease(_ITEM, 1),
                self.queue.give_back(_ITEM),
                self.queue.lease_exists("one"),
            ):
                self.assertIs(bool(reply), self.result(call))
        self.assertIsNone(self.result(self.queue.add_unique_item(_ITEM)))

    def test_counts(self) -> None:
        """People see how many items wait, and how many are worked on."""
        self.reply = 7
        self.assertEqual(7, self.result(self.queue.queue_len()))
        self.assertEqual([b"LLEN", b"P:queue"], self.server.requests[-1][1])
        self.assertEqual(7, self.result(self.queue.processing()))
        self.assertEqual([b"LLEN", b"P:processing"], self.server.requests[-1][1])
        self.reply = [3, 4]
        self.assertEqual(Counts(3, 4), self.result(self.queue.counts()))

    def test_many(self) -> None:
        """Of many items each is added once, in their order, and the caller sees which were."""
        count = 1201
        self.server.answer = lambda words: int(words[-3] != b"700")
        added = self.result(self.queue.add_items(Item(str(at), b"") for at in range(count)))
        self.assertEqual([at != 700 for at in range(count)], added)
        ids = [words[-3] for _, words in self.server.requests]
        self.assertEqual([b"%d" % at for at in range(count)], ids)

    def test_other_bytes(self) -> None:
        """IDs of other programs need not be text: such an item can be leased and completed."""
        self.reply = [b"\xff\x00", b"data"]
        item = self.result(self.queue.take(1000))
        self.reply = 1
        self.check(self.queue.complete(item), scripts.COMPLETE, b"\xff\x00")

    def test_dropped(self) -> None:
        """IDs without data are removed some at a time, until there is an item or none is left."""
        replies: list[Any] = [0, 0, [b"one", b"data"]]
        self.server.answer = lambda words: replies.pop(0)
        self.assertEqual(_ITEM, self.result(self.queue.take(1000)))
        self.assertEqual(3, len(self.server.requests))
        self.server.answer = lambda words: None
        self.assertIsNone(self.result(self.queue.take(1000)))
        self.assertIsNone(self.result(self.queue.claim(b"one", 1000)))

    def test_transaction(self) -> None:
        """In a transaction of the program the data comes before the ID, under the same keys."""
        asked: list[tuple[str, str, object]] = []

        class Transaction:
            """Notes what it is asked for."""

            def set(self, key: str, value: bytes) -> Deferred[None]:
                """Note this."""
                asked.append(("SET", key, value))
                return Deferred()

            def lpush(self, key: str, value: str) -> Deferred[None]:
                """Note this."""
                asked.append(("LPUSH", key, value))
                return Deferred()

        self.assertNoResult(self.queue.add_unique_item_to(Transaction(), _ITEM))
        expected = [("SET", "P:item:one", b"data"), ("LPUSH", "P:queue", "one")]
        self.assertEqual(expected, asked)

    def test_leases(self) -> None:
        """Leases have a length, and waits an end; what is none is refused before it is asked."""
        for expiry_s in (0, 0.0009, -1, 1e12, float("nan")):
            self.assertRaises(ValueError, self.queue.lease, expiry_s)
            self.failureResultOf(self.queue.extend_lease(_ITEM, expiry_s), ValueError)
        for timeout_s in (-0.1, float("inf"), float("nan")):
            self.assertRaises(ValueError, self.queue.lease, 1, timeout_s=timeout_s)
        self.assertEqual([], self.server.requests)
        mine = self.queue.session.encode()
        self.check(self.queue.extend_lease(_ITEM, 0.001), scripts.EXTEND, b"one", mine, b"1")

    def test_sessions(self) -> None:
        """Two objects are two sessions: neither gives back what the other has leased."""
        self.assertNotEqual(self.queue.session, WorkQueue("P", self.server.redis).session)


class ErrorTests(StepCase):
    """A server that refuses, or is gone."""

    def refused(self, line: str) -> RedisRefused:
        """What an error reply becomes."""
        self.reply = Refusal(line)
        error = self.failureResultOf(self.settled(self.queue.complete(_ITEM)), RedisRefused).value
        assert isinstance(error, RedisRefused)
        return error

    def test_kinds(self) -> None:
        """Programs can tell a key of another type, also from old servers, and a missing right from
        other errors; the text has the server, its reply, and what to do."""
        for line, kind, advice in (
            ("WRONGTYPE Operation against a key.", WrongKeyType, "use another prefix."),
            ("ERR Error running script: WRONGTYPE a key", WrongKeyType, "use another prefix."),
            ("NOPERM this user", PasswordRefused, "what the user may do."),
            ("NOAUTH Authentication required.", PasswordRefused, "what the user may do."),
            ("OOM no memory", RedisRefused, ": OOM no memory."),
        ):
            error = self.refused(line)
            self.assertIs(kind, type(error))
            shown = (error.code, error.address, str(error)[-len(advice) :])
            self.assertEqual((line.split()[0], "127.0.0.1:6379", advice), shown)

    def test_password(self) -> None:
        """A wrong password is called so, without showing it, and the connection is closed."""
        redis = Redis.at("redis://:secret@127.0.0.1", self.server.reactor)
        self.reply = Refusal("ERR invalid password")
        failed = self.settled(redis.execute("PING"))
        error = self.failureResultOf(failed, PasswordRefused).value
        self.assertIn("127.0.0.1:6379 refused: the password is wrong.", str(error))
        self.assertNotIn("secret", str(error))
        self.assertEqual([], self.server.open())
        self.assertEqual([[b"AUTH", b"secret"]], [words for _, words in self.server.requests])

    def test_closed(self) -> None:
        """After the end nothing was sent, and the error names the server and the reason."""
        self.result(self.queue.close())
        error = self.failureResultOf(self.settled(self.queue.queue_len()), RedisLost).value
        assert isinstance(error, RedisLost)
        self.assertEqual((False, "127.0.0.1:6379"), (error.sent, error.address))
        said = "The Redis server at 127.0.0.1:6379 cannot be used: this program closed its"
        self.assertTrue(str(error).startswith(said), str(error))

    def test_doubt(self) -> None:
        """Of a command whose connection ended the program learns that it may have been done."""
        self.result(self.queue.queue_len())
        self.server.answer = lambda words: self.server.transports[0].abortConnection()
        error = self.failureResultOf(self.settled(self.queue.complete(_ITEM)), RedisLost).value
        assert isinstance(error, RedisLost)
        self.assertIs(True, error.sent)
        self.assertIn("may or may not have been executed", str(error))

    def test_lease_fails(self) -> None:
        """A worker that waits for an item learns that the server refuses, or is gone; its
        connections are not used again."""
        self.reply = Refusal("OOM no memory")
        self.failureResultOf(self.settled(self.queue.lease(1)), RedisRefused)

        def lost(words: list[bytes]) -> Any:
            if words[0] == b"BRPOPLPUSH":
                return self.server.transports[-1].abortConnection()
            return None

        self.server.answer = lost
        self.failureResultOf(self.settled(self.queue.lease(1)), RedisLost)
        self.assertEqual([0], self.server.open())
