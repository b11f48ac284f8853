"""Rounds that a reactor runs itself: what holds for nodes under any reactor holds for these."""

from __future__ import annotations

import select

from twisted.internet.testing import MemoryReactorClock
from zope.interface import implementer

from disque_tx.services.turns.interfaces import IRoundsReactor
from disque_tx.services.turns.rounds import Rounds
from tests.forwardclock import ForwardReactor
from tests.services.net import test_transport
from tests.services.nodebench import NodeCase
from tests.services.turns import test_pump, test_runtime


@implementer(IRoundsReactor)
class RoundsReactor(ForwardReactor):
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
        late, soon, never = [
            test_runtime.Alarm(self.node, ms) for ms in (now_ms + 700, now_ms + 20, -1)
        ]
        self.runtime.turns.deadlines += [late, never, soon]
        self.reactor.advance(0.02)
        self.assertEqual(([], [now_ms + 20]), (late.woken_ms, soon.woken_ms))
        self.reactor.advance(0.68)
        self.assertEqual([now_ms + 700], late.woken_ms)


class WaitTests(Driven):
    """How long a reactor that has nothing to do waits for sockets."""

    def waits(self, timeout_ms: int, *due_in_ms: int) -> list[float]:
        """The seconds of each wait, which passes without any input."""
        found: list[float] = []

        def poll(wait_s: float, _events: int) -> list[tuple[int, int]]:
            found.append(wait_s)
            self.reactor.rightNow += max(wait_s, 0.0)
            rounds.interrupted = len(found) == len(due_in_ms) + 1
            return []

        with self.runtime.turn() as node:
            alarms = [test_runtime.Alarm(node, node.now_ms + ms) for ms in due_in_ms]
        self.runtime.turns.deadlines[:] = alarms
        rounds = self.runtime.rounds
        rounds.open(poll, lambda _fd, _event: None)
        rounds.run(timeout_ms)
        return found

    def test_until_due(self) -> None:
        """A wait ends when the next thing is due, so that jobs are delivered on time; without
        anything due it ends with the time of the reactor, or with input alone."""
        self.assertEqual([-1.0], self.waits(-1))
        self.assertEqual([0.5], self.waits(500))
        self.assertEqual([5.0, 2.0, -1.0], self.waits(-1, 7_000, 5_000))
        self.assertEqual([5.0, 2.0, 3.0], self.waits(10_000, 7_000, 5_000))
        self.assertEqual([2.0], self.waits(2_000, 5_000))


class PollerTests(Driven):
    """The reactor's own poller among the sockets of a node."""

    def served(self, *events: tuple[int, int]) -> tuple[bool, list[tuple[int, int]]]:
        """Run one round with these events: whether the reactor gets control for its poller, which
        has the descriptor 1, and what was served."""
        found: list[tuple[int, int]] = []

        def poll(_wait_s: float, _events: int) -> list[tuple[int, int]]:
            rounds.interrupted = True
            return list(events)

        rounds = self.runtime.rounds
        rounds.reactor_fd = 1
        rounds.open(poll, lambda fd, event: found.append((fd, event)))
        return rounds.run(0), found

    def test_who_is_ready(self) -> None:
        """The reactor gets control when its own poller is ready, alone or among others, and not for
        a socket: what that socket has is served instead, whatever kind of event it is."""
        readable = select.EPOLLIN
        self.assertEqual((True, []), self.served((1, readable)))
        self.assertEqual((False, [(9, readable)]), self.served((9, readable)))
        self.assertEqual((True, [(9, readable)]), self.served((9, readable), (1, readable)))
        self.assertEqual((False, []), self.served())


class FaultTests(Driven, test_runtime.FaultTests):
    """Internal errors."""

    def test_while_it_is_due(self) -> None:
        """An exception at a deadline ends its turn, and what was due is still due."""
        alarm = test_runtime.Alarm(self.node, self.node.now_ms + 20)
        self.runtime.turns.deadlines.append(alarm)
        run_due = alarm.run_due
        self.patch(alarm, "run_due", lambda: 1 / 0)
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
