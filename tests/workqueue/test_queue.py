"""Leases of the work queue on Redis, by what is asked of the server."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue.items import Item
from disque_tx.workqueue.queue import WorkQueue
from disque_tx.workqueue.scripts import CLAIM, GIVE_BACK, LEASE
from tests.workqueue.redisdouble import SILENCE, RedisDouble


class LeaseTests(SynchronousTestCase):
    """``lease`` on a server whose queue is empty, until an item comes."""

    def setUp(self) -> None:
        self.server = RedisDouble(self.answer)
        self.queue = WorkQueue("P", self.server.redis)
        self.waiting: Any = None
        self.moved: Any = b"one"

    def answer(self, words: list[bytes]) -> Any:
        """The replies; an item that waits is leased at once."""
        if words[0] == b"BRPOPLPUSH":
            return self.moved
        scripts = {LEASE.sha: self.waiting, CLAIM.sha: b"data", GIVE_BACK.sha: 1}
        return scripts[words[1].decode()] if words[0] == b"EVALSHA" else b"OK"

    def lease(self, **how: Any) -> Deferred[Item | None]:
        """Lease for a minute."""
        found = self.queue.lease(60, **how)
        self.server.settle()
        return found

    def ran(self, script: Any) -> list[list[bytes]]:
        """The arguments of each execution of a script, after the prefix."""
        sha = script.sha.encode()
        requests = [words for _, words in self.server.requests if words[:2] == [b"EVALSHA", sha]]
        return [words[7:] for words in requests]

    def test_ready(self) -> None:
        """An item that waits already is leased in one step, and nothing is waited for."""
        self.waiting = [b"one", b"data"]
        self.assertEqual(Item("one", b"data"), self.successResultOf(self.lease()))
        self.assertEqual([b"EVALSHA"], self.server.commands())

    def test_waits(self) -> None:
        """An item that comes later is moved from those that wait to those that are worked on, and
        then leased for as long as was asked."""
        self.assertEqual(Item("one", b"data"), self.successResultOf(self.lease(timeout_s=5)))
        ((_, words),) = [one for one in self.server.requests if one[1][0] == b"BRPOPLPUSH"]
        self.assertEqual([b"P:queue", b"P:processing"], words[1:3])
        self.assertEqual(5.0, float(words[3]))
        self.assertEqual([[b"one", self.queue.session.encode(), b"60000"]], self.ran(CLAIM))

    def test_none(self) -> None:
        """Who does not wait, or whose time is over, gets nothing."""
        self.assertIsNone(self.successResultOf(self.lease(block=False)))
        self.assertEqual([b"EVALSHA"], self.server.commands())
        self.moved = SILENCE
        waiting = self.lease(timeout_s=5)
        self.assertNoResult(waiting)
        self.server.reactor.advance(5)
        self.server.transports[-1].protocol.dataReceived(b"$-1\r\n")
        self.assertIsNone(self.successResultOf(waiting))

    def test_cancelled(self) -> None:
        """An item that arrives after a wait was cancelled is given back to others."""
        self.moved = SILENCE
        waiting = self.lease()
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        self.server.transports[-1].protocol.dataReceived(b"$3\r\none\r\n")
        self.server.settle()
        self.assertEqual([[b"one", self.queue.session.encode()]], self.ran(GIVE_BACK))
