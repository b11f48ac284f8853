"""Turns and timers."""

from __future__ import annotations

import time
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from disque_tx.core.node import Node
from disque_tx.engine.turns import OutgoingLinks
from disque_tx.errors import LocalError
from disque_tx.services.machine.delays import Delays
from disque_tx.services.node.periodic import Cron
from disque_tx.services.turns.interfaces import IClock, ITurn
from disque_tx.services.turns.pump import Session
from disque_tx.services.turns.runtime import Runtime, SystemClock
from disque_tx.wire.events.records import EventRecorder
from tests.commands.desk import UNIX_S
from tests.services.doubles import StillLog
from tests.services.nodebench import FIRST_ID, NodeCase, drive


class ClockTests(SynchronousTestCase):
    """The clocks of the machine."""

    def test_units(self) -> None:
        """Milliseconds of the monotonic clock and microseconds of the wall clock."""
        clock = SystemClock()
        verifyObject(IClock, clock)
        before_ms, before_us = time.monotonic() * 1000, time.time() * 1_000_000
        self.assertTrue(0 <= float(clock.steady_ms()) - before_ms + 1 < 10_000)
        self.assertTrue(0 <= float(clock.wall_us()) - before_us + 1 < 10_000_000)


class TimerTests(NodeCase):
    """Deadlines are met without any client activity."""

    def test_delayed_job(self) -> None:
        """A delayed job is delivered to a waiting client when it is due, not before."""
        client, transport = self.connect()
        client.dataReceived(b"GETJOB FROM q\r\n")
        self.turn(b"ADDJOB q b 0 DELAY 5")
        self.reactor.advance(4.9)
        self.assertEqual(b"", transport.value())
        self.reactor.advance(0.2)
        self.assertIn(FIRST_ID, transport.value())

    def test_earlier_one(self) -> None:
        """An earlier deadline moves the timer forward."""
        self.turn(b"ADDJOB q b 0 DELAY 50", b"ADDJOB soon b 0 DELAY 1")
        self.reactor.advance(1.1)
        self.assertEqual(b":1\r\n:0\r\n", self.turn(b"QLEN soon", b"QLEN q"))

    def test_timeout(self) -> None:
        """GETJOB's TIMEOUT gets its reply not before it has elapsed, and soon afterwards."""
        client, transport = self.connect()
        client.dataReceived(b"GETJOB TIMEOUT 150 FROM q\r\n")
        self.reactor.advance(0.149)
        self.assertEqual(b"", transport.value())
        self.reactor.advance(0.101)
        self.assertEqual(b"*-1\r\n", transport.value())

    def test_stop(self) -> None:
        """A stopped runtime leaves nothing in the reactor, and sets no more timers."""
        self.turn(b"ADDJOB q b 0 DELAY 5")
        self.runtime.stop()
        self.turn(b"ADDJOB q b 0 DELAY 1")
        self.assertEqual([], self.reactor.getDelayedCalls())


class Alarm:
    """A deadline of a node; records when it was run."""

    def __init__(self, node: Node, due_ms: int) -> None:
        self.node = node
        self.due_ms = due_ms
        self.woken_ms: list[int] = []

    def next_due_ms(self) -> int:
        return self.due_ms

    def run_due(self) -> None:
        now_ms = int(self.node.now_ms)
        if 0 <= self.due_ms <= now_ms:
            self.due_ms = -1
            self.woken_ms.append(now_ms)


class SlowAlarm(Alarm):
    """One that takes a quarter of a second."""

    def __init__(self, node: Node, due_ms: int, reactor: MemoryReactorClock) -> None:
        super().__init__(node, due_ms)
        self._reactor = reactor

    def run_due(self) -> None:
        if 0 <= self.due_ms <= self.node.now_ms:
            self._reactor.rightNow += 0.25
        super().run_due()


