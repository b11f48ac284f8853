"""Rounds that a reactor runs itself: what holds for nodes under any reactor holds for these."""

from __future__ import annotations

import select

from twisted.internet.testing import MemoryReactorClock
from zope.interface import implementer

from disque_tx.services.rounds import Rounds
from disque_tx.services.turninterfaces import IRoundsReactor
from tests.services import test_pump, test_runtime
from tests.services.net import test_transport
from tests.services.nodebench import NodeCase


@implementer(IRoundsReactor)
class RoundsReactor(MemoryReactorClock):
    """Runs the rounds of a node whenever time advances, until nothing is ready."""

    _attached: tuple[Rounds, select.epoll] | None = None

    def attach(self, rounds: Rounds, poller: select.epoll) -> bool:
        if self._attached is not None:
            return False
        self._attached = rounds, poller
        return True

    def detach(self, rounds: Rounds) -> None:
        self._attached = None

    def advance(self, amount: float) -> None:
        super().advance(amount)
        while self._attached is not None:
            rounds, poller = self._attached
            rounds.run(0)
            super().advance(0)
            if not rounds.is_waiting() and not select.select([poller], [], [], 0)[0]:
                return


class Driven(NodeCase):
    """Mixed into tests on nodes."""

    def make_reactor(self) -> MemoryReactorClock:
        return RoundsReactor()


class TimerTests(Driven, test_runtime.TimerTests):
    """Deadlines."""

    def test_no_calls(self) -> None:
        """Timers of jobs and clients are no calls of the reactor, which would be made and cancelled
        for jobs that end before they are due."""
        client, _transport = self.connect()
        client.dataReceived(b"GETJOB TIMEOUT 50 FROM q\r\n")
        self.turn(b"ADDJOB other b 0 DELAY 5")
        self.assertEqual([], self.reactor.getDelayedCalls())


class TurnTests(Driven, test_runtime.TurnTests):
    """Turns."""


class DeadlineTests(Driven, test_runtime.DeadlineTests):
    """Deadlines of other parts."""

    def test_earliest(self) -> None:
        """The earliest one ends the waiting, whichever part it is of."""
        now_ms = self.node.now_ms
        late, soon = test_runtime.Alarm(now_ms + 700), test_runtime.Alarm(now_ms + 20)
        self.runtime.turns.deadlines += [late, test_runtime.Alarm(-1), soon]
        self.reactor.advance(0.02)
        self.assertEqual(([], [now_ms + 20]), (late.woken_ms, soon.woken_ms))
        self.reactor.advance(0.68)
        self.assertEqual([now_ms + 700], late.woken_ms)


class FaultTests(Driven, test_runtime.FaultTests):
    """Internal errors."""

    def test_while_it_is_due(self) -> None:
        """An exception at a deadline ends its turn, and what was due is still due."""
        alarm = test_runtime.Alarm(self.node.now_ms + 20)
        self.runtime.turns.deadlines.append(alarm)
        run_due = alarm.run_due
        self.patch(alarm, "run_due", lambda now_ms: 1 / 0)
        self.assertRaises(ZeroDivisionError, self.reactor.advance, 0.02)
        self.assertFalse(self.runtime.turns.active)
        self.patch(alarm, "run_due", run_due)
        self.reactor.advance(0)
        self.assertEqual(-1, alarm.next_due_ms())


class OrderTests(Driven, test_pump.OrderTests):
    """What is sent when."""


class BoundTests(Driven, test_pump.BoundTests):
    """The shares of clients."""


class EndTests(Driven, test_pump.EndTests):
    """The ends of connections."""


class TransportTests(Driven, test_transport.FastTransportTests):
    """The transport."""
