"""``disque workqueue``: its words, and what it does with a Redis server in memory."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock

from disque_tx.cli.verbs.base.reactor import SignalHandling
from disque_tx.cli.verbs.workers import workqueue
from disque_tx.workqueue import KeyPrefix
from disque_tx.workqueue.scripts import COUNTS
from tests.cli.livenode import VerbCase
from tests.workqueue.redisdouble import RedisDouble

_REDIS = "redis://127.0.0.1:1/3"


def _answer(words: list[bytes]) -> Any:
    """The replies of a server on which nothing is to be cleaned."""
    if words[0] == b"EVALSHA":
        return [3, 4] if words[1] == COUNTS.sha.encode() else []
    return {b"LRANGE": [], b"SCAN": [b"0", []]}.get(words[0], 0)


class WordTests(VerbCase):
    """Words, which are checked before anything is connected to."""

    def setUp(self) -> None:
        super().setUp()
        self.started: list[tuple[Any, ...]] = []
        self.patch(workqueue, "run", lambda *words: self.started.append(words))

    def refused(self, *words: str) -> str:
        """Why these words are refused."""
        status, _, errors = self.disque("workqueue", *words)
        self.assertEqual((2, []), (status, self.started), words)
        return errors

    def test_clean(self) -> None:
        """Cleaning happens once or often; what does not fit together is refused."""
        prefix = ("clean", "--prefix", "p")
        wrong: tuple[tuple[str, ...], ...] = (
            (), ("--once", "--every", "5"), ("--deep",), ("--every", "5", "--deep"),
            ("--once", "--deep-every", "5"),
        )  # fmt: skip
        for words in wrong:
            said = self.refused(*prefix, *words, _REDIS)
            self.assertIn("Use either --every S, with --deep-every S or without, or --once", said)
        right: tuple[tuple[str, ...], ...] = (
            ("--once",), ("--once", "--deep"), ("--every", "5"),
            ("--every", "5", "--deep-every", "50"),
        )  # fmt: skip
        for words in right:
            self.started.clear()
            status, _, errors = self.disque("workqueue", *prefix, *words, _REDIS)
            self.assertEqual((0, ""), (status, errors), words)
            name, main = self.started[0]
            kind = "clean_once" if "--once" in words else "clean_often"
            self.assertEqual(("workqueue", kind), (name, main.__name__))

    def test_values(self) -> None:
        """Addresses, prefixes and times are checked, each with its option in the message."""
        cases = {
            ("counts", "--prefix", "p", "http://a"): "Error: Invalid value",
            ("counts", "--prefix", "", _REDIS): "Invalid value for '--prefix'",
            ("counts", _REDIS): "Missing option '--prefix'",
            ("clean", "--prefix", "p", "--every", "0", _REDIS): "Invalid value for '--every'",
            ("move", "--prefix", "p", "--queue", "q", _REDIS, "a:1"): (
                "The address of Disque nodes looks like disque://host:port."
            ),
            ("move", "--prefix", "p", "--queue", "q", "--ttl", "0", _REDIS, "disque://a:1"): (
                "Error: "
            ),
        }
        for words, said in cases.items():
            self.assertIn(said, self.refused(*words), words)

    def test_several(self) -> None:
        """Several work queues are named one by one."""
        status, _, errors = self.disque(
            "workqueue", "counts", "--prefix", "p", "--prefix", "r", _REDIS
        )
        self.assertEqual((0, ""), (status, errors))
        self.assertEqual("count", self.started[0][1].__name__)

    def test_started(self) -> None:
        """Each command runs under the name of the verb, so that a signal or an error is told with
        it."""
        for words, main in (
            (("counts", "--prefix", "p", _REDIS), "count"),
            (("move", "--prefix", "p", "--queue", "q", _REDIS, "disque://a:1"), "move_all"),
        ):
            self.started.clear()
            status, _, errors = self.disque("workqueue", *words)
            self.assertEqual((0, ""), (status, errors))
            ((name, function),) = self.started
            self.assertEqual(("workqueue", main), (name, function.__name__))

    def begun(self, server: RedisDouble, *words: str) -> tuple[Deferred[None], SignalHandling]:
        """The command with these words, on this server, and what a signal would do."""
        self.started.clear()
        status, _, errors = self.disque("workqueue", *words, "redis://127.0.0.1")
        self.assertEqual((0, ""), (status, errors))
        signals = SignalHandling()
        running = Deferred.fromCoroutine(self.started[0][1](server.reactor, signals))
        server.settle()
        return running, signals

    def test_once(self) -> None:
        """A clean and a count print a line for each work queue; a deep clean also looks at keys
        that are in no list."""
        server = RedisDouble(_answer)
        two = ("--prefix", "p", "--prefix", "r")
        cleaned, counted = "0 items returned", "3 waiting, 4 in processing"
        for words, line, deep in (
            (("clean", *two, "--once"), cleaned, False),
            (("clean", *two, "--once", "--deep"), cleaned, True),
            (("counts", *two), counted, False),
        ):
            server.requests.clear()
            out = io.StringIO()
            with redirect_stdout(out):
                running, _ = self.begun(server, *words)
                for _ in range(5):
                    server.advance(1)
            self.assertIsNone(self.successResultOf(running))
            self.assertEqual(f"p: {line}\nr: {line}\n", out.getvalue())
            self.assertEqual(deep, b"SCAN" in server.commands())

    def test_often(self) -> None:
        """A service cleans as often as it is said, until a signal ends it, which is a success."""
        self.patch(workqueue, "_log_to_stderr", lambda level: None)  # it would be for all tests
        server = RedisDouble(_answer)
        words = ("clean", "--prefix", "p", "--every", "5", "--deep-every", "50")
        running, signals = self.begun(server, *words)
        self.assertEqual([b"EVALSHA"], server.commands()[:1])
        counts = []
        for _ in range(4):
            counts.append(server.commands().count(b"LRANGE"))
            for _ in range(5):
                server.advance(1)
        self.assertEqual(sorted(set(counts)), counts)
        for _ in range(35):
            server.advance(1)
        self.assertIn(b"SCAN", server.commands())
        self.assertNoResult(running)
        assert signals.stop is not None
        signals.stop()
        for _ in range(5):
            server.advance(1)
        self.assertIsNone(self.successResultOf(running))
        self.assertTrue(signals.orderly)
        asked = len(server.requests)
        server.advance(100)
        self.assertEqual(asked, len(server.requests))

    def test_queues(self) -> None:
        """Several work queues share their connections to the server, and the password that is no
        part of the command line."""
        self.patch(workqueue, "environ", {"REDIS_PASSWORD": "secret"})
        reactor = MemoryReactorClock()
        first, second = workqueue._queues(_REDIS, [KeyPrefix("p"), KeyPrefix("r")], reactor)
        self.assertEqual(["p", "r"], [first.prefix.prefix, second.prefix.prefix])
        waiting = [one.counts() for one in (first, second)]
        reactor.advance(0)
        self.assertEqual([("127.0.0.1", 1)], [call[:2] for call in reactor.tcpClients])
        for one in waiting:
            one.addErrback(lambda failure: None)
            one.cancel()