class DeadlineTests(NodeCase):
    """Parts of the node with deadlines of their own."""

    def test_earliest(self) -> None:
        """One timer serves all of them, the earliest first; parts without a deadline are not
        run."""
        now_ms = self.node.now_ms
        late, soon, never = [Alarm(self.node, ms) for ms in (now_ms + 700, now_ms + 20, -1)]
        self.runtime.turns.deadlines += [late, never, soon]
        self.turn(b"ADDJOB q b 0 DELAY 5")
        self.assertEqual(1, len(self.reactor.getDelayedCalls()))
        self.reactor.advance(0.02)
        self.assertEqual(([], [now_ms + 20]), (late.woken_ms, soon.woken_ms))
        self.reactor.advance(0.68)
        self.assertEqual(([now_ms + 700], []), (late.woken_ms, never.woken_ms))
        self.reactor.advance(5)
        self.assertEqual(b":1\r\n", self.turn(b"QLEN q"))

    def test_slow(self) -> None:
        """What was due and took long is a sample of LATENCY, with the second in which it began."""
        self.server.latency.threshold_ms = 100
        now_ms = self.node.now_ms
        slow = SlowAlarm(self.node, now_ms + 3_000, self.reactor)
        quick = Alarm(self.node, now_ms + 5_000)
        self.runtime.turns.deadlines += [slow, quick]
        self.turn(b"PING")
        self.reactor.pump([3.0, 3.0])
        self.assertEqual(([now_ms + 3_000], 1), (slow.woken_ms, len(quick.woken_ms)))
        (found,) = self.server.latency.series.items()
        self.assertEqual((b"jobs-processing", [(UNIX_S + 3, 250)]), (found[0], [*found[1].samples]))


class TurnTests(NodeCase):
    """The end of a turn."""

    def test_interface(self) -> None:
        """The hub and other services use turns through an interface."""
        verifyObject(ITurn, self.runtime)

    def test_nodes_are_saved_first(self) -> None:
        """A change of the node table is saved before anything about it is sent."""
        client, transport = self.connect()
        seen: list[bytes] = []

        def save() -> None:
            seen.append(transport.value())
            self.node.membership.saved()

        self.runtime.turns.save_nodes = save
        client.dataReceived(b"CLUSTER LEAVING yes\r\n")
        self.assertEqual(([b""], b"+OK\r\n"), (seen, transport.value()))
        client.dataReceived(b"PING\r\n")
        self.assertEqual([b""], seen)

    def test_turn(self) -> None:
        """Input from other services is a turn of its own, or part of the current one."""
        with self.runtime.turn() as node:
            self.assertIs(self.node, node)
            with self.runtime.turn():
                self.assertTrue(self.runtime.turns.active)
            self.assertTrue(self.runtime.turns.active)
            self.assertEqual(0, self.commits.commits)
        self.assertEqual((False, 1), (self.runtime.turns.active, self.commits.commits))

    def test_fault_in_a_turn(self) -> None:
        """A turn ends even after an exception: earlier output is sent."""
        with self.assertRaises(ZeroDivisionError), self.runtime.turn():
            raise ZeroDivisionError
        self.assertEqual((False, 1), (self.runtime.turns.active, self.commits.commits))

    def test_write_error(self) -> None:
        """After a failed write, commands of the next turn are checked against it."""
        self.commits.write_error = "No space left on device"
        self.turn(b"PING")
        self.assertTrue(self.server.degraded)

    def test_paused_clients(self) -> None:
        """Requests sent during CLIENT PAUSE are executed when it ends."""
        client, transport = self.connect()
        self.turn(b"CLIENT PAUSE 1000")
        client.dataReceived(b"PING\r\n")
        self.assertEqual(b"", transport.value())
        self.server.paused_until_ms = 0
        with self.runtime.turn():
            self.runtime.resume_all()
        self.reactor.advance(0)
        self.assertEqual(b"+PONG\r\n", transport.value())

    def test_gone_before_its_turn(self) -> None:
        """A client that disconnected while its requests waited for their turn is not served."""
        client, _transport = self.connect()
        self.turn(b"CLIENT PAUSE 1000")
        client.dataReceived(b"ADDJOB q b 0\r\n")
        self.server.paused_until_ms = 0
        with self.runtime.turn():
            self.runtime.resume_all()
        client.connectionLost()
        self.reactor.advance(0)
        self.assertEqual(b":0\r\n", self.turn(b"QLEN q"))


class Faulty(OutgoingLinks):
    """A bus and an event log that raise. ``faults``: methods that raise. ``hang_ups``: connections
    to close, each of which causes another event; ``depth``, ``deepest``: of nested calls."""

    def __init__(self, runtime: Runtime, *faults: str, hang_ups: int = 0) -> None:
        self._runtime = runtime
        self._faults = faults
        self.hang_ups = hang_ups
        self.depth = self.deepest = 0

    def _run(self, name: str) -> None:
        if name in self._faults:
            raise ZeroDivisionError(name)

    def flush(self) -> None:
        self._run("flush")

    def perform(self) -> bool:
        self._run("perform")
        if not self.hang_ups:
            return False
        self.hang_ups -= 1
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        with self._runtime.turn() as node:
            node.outbox.touch(next(iter(self._runtime.server.clients.values())))
        self.depth -= 1
        return True

    def turn_ended(self) -> None:
        self._run("turn_ended")


