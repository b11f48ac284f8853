"""Turns and timers."""

from __future__ import annotations

import time

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from disque_tx.services.interfaces import IClock, ITurn
from disque_tx.services.runtime import SystemClock
from tests.services.nodebench import FIRST_ID, NodeCase


class ClockTests(SynchronousTestCase):
    """The clocks of the machine."""

    def test_units(self) -> None:
        """Milliseconds and microseconds, of the clocks they are said to be."""
        clock = SystemClock()
        verifyObject(IClock, clock)
        before_ms, before_us = time.monotonic() * 1000, time.time() * 1_000_000
        self.assertTrue(0 <= clock.steady_ms() - before_ms + 1 < 10_000)
        self.assertTrue(0 <= clock.wall_us() - before_us + 1 < 10_000_000)


class TimerTests(NodeCase):
    """What is due happens on time, with nobody sending anything."""

    def test_delayed_job(self) -> None:
        """A delayed job reaches a waiting client when it is due, not before."""
        client, transport = self.connect()
        client.dataReceived(b"GETJOB FROM q\r\n")
        self.turn(b"ADDJOB q b 0 DELAY 5")
        self.reactor.advance(4.9)
        self.assertEqual(b"", transport.value())
        self.reactor.advance(0.2)
        self.assertIn(FIRST_ID, transport.value())

    def test_earlier_one(self) -> None:
        """Something that is due earlier moves the timer forward."""
        self.turn(b"ADDJOB q b 0 DELAY 50", b"ADDJOB soon b 0 DELAY 1")
        self.reactor.advance(1.1)
        self.assertEqual(b":1\r\n:0\r\n", self.turn(b"QLEN soon", b"QLEN q"))

    def test_timeout(self) -> None:
        """GETJOB's TIMEOUT is answered not before it is over, and soon afterwards."""
        client, transport = self.connect()
        client.dataReceived(b"GETJOB TIMEOUT 150 FROM q\r\n")
        self.reactor.advance(0.149)
        self.assertEqual(b"", transport.value())
        self.reactor.advance(0.101)
        self.assertEqual(b"*-1\r\n", transport.value())

    def test_stop(self) -> None:
        """A stopped runtime leaves nothing in the reactor, and sets no timer again."""
        self.turn(b"ADDJOB q b 0 DELAY 5")
        self.runtime.stop()
        self.turn(b"ADDJOB q b 0 DELAY 1")
        self.assertEqual([], self.reactor.getDelayedCalls())


class Alarm:
    """Something that is due at a time; notes when it was woken."""

    def __init__(self, due_ms: int) -> None:
        self.due_ms = due_ms
        self.woken_ms: list[int] = []

    def next_due_ms(self) -> int:
        return self.due_ms

    def run_due(self, now_ms: int) -> None:
        if 0 <= self.due_ms <= now_ms:
            self.due_ms = -1
            self.woken_ms.append(now_ms)


class DeadlineTests(NodeCase):
    """Parts of the node with times of their own."""

    def test_earliest(self) -> None:
        """One timer serves all of them, the earliest first, and what is never due is not woken."""
        now_ms = self.node.now_ms
        late, soon, never = Alarm(now_ms + 700), Alarm(now_ms + 20), Alarm(-1)
        self.runtime.deadlines += [late, never, soon]
        self.turn(b"ADDJOB q b 0 DELAY 5")
        self.assertEqual(1, len(self.reactor.getDelayedCalls()))
        self.reactor.advance(0.02)
        self.assertEqual(([], [now_ms + 20]), (late.woken_ms, soon.woken_ms))
        self.reactor.advance(0.68)
        self.assertEqual(([now_ms + 700], []), (late.woken_ms, never.woken_ms))
        self.reactor.advance(5)
        self.assertEqual(b":1\r\n", self.turn(b"QLEN q"))


class TurnTests(NodeCase):
    """What happens at the end of a turn."""

    def test_interface(self) -> None:
        """The hub and others see a turn."""
        verifyObject(ITurn, self.runtime)

    def test_nodes_are_saved_first(self) -> None:
        """Nobody hears of a change of the node table before it is written down."""
        client, transport = self.connect()
        seen: list[bytes] = []

        def save() -> None:
            seen.append(transport.value())
            self.node.membership.saved()

        self.runtime.save_nodes = save
        client.dataReceived(b"CLUSTER LEAVING yes\r\n")
        self.assertEqual(([b""], b"+OK\r\n"), (seen, transport.value()))
        client.dataReceived(b"PING\r\n")
        self.assertEqual([b""], seen)

    def test_turn(self) -> None:
        """Input from other services is a turn of its own, or part of the one under way."""
        with self.runtime.turn() as node:
            self.assertIs(self.node, node)
            with self.runtime.turn():
                self.assertTrue(self.runtime.in_turn)
            self.assertTrue(self.runtime.in_turn)
            self.assertEqual(0, self.commits.commits)
        self.assertEqual((False, 1), (self.runtime.in_turn, self.commits.commits))

    def test_fault_in_a_turn(self) -> None:
        """A turn ends in any case: what was done before the fault leaves."""
        with self.assertRaises(ZeroDivisionError), self.runtime.turn():
            raise ZeroDivisionError
        self.assertEqual((False, 1), (self.runtime.in_turn, self.commits.commits))

    def test_write_error(self) -> None:
        """From the turn after a failed write on, commands are checked against it."""
        self.commits.write_error = "No space left on device"
        self.turn(b"PING")
        self.assertTrue(self.server.troubled)

    def test_paused_clients(self) -> None:
        """What clients sent during CLIENT PAUSE is executed when it is over."""
        client, transport = self.connect()
        self.turn(b"CLIENT PAUSE 1000")
        client.dataReceived(b"PING\r\n")
        self.assertEqual(b"", transport.value())
        self.server.paused_until_ms = 0
        self.runtime.begin()
        self.runtime.resume_all()
        self.runtime.end()
        self.reactor.advance(0)
        self.assertEqual(b"+PONG\r\n", transport.value())

    def test_gone_before_its_turn(self) -> None:
        """A client that hung up while its requests waited for their turn is not served."""
        client, _transport = self.connect()
        self.turn(b"CLIENT PAUSE 1000")
        client.dataReceived(b"ADDJOB q b 0\r\n")
        self.server.paused_until_ms = 0
        self.runtime.begin()
        self.runtime.resume_all()
        self.runtime.end()
        client.connectionLost()
        self.reactor.advance(0)
        self.assertEqual(b":0\r\n", self.turn(b"QLEN q"))
