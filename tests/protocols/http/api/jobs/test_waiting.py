"""Waiting for the end of a job that other nodes have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import Status
from disque_tx.errors import CommandError
from disque_tx.protocols.http.api.jobs.waiting import wait
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.problems import Problem

ME, NODE = b"m" * 40, b"a" * 40


class ElsewhereTests(SynchronousTestCase):
    """One other node, which has the job and does not always answer."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.up, self.known = True, True
        self.ended: Status | None = None

    async def call(self, *words: bytes) -> dict[bytes, Any]:
        """The node of the request does not know the job; the other one may be asked."""
        if words[0] == b"WAITJOB":
            raise CommandError("NOJOB", "Job not known in the context of this node.")
        looks = words[2] == b"HOLDS"
        value = [3 if self.known else 0] if looks else self.ended
        answers: list[Any] = [(ME, [0])] if looks else []
        answers += [(NODE, value)] if self.up else []
        return {b"answers": answers, b"nodes-missing": [] if self.up else [NODE]}

    def waiting(self) -> Deferred[Any]:
        """Wait for a minute."""
        host = SimpleNamespace(processes=None, reactor=self.clock)
        exchange = SimpleNamespace(
            call=self.call, host=host, path={"id": b"D-x"}, number=lambda _: 60_000
        )
        return Deferred.fromCoroutine(wait(cast(Exchange, exchange)))

    def pass_s(self, seconds: int) -> None:
        """Time passes."""
        self.clock.pump([0.2] * (5 * seconds))

    def test_restarted(self) -> None:
        """A producer goes on waiting while the node that has its job is paused or started again."""
        waiting = self.waiting()
        self.up = False
        self.pass_s(20)
        self.assertNoResult(waiting)
        self.up, self.ended = True, Status(b"ACKED")
        self.pass_s(1)
        self.assertEqual({"ended": "acked"}, self.successResultOf(waiting))

    def test_time_over(self) -> None:
        """In the end it is told whether the job has not ended, or nothing is known of it."""
        waiting = self.waiting()
        self.pass_s(59)
        self.assertNoResult(waiting)
        self.pass_s(2)
        self.assertEqual({"ended": None}, self.successResultOf(waiting))
        self.up = False
        lost = self.waiting()
        self.pass_s(61)
        self.assertEqual("TRYLATER", self.failureResultOf(lost, Problem).value.code)

    def test_unknown(self) -> None:
        """A job that no node knows is refused at once."""
        self.known = False
        self.assertEqual("NOJOB", self.failureResultOf(self.waiting(), CommandError).value.code)
