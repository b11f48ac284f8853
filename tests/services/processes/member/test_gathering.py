"""Figures of all processes of a daemon."""

from __future__ import annotations

from typing import Any

from disque_tx.services.clients.view import NodeView
from disque_tx.services.events.sinks import EventSinks
from disque_tx.services.processes.channel import Message
from disque_tx.services.processes.member.gathering import TIMEOUT_S, Gathering
from tests.services.nodebench import NodeCase


class GatheringTests(NodeCase):
    """A process among three."""

    def setUp(self) -> None:
        super().setUp()
        self.sent: list[Message] = []
        view = NodeView(self.server, EventSinks(self.node), lambda: True)
        self.gathering = Gathering(1, view, self.reactor, self.sent.append)
        self.gathering.others = [2, 3]

    def figures(self) -> dict[str, Any]:
        """Those of this process."""
        view: Any = self.gathering._view
        return dict(view.figures())

    def test_all(self) -> None:
        """The answer has the figures of every process, in order."""
        done: Any = self.gathering.gather()
        self.assertEqual([["ask", 1]], self.sent)
        self.gathering.answered(3, 1, {"three": 3})
        self.assertNoResult(done)
        self.gathering.answered(2, 1, {"two": 2})
        found = self.successResultOf(done)
        self.assertEqual([1, 2, 3], list(found))
        self.assertEqual({"two": 2}, found[2])

    def test_silent(self) -> None:
        """A process that is stuck does not keep monitoring from the others."""
        done: Any = self.gathering.gather()
        self.gathering.answered(2, 1, {})
        self.gathering.answered(2, 1, {"again": 1})
        self.reactor.advance(TIMEOUT_S)
        self.assertEqual([1, 2], list(self.successResultOf(done)))
        self.gathering.answered(3, 1, {})

    def test_alone(self) -> None:
        """While there are no others, the answer is there at once."""
        self.gathering.others = []
        done: Any = self.gathering.gather()
        self.assertEqual([1], list(self.successResultOf(done)))
        self.assertEqual([], self.sent)

    def test_cancelled(self) -> None:
        """A scrape that is given up leaves nothing behind."""
        done = self.gathering.gather()
        done.addErrback(lambda _: None)
        done.cancel()
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_asked(self) -> None:
        """A question of another process is answered with figures that JSON has."""
        self.turn(b"ADDJOB q b 0")
        self.gathering.asked(2, 7)
        ((kind, asker, token, figures),) = self.sent
        self.assertEqual(["answer", 2, 7], [kind, asker, token])
        self.assertEqual("1", figures["info"]["registered_jobs"])
