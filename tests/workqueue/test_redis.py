"""The connections of a program to one Redis server."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import formatEvent
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue.errors import RedisLost, RedisRefused
from disque_tx.workqueue.redis import Redis
from disque_tx.workqueue.scripts import COUNTS
from tests.logged import observe
from tests.workqueue.redisdouble import SILENCE, RedisDouble, Refusal


class RedisTests(SynchronousTestCase):
    """``Redis``."""

    def setUp(self) -> None:
        self.server = RedisDouble()
        self.redis = self.server.redis

    def result(self, of: Deferred[Any]) -> Any:
        """The result, once the server has answered everything."""
        self.server.settle()
        return self.successResultOf(of)

    def test_shared(self) -> None:
        """Any number of commands share one connection, in their order, also while it is opened."""
        for _ in range(2):
            replies = [self.redis.execute("SET", name, 1) for name in ("a", "b", "c")]
            self.assertEqual([b"OK"] * 3, [self.result(one) for one in replies])
        self.assertEqual([b"a", b"b", b"c"] * 2, [words[1] for _, words in self.server.requests])
        self.assertEqual([0], self.server.open())

    def test_close(self) -> None:
        """A program that closes its connections leaves none open, and works on none after that."""
        self.result(self.redis.execute("PING"))
        kept, working = (self.redis.blocking_connection() for _ in range(2))
        self.redis.put_back(self.result(kept))
        self.result(working)
        self.assertEqual([0, 1, 2], self.server.open())
        self.result(self.redis.close())
        self.assertEqual([], self.server.open())
        self.server.settle()
        late = self.redis.execute("PING")
        self.server.settle()
        self.assertIn("closed its connections", str(self.failureResultOf(late, RedisLost).value))

    def test_close_waits(self) -> None:
        """What runs in the background ends first: an item that came too late is still given
        back."""
        work: Deferred[None] = Deferred()
        self.result(self.redis.execute("PING"))
        self.redis.finish(work)
        closing = self.redis.close()
        self.assertNoResult(closing)
        self.assertEqual([0], self.server.open())
        work.callback(None)
        self.result(closing)
        self.assertEqual([], self.server.open())
        late = self.redis.execute("PING")
        self.server.settle()
        self.failureResultOf(late, RedisLost)
        self.assertEqual(1, len(self.server.transports))

    def test_background_fails(self) -> None:
        """An operator reads why an item was not given back, and the program can end."""
        said: list[str] = []
        observe(self, lambda event: said.append(formatEvent(event)))
        work: Deferred[None] = Deferred()
        self.redis.finish(work)
        work.errback(RedisLost("a:1", "it is gone", False))
        self.assertEqual(1, len(said))
        self.assertIn("After a cancelled lease: The Redis server at a:1 cannot be used", said[0])
        self.result(self.redis.close())

    def test_put_back_late(self) -> None:
        """A connection that comes back after the end is closed, too."""
        connection = self.result(self.redis.blocking_connection())
        self.result(self.redis.close())
        self.redis.put_back(connection)
        self.assertEqual([], self.server.open())

    def test_blocking(self) -> None:
        """Connections of blocking commands are used again, unless they are broken."""
        first = self.result(self.redis.blocking_connection())
        self.redis.put_back(first)
        self.assertIs(first, self.result(self.redis.blocking_connection()))
        self.redis.put_back(first)
        self.server.transports[0].abortConnection()
        self.assertIsNot(first, self.result(self.redis.blocking_connection()))

    def test_lost(self) -> None:
        """After the loss of its connection a program opens another one, and goes on."""
        self.result(self.redis.execute("PING"))
        self.server.transports[0].abortConnection()
        self.assertEqual(b"OK", self.result(self.redis.execute("PING")))
        self.assertEqual([1], self.server.open())

    def test_silent(self) -> None:
        """A server that does not answer is given up after the time limit, and its connection is
        closed."""
        self.server.answer = lambda words: SILENCE
        waiting = self.redis.execute("PING")
        self.server.settle()
        self.server.advance(9.9)
        self.assertNoResult(waiting)
        self.server.advance(0.2)
        error: Any = self.failureResultOf(waiting, RedisLost).value
        self.assertIn("it has not answered for 10 s", str(error))
        self.assertEqual([], self.server.open())

    def test_script(self) -> None:
        """A script is sent in full only to a server that does not know it; other errors are those
        of the script."""
        self.server.answer = lambda words: [1, 2]
        self.assertEqual([1, 2], self.result(self.redis.run(COUNTS, ["q"], "p")))
        self.server.answer = self.unknown
        self.assertEqual([3, 4], self.result(self.redis.run(COUNTS, ["q"], "p")))
        self.assertEqual([b"EVALSHA", b"EVALSHA", b"EVAL"], self.server.commands())
        self.assertEqual([b"1", b"q", b"p"], self.server.requests[-1][1][2:])
        self.server.answer = lambda words: Refusal("OOM no memory")
        failed = self.redis.run(COUNTS, ["q"], "p")
        self.server.settle()
        self.failureResultOf(failed, RedisRefused)
        self.assertEqual(b"EVALSHA", self.server.commands()[-1])

    def unknown(self, words: list[bytes]) -> Any:
        """The replies of a server that has no script yet."""
        return [3, 4] if words[0] == b"EVAL" else Refusal("NOSCRIPT No matching script.")

    def test_unblock(self) -> None:
        """A blocking command is ended by the ID of its connection, again and again until it is
        over."""
        connection = self.result(self.redis.blocking_connection())
        over: Deferred[None] = Deferred()
        ended = self.redis.unblock(connection, over)
        self.server.settle()
        self.server.advance(0.06)
        self.assertEqual([[b"CLIENT", b"UNBLOCK", b"0"]] * 2, [w for _, w in self.server.requests])
        over.callback(None)
        self.server.advance(0.06)
        self.successResultOf(ended)
        self.assertEqual(2, len(self.server.requests))

    def test_database(self) -> None:
        """The password and the database of the URL are used, before any command."""
        redis = Redis.at("redis://me:secret@127.0.0.1/2", self.server.reactor)
        self.result(redis.execute("PING"))
        expected = [[b"AUTH", b"me", b"secret"], [b"SELECT", b"2"], [b"PING"]]
        self.assertEqual(expected, [words for _, words in self.server.requests])
