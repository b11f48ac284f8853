"""Paused queues, and the order of jobs."""

from __future__ import annotations

import attrs

from disque_tx.sim.checkers.queues.order import OldestFirst, PauseRespected
from disque_tx.sim.stage.history import Added, RecordedPause
from tests.sim.checkers.bench import HERE, THERE, CheckerCase, S


class PausedTests(CheckerCase):
    """Delivery from paused queues."""

    def pause(
        self, at_s: float, flags: int, node: bytes = HERE, everywhere: bool = False
    ) -> RecordedPause:
        """The queue is paused, with a reply a millisecond later."""
        us = int(at_s * S)
        made = RecordedPause(b"q", node, flags, everywhere, us, us + 1_000)
        self.history.pauses.append(made)
        return made

    def accept(self) -> None:
        """An ADDJOB is sent at 2 s and answered at 3 s; its client has the answer at 4 s."""
        added = Added(b"D", b"q", HERE, 2 * S, 1, 1, 9, 0, False, 3 * S, 4 * S)
        self.history.added[b"D"] = added

    def test_here(self) -> None:
        """Between PAUSE out and PAUSE none the node delivers nothing from the queue."""
        self.pause(1, 2)
        self.pause(3, 0)
        for at_s in (0.9, 2, 4):
            self.deliver(at_s)
        self.deliver(2, THERE)
        self.assertEqual(1, self.found(PauseRespected()))

    def test_everywhere(self) -> None:
        """With BCAST no node delivers anything; if messages get lost, nothing is checked."""
        self.pause(1, 2, everywhere=True)
        self.deliver(2, THERE)
        self.assertEqual(1, self.found(PauseRespected()))
        self.fault("partition")
        self.assertEqual(0, self.found(PauseRespected()))

    def test_in(self) -> None:
        """A queue with paused input accepts no job, and delivers those it has."""
        self.pause(1, 1)
        self.deliver(2)
        self.accept()
        self.assertEqual(1, self.found(PauseRespected()))

    def test_released_in_time(self) -> None:
        """A slow ADDJOB may be executed after a PAUSE that was sent later and ends the first one;
        any other PAUSE excuses nothing."""
        self.pause(1, 3)
        self.accept()
        cases = (
            (self.pause(2.5, 2), 0),
            (self.pause(2.9, 0, everywhere=True), 0),
            (self.pause(2.5, 0, THERE, everywhere=True), 0),
            (self.pause(2.5, 0, b""), 0),
            (self.pause(2.5, 0, THERE), 1),
            (self.pause(2.5, 1), 1),
            (self.pause(3, 0), 1),
            (attrs.evolve(self.pause(2.5, 0), queue=b"other"), 1),
        )
        for paused, breaches in cases:
            self.history.pauses[1:] = [paused]
            self.assertEqual(breaches, self.found(PauseRespected()), paused)

    def test_excuses(self) -> None:
        """A request without a reply may take effect late, and a restart forgets the flags."""
        self.pause(1, 3)
        self.deliver(2)
        self.run_.machines[0].started_us = 1_500_000
        self.assertEqual(0, self.found(PauseRespected()))
        self.run_.machines[0].started_us = 0
        self.assertEqual(1, self.found(PauseRespected()))
        self.pause(1.5, 0).answered_us = -1
        self.assertEqual(0, self.found(PauseRespected()))


class OrderTests(CheckerCase):
    """The order of jobs within one reply."""

    def test_one_answer(self) -> None:
        """Within one reply the older job comes first; between replies any order is allowed."""
        checker = OldestFirst()
        checker.born = {b"old": 1, b"young": 2}
        self.deliver(1, job=b"young", answer=1)
        self.deliver(1, job=b"old", answer=2)
        self.assertEqual(0, self.found(checker))
        self.deliver(2, job=b"young", answer=3)
        self.deliver(2, job=b"old", answer=3)
        self.assertEqual(1, self.found(checker))