class FaultTests(NodeCase):
    """Internal errors: a turn always ends, and output that depends on the error is not sent."""

    def setUp(self) -> None:
        super().setUp()
        self.died: list[str] = []
        self.runtime.fatal = self.died.append

    def test_in_the_cron(self) -> None:
        """An exception in the periodic work ends its turn: requests that TLS clients send
        afterwards get logged and answered at once, not only when another turn happens."""
        aof = StillLog()
        cron = Cron(self.runtime, self.settings, self.platform(), cast(Any, aof), Delays())
        aof.error = ZeroDivisionError()
        self.assertRaises(ZeroDivisionError, cron.run)
        self.assertFalse(self.runtime.turns.active)
        commits = self.commits.commits
        self.assertEqual(b"+%s\r\n" % FIRST_ID, self.turn(b"ADDJOB q b 0"))
        self.assertEqual(commits + 1, self.commits.commits)

    def test_while_it_is_due(self) -> None:
        """An exception at a deadline ends its turn, and the next timer is set."""
        alarm = Alarm(self.node, self.node.now_ms + 20)
        self.runtime.turns.deadlines.append(alarm)
        self.patch(alarm, "run_due", lambda: 1 / 0)
        self.turn(b"PING")
        self.assertRaises(ZeroDivisionError, self.reactor.advance, 0.02)
        self.assertFalse(self.runtime.turns.active)
        self.assertEqual(1, len(self.reactor.getDelayedCalls()))

    def test_while_written_down(self) -> None:
        """When it is unknown what is on disk, no replies are sent any more."""
        for broken in ("log", "nodes"):
            self.setUp()
            client, transport = self.connect()
            if broken == "log":
                self.commits.error = ZeroDivisionError()
            else:
                self.runtime.turns.save_nodes = lambda: cast(None, 1 / 0)
            request = b"CLUSTER LEAVING yes\r\n"
            self.assertRaises(ZeroDivisionError, client.dataReceived, request)
            self.commits.error = None
            client.dataReceived(b"PING\r\n")
            client.resumeProducing()
            self.assertEqual((False, b""), (self.runtime.turns.active, transport.value()), broken)
            (reason,) = self.died
            self.assertIn("ZeroDivisionError", reason)

    def test_log_failed(self) -> None:
        """The same when the disk failed under ``always``, which was already logged."""
        client, transport = self.connect()
        self.commits.error = LocalError("the disk is full")
        self.assertRaises(LocalError, client.dataReceived, b"ADDJOB q b 0\r\n")
        self.commits.error = None
        client.dataReceived(b"PING\r\n")
        self.assertEqual(([], b""), (self.died, transport.value()))

    def test_while_it_leaves(self) -> None:
        """Output unaffected by an exception is sent, and the exception is reported."""
        faulty = Faulty(self.runtime, "flush", "perform", "turn_ended")
        self.runtime.turns.links = self.runtime.turns.eventlog = faulty
        self.node.outbox.events = EventRecorder()
        self.assertEqual(b"+PONG\r\n", self.turn(b"PING"))
        self.assertFalse(self.runtime.turns.active)
        self.assertEqual(3, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.assertEqual([], self.died)

    def test_one_client(self) -> None:
        """An exception while writing to one connection affects no other."""
        victim, others = self.dial(), [self.dial() for _ in range(3)]
        session = self.server.clients[1]
        assert isinstance(session, Session)

        def send(data: bytes) -> int:
            raise ZeroDivisionError

        session.send = send
        for sock in (victim, *others):
            sock.sendall(b"PING\r\n")
        drive(self.reactor)
        for sock in others:
            self.assertEqual(b"+PONG\r\n", sock.recv(100))
        self.assertEqual(b"", victim.recv(100))
        self.assertIn("A fault in this program", self.logged())

    def test_never_nested(self) -> None:
        """Closing one connection may close the next: turns are never nested, however many there
        are, and the resulting changes are sent at once."""
        client, transport = self.connect()
        bus = self.runtime.turns.links = Faulty(self.runtime, hang_ups=5_000)
        client.dataReceived(b"PING\r\n")
        while bus.hang_ups:
            self.assertFalse(self.runtime.turns.active)
            self.reactor.advance(0)
        self.assertEqual((1, b"+PONG\r\n"), (bus.deepest, transport.value()))
        self.reactor.advance(0)
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_no_other_way(self) -> None:
        """Turns are context managers, so none can be left open by mistake."""
        self.assertFalse(hasattr(self.runtime, "begin") or hasattr(self.runtime, "end"))
