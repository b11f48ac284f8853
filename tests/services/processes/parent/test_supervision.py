"""Which processes run, and when they are started again."""

from __future__ import annotations

import errno
import signal

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.processes.parent.memorychildren import MemoryChild, MemoryChildren
from disque_tx.services.processes.parent.supervision import (
    BACKOFF_S_MAX,
    SILENT_S,
    START_S,
    STEADY_S,
    STOP_S,
    Supervision,
)
from tests.forwardclock import ForwardClock


class Notes:
    """Records what became of the processes. ``empty``: what :meth:`retired` returns."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []
        self.empty = True

    def opened(self) -> None:
        """All listen."""
        self.events.append(("opened",))

    def ready(self) -> None:
        """All serve."""
        self.events.append(("ready",))

    def restarting(self, number: int, how: str, pause_s: float) -> None:
        """One has ended."""
        self.events.append(("restarting", number, how, round(pause_s, 3)))

    def silent(self, number: int) -> None:
        """One was silent."""
        self.events.append(("silent", number))

    def retired(self, number: int) -> bool:
        """A surplus one has ended."""
        self.events.append(("retired", number))
        return self.empty

    def stopped(self, reason: str) -> None:
        """All have ended."""
        self.events.append(("stopped", reason))


class SupervisionCase(SynchronousTestCase):
    """Three processes."""

    def setUp(self) -> None:
        self.clock = ForwardClock()
        self.children = MemoryChildren()
        self.notes = Notes()
        self.supervision = Supervision(self.clock, self.children.launch, self.notes)
        self.addCleanup(self.assert_idle)

    def assert_idle(self) -> None:
        """After the end no timer is left."""
        self.supervision.stop()
        for number, member in list(self.supervision.members.items()):
            if member.child is not None:
                self.supervision.ended(number, "")
        self.assertEqual([], self.clock.getDelayedCalls())

    def start(self, serve: bool = True) -> None:
        """Start three processes, which serve at once or never."""
        self.supervision.start([1, 2, 3])
        if serve:
            for number in (1, 2, 3):
                self.serve(number)
            self.notes.events.clear()

    def serve(self, number: int) -> None:
        """The process serves."""
        self.supervision.responded(number)
        self.supervision.has_opened(number)
        self.supervision.is_ready(number)

    def pass_s(self, seconds: float, silent: tuple[int, ...] = ()) -> None:
        """Time passes in which all processes report, but those that are silent."""
        for _ in range(round(seconds * 2)):
            self.clock.advance(0.5)
            for number, member in self.supervision.members.items():
                if number not in silent and member.child is not None:
                    self.supervision.responded(number)


class StartTests(SupervisionCase):
    """The start of the daemon."""

    def test_ready(self) -> None:
        """The daemon is ready when all processes are, not before."""
        self.start(serve=False)
        self.assertEqual([1, 2, 3], [child.number for child in self.children.launched])
        for number in (1, 2, 3):
            self.supervision.has_opened(number)
        for number in (1, 2):
            self.supervision.is_ready(number)
        self.assertEqual([("opened",)], self.notes.events)
        self.supervision.is_ready(3)
        self.assertEqual([("opened",), ("ready",)], self.notes.events)

    def test_once(self) -> None:
        """A process that is started again later does not make the daemon ready anew."""
        self.start()
        self.supervision.ended(2, "signal 9")
        self.clock.advance(0)
        self.serve(2)
        self.assertNotIn(("ready",), self.notes.events)

    def test_fails_as_a_whole(self) -> None:
        """When one process cannot start, the others are stopped, and its reason is reported."""
        self.start(serve=False)
        self.supervision.has_failed(2, "the port is taken")
        self.supervision.ended(2, "status 1")
        for number in (1, 3):
            self.assertEqual([["stop", False]], self.children.last(number).messages)
            self.assertEqual([], self.notes.events)
            self.supervision.ended(number, "")
            if number == 3:
                break
            self.notes.events.clear()
        reason = "Process 2 did not start: the port is taken"
        self.assertEqual([("stopped", reason)], self.notes.events)

    def test_no_reason(self) -> None:
        """Without a reason, how it ended is reported."""
        self.start(serve=False)
        self.supervision.ended(1, "signal 11")
        for number in (2, 3):
            self.supervision.ended(number, "")
        reason = "Process 1 did not start: signal 11"
        self.assertEqual([("stopped", reason)], self.notes.events)

    def test_slow(self) -> None:
        """A process that takes its time to start is waited for, but not forever."""
        self.supervision.start([1])
        self.pass_s(START_S - 2, silent=(1,))
        self.assertEqual([], self.children.last(1).signals)
        self.pass_s(4, silent=(1,))
        self.assertIn(signal.SIGKILL, self.children.last(1).signals)

    def test_slow_again(self) -> None:
        """A process that is started again, much later than the daemon, has the same time for it."""
        self.start()
        self.pass_s(2 * START_S)
        self.supervision.ended(2, "signal 11")
        self.pass_s(2, silent=(2,))
        child = self.children.last(2)
        self.pass_s(START_S - 4, silent=(2,))
        self.assertEqual([], child.signals)
        self.pass_s(6, silent=(2,))
        self.assertIn(signal.SIGKILL, child.signals)

    def test_system_refuses(self) -> None:
        """When the system refuses to start a process, its error is the reason."""
        self.children.error = OSError(errno.EAGAIN, "Resource temporarily unavailable")
        self.supervision.start([1])
        self.clock.advance(0)
        reason = "Process 1 did not start: Resource temporarily unavailable"
        self.assertEqual([("stopped", reason)], self.notes.events)

    def test_system_refuses_all(self) -> None:
        """When it refuses every process, the first one is the reason, and the daemon ends once."""
        self.supervision = Supervision(self.clock, self.refuse, self.notes)
        self.supervision.start([1, 2, 3])
        self.clock.advance(0)
        reason = "Process 1 did not start: Resource temporarily unavailable"
        self.assertEqual([("stopped", reason)], self.notes.events)

    def refuse(self, number: int) -> MemoryChild:
        """No process can be started."""
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")


class RestartTests(SupervisionCase):
    """Processes that end by themselves."""

    def test_at_once(self) -> None:
        """A process that served is started again without delay."""
        self.start()
        self.pass_s(STEADY_S)
        self.supervision.ended(2, "signal 9")
        self.assertEqual([("restarting", 2, "signal 9", 0)], self.notes.events)
        self.clock.advance(0)
        self.assertEqual([1, 2, 3, 2], [child.number for child in self.children.launched])
        self.assertEqual(1, self.supervision.members[2].restarts)

    def test_backoff(self) -> None:
        """One that ends again and again is started less and less often, and so uses no core for
        it."""
        self.start()
        pauses: list[object] = []
        for _ in range(10):
            self.notes.events.clear()
            self.supervision.ended(1, "status 1")
            pauses.append(self.notes.events[0][3])
            self.pass_s(BACKOFF_S_MAX)
        self.assertEqual([0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10], pauses)

    def test_recovered(self) -> None:
        """One that has served for a while is started at once again."""
        self.start()
        for _ in range(5):
            self.supervision.ended(1, "status 1")
            self.pass_s(BACKOFF_S_MAX)
        self.serve(1)
        self.pass_s(STEADY_S)
        self.notes.events.clear()
        self.supervision.ended(1, "status 1")
        self.assertEqual([("restarting", 1, "status 1", 0)], self.notes.events)

    def test_reason(self) -> None:
        """The log says why it ended, when the process said so."""
        self.start()
        self.supervision.has_failed(1, "the disk is full")
        self.supervision.ended(1, "status 1")
        self.assertEqual([("restarting", 1, "the disk is full", 0)], self.notes.events)

    def test_system_refuses(self) -> None:
        """When the system refuses to start it, that is tried again."""
        self.start()
        self.children.error = OSError(errno.ENOMEM, "Cannot allocate memory")
        self.supervision.ended(1, "signal 9")
        self.pass_s(1)
        self.assertIsNotNone(self.supervision.members[1].child)
        self.assertIn(("restarting", 1, "Cannot allocate memory", 0.1), self.notes.events)


class WatchdogTests(SupervisionCase):
    """Processes that do not report."""

    def test_silent(self) -> None:
        """One that is silent for five seconds is killed, the others are not."""
        self.start()
        self.pass_s(SILENT_S, silent=(2,))
        self.assertEqual([], self.children.last(2).signals)
        self.assertTrue(self.supervision.alive)
        self.pass_s(1.5, silent=(2,))
        self.assertEqual(("silent", 2), self.notes.events[0])
        self.assertIn(signal.SIGKILL, self.children.last(2).signals)
        self.assertEqual([], self.children.last(1).signals)
        self.assertFalse(self.supervision.alive)

    def test_alive(self) -> None:
        """systemd's watchdog is fed again when the process that ended is back."""
        self.start()
        self.pass_s(STEADY_S)
        self.supervision.ended(3, "signal 9")
        self.assertFalse(self.supervision.alive)
        self.clock.advance(0)
        self.assertTrue(self.supervision.alive)

    def test_parent_did_not_run(self) -> None:
        """When the parent was suspended, the processes reported all the same: it must not kill
        them before it has read that."""
        self.start()
        self.clock.advance(60)
        self.assertEqual([], self.notes.events)
        self.pass_s(10)
        self.assertEqual([], self.notes.events)

    def test_silent_after_a_suspension(self) -> None:
        """A process that is silent since then is killed nevertheless."""
        self.start()
        self.clock.advance(60)
        self.pass_s(SILENT_S + 2, silent=(1,))
        self.assertIn(("silent", 1), self.notes.events)


