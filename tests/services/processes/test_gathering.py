"""Figures of all processes of a daemon."""

from __future__ import annotations

from typing import Any

from disque_tx.services.clients.view import NodeView
from disque_tx.services.events.sinks import EventSinks
from disque_tx.services.processes.channel import Message
from disque_tx.services.processes.gathering import ENDED, TIMEOUT_S, FigureGathering
from tests.services.nodebench import NodeCase


class GatheringTests(NodeCase):
    """A process among three."""

    def setUp(self) -> None:
        super().setUp()
        self.sent: list[Message] = []
        view = NodeView(self.server, EventSinks(self.node), lambda: True)
        self.gathering = FigureGathering(1, view, self.reactor, self.sent.append)
        self.gathering.others = [2, 3]

    def figures(self) -> dict[str, Any]:
        """Those of this process."""
        view: Any = self.gathering._view
        return dict(view.figures())

    def test_all(self) -> None:
        """The answer has the figures of every process, in order."""
        done: Any = self.gathering.gather()
        ((kind, token, mine),) = self.sent
        self.assertEqual(("ask", 1, sorted(self.figures())), (kind, token, sorted(mine)))
        self.gathering.answered(ENDED, 1, None)
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
        self.gathering.answered(ENDED, 1, None)
        self.reactor.advance(TIMEOUT_S)
        self.assertEqual(["late", 1, [3]], self.sent[-1])
        self.gathering.answered(3, 1, {"too": "late"})
        self.gathering.answered(ENDED, 1, {"counters": 3})
        self.assertEqual([0, 1, 2], list(self.successResultOf(done)))
        self.gathering.answered(3, 1, {})

    def test_silent_parent(self) -> None:
        """Nor does a parent that is about to end."""
        done: Any = self.gathering.gather()
        for _ in range(2):
            self.assertNoResult(done)
            self.reactor.advance(TIMEOUT_S)
        self.assertEqual([1], list(self.successResultOf(done)))

    def test_ended(self) -> None:
        """What a process had counted that is gone is in the answer, so that sums do not fall while
        it is away, and is no process."""
        self.gathering.others = []
        done: Any = self.gathering.gather()
        self.gathering.answered(ENDED, 1, {"counters": 5})
        self.assertEqual([0, 1], list(self.successResultOf(done)))

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
