"""What signals do to ``disque-server``."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs.signals import Daemon, handle_signals
from disque_tx.services.machine.log import DaemonLog
from tests.services.rootbench import RootReactor

_HANDLED = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGUSR1),
    *(signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM),
)


class _Exited(Exception):
    """The process would have ended, with this status."""


class _Root:
    """What can be told to stop."""

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def request_stop(self, status: int) -> None:
        """Stop, with this exit status."""
        self._done.append(f"stop {status}")


class ServerSignalTests(SynchronousTestCase):
    """A daemon in this process, whose signals are real."""

    def setUp(self) -> None:
        for number in _HANDLED:
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.addCleanup(signal.alarm, 0)
        self.patch(os, "_exit", self.exit)
        self.reactor = RootReactor()
        self.done: list[str] = []
        self.lines: list[str] = []
        self.loading = self.evacuates = False
        self.evacuated: list[Callable[[], object]] = []
        self.parent: list[Callable[[str], object]] = []
        root: Any = _Root(self.done)
        daemon = Daemon(
            root,
            loading=lambda: self.loading,
            reload=lambda: self.done.append("reload"),
            leave=lambda: self.done.append("leave"),
            evacuate=self.evacuate,
            kill=lambda: self.done.append("kill"),
        )
        log = DaemonLog("notice", os.devnull, lambda level, text: self.lines.append(text))
        handle_signals(attrs.evolve(daemon, connect=self.parent.append), log, self.reactor)

    def exit(self, status: int) -> None:
        """In place of the end of the process."""
        raise _Exited(status)

    def evacuate(self, over: Callable[[], object]) -> bool:
        """Whether the daemon gives its jobs away."""
        if self.evacuates:
            self.evacuated.append(over)
        return self.evacuates

    def told(self, *numbers: int) -> list[str]:
        """What the daemon was told because of these signals."""
        for number in numbers:
            signal.raise_signal(number)
        self.reactor.advance(0)
        done, self.done[:] = list(self.done), []
        return done

    def exit_status(self, number: int) -> int:
        """The status with which a signal ends the process at once."""
        return int(str(self.assertRaises(_Exited, signal.raise_signal, number)))

    def test_stop(self) -> None:
        """The first signal stops the daemon in good order, and the log says which one it was."""
        self.assertEqual(["stop 0"], self.told(signal.SIGTERM))
        self.assertEqual(["Received SIGTERM, scheduling shutdown..."], self.lines)

    def test_second(self) -> None:
        """Whoever presses Ctrl-C twice need not wait for a daemon that hangs."""
        self.assertEqual(["stop 0"], self.told(signal.SIGINT))
        self.assertEqual(1, self.exit_status(signal.SIGINT))
        self.assertEqual(["kill"], self.done)

    def test_too_slow(self) -> None:
        """A daemon that does not come to its end is ended by a timer, and its processes with it."""
        self.told(signal.SIGTERM)
        self.assertGreater(signal.alarm(0), 0)
        self.assertEqual(1, self.exit_status(signal.SIGALRM))
        self.assertEqual(["kill"], self.done)

    def test_loading(self) -> None:
        """A daemon that loads its log has nothing to lose, and ends at once."""
        self.loading = True
        self.assertEqual(0, self.exit_status(signal.SIGTERM))
        self.assertEqual([], self.told())

    def test_evacuation(self) -> None:
        """A daemon that gives its jobs away may take long, and stops when it is done with that."""
        self.evacuates = True
        self.assertEqual([], self.told(signal.SIGTERM))
        self.assertEqual(0, signal.alarm(0))
        (over,) = self.evacuated
        over()
        self.assertEqual(["stop 0"], self.told())
        self.assertEqual("The daemon stops", self.lines[-1])
        self.assertGreater(signal.alarm(0), 0)

    def test_evacuation_ended(self) -> None:
        """A second signal ends an evacuation, and still stops the daemon in good order; a third
        one ends it at once."""
        self.evacuates = True
        self.told(signal.SIGTERM)
        self.assertEqual(["stop 0"], self.told(signal.SIGTERM))
        self.assertEqual(["Received SIGTERM, scheduling shutdown..."] * 2, self.lines)
        self.assertEqual(1, self.exit_status(signal.SIGTERM))

    def test_parent(self) -> None:
        """A child stops when its parent says so, for a reason that its log shows; Ctrl-C, which
        reaches both, does not count as a second signal."""
        (end,) = self.parent
        end("The parent stops")
        self.assertEqual(["stop 0"], self.told(signal.SIGINT))
        self.assertEqual(["The parent stops"], self.lines)

    def test_others(self) -> None:
        """Certificates are reloaded, the node leaves, and a client that hung up ends nothing."""
        self.assertEqual(["reload"], self.told(signal.SIGHUP))
        self.assertEqual([], self.lines)
        self.assertEqual(["leave"], self.told(signal.SIGUSR1))
        self.assertIn("CLUSTER LEAVING no ends that", self.lines[0])
        self.assertEqual([], self.told(signal.SIGPIPE, signal.SIGCHLD))