class StopTests(SupervisionCase):
    """The end of the daemon."""

    def test_asked_then_killed(self) -> None:
        """Processes are asked to end, and killed in time for a stop within ten seconds."""
        self.start()
        self.supervision.stop()
        self.supervision.ended(1, "")
        self.clock.advance(STOP_S - 0.1)
        self.assertEqual([], self.children.last(2).signals)
        self.clock.advance(0.1)
        for number in (2, 3):
            child = self.children.last(number)
            self.assertEqual(([["stop", False]], [signal.SIGKILL]), (child.messages, child.signals))
            self.supervision.ended(number, "signal 9")
        self.assertEqual([("stopped", "")], self.notes.events)

    def test_rewrite(self) -> None:
        """SHUTDOWN REWRITE-AOF is passed on."""
        self.start()
        self.supervision.stop(rewrite_log=True)
        self.supervision.stop()
        self.assertEqual([["stop", True]], self.children.last(3).messages)

    def test_during_a_pause(self) -> None:
        """A process that was about to be started again is not."""
        self.start()
        for _ in range(2):
            self.supervision.ended(1, "status 1")
            self.clock.advance(0)
        self.supervision.stop()
        self.pass_s(1)
        self.assertEqual(4, len(self.children.launched))


class SurplusTests(SupervisionCase):
    """A process that is not wanted any more."""

    def test_retired(self) -> None:
        """One that is empty is ended, and not started again."""
        self.start()
        self.supervision.retire(3)
        self.assertEqual([["stop", False]], self.children.last(3).messages)
        self.supervision.ended(3, "")
        self.assertEqual([("retired", 3)], self.notes.events)
        self.assertEqual({1, 2}, set(self.supervision.members))

    def test_not_empty_after_all(self) -> None:
        """One that got a job in the last moment is started again."""
        self.start()
        self.notes.empty = False
        self.supervision.retire(3)
        self.supervision.ended(3, "")
        self.clock.advance(0)
        self.assertEqual(3, self.children.launched[-1].number)
        self.assertFalse(self.supervision.members[3].retiring)

    def test_crashes(self) -> None:
        """One that ends in another way is started again: it may have jobs."""
        self.start()
        self.supervision.retire(3)
        self.supervision.ended(3, "signal 9")
        self.assertEqual([("restarting", 3, "signal 9", 0)], self.notes.events)
