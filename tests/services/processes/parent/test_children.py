"""How a process of the daemon is started, what is sent to it, and how it has ended."""

from __future__ import annotations

import io
import os
import pickle
import signal
import site
import socket
import sys
from typing import Any

from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.testing import MemoryReactor
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

import disque_tx
from disque_tx.config.settings import Settings
from disque_tx.services.processes.channel import Message
from disque_tx.services.processes.parent.children import (
    ChildProcess,
    Start,
    environment_of_children,
    read_start,
)


class EndTests(SynchronousTestCase):
    """Words for the log."""

    def test_words(self) -> None:
        """The log tells apart a process that ended by itself, with an error, and one that was
        killed."""
        said: list[str] = []
        child = ChildProcess(lambda message: None, said.append, lambda unsent: None)
        for reason in (
            ProcessDone(0),
            ProcessTerminated(exitCode=3),
            ProcessTerminated(signal=signal.SIGKILL),
        ):
            child.processEnded(Failure(reason))
        self.assertEqual(["", "status 3", "signal 9"], said)


class _Reactor(MemoryReactor):
    """Starts processes that are none. ``error``: why it cannot. ``begun``: the words, variables and
    descriptors of the last one; ``start``: what it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.error: OSError | None = None
        self.begun: Any = None
        self.start = b""
        self.channel: socket.socket | None = None
        self.signals: list[str | int] = []
        self.pid = 4711

    def spawnProcess(
        self, protocol: Any, program: str, words: list[str], env: Any, childFDs: dict[int, int]
    ) -> Any:
        self.start = os.read(childFDs[0], 1 << 20)
        self.begun = (program, words, env, childFDs)
        if self.error is not None:
            raise self.error
        self.channel = socket.socket(fileno=os.dup(childFDs[max(childFDs)]))
        protocol.transport = self
        return self

    def signalProcess(self, which: str | int) -> None:
        """Send it a signal."""
        if self.pid == 0:
            raise ProcessExitedAlready
        self.signals.append(which)


class SpawnTests(SynchronousTestCase):
    """A process that is started, and what passes between it and its parent."""

    def setUp(self) -> None:
        self.reactor = _Reactor()
        self.received: list[Message] = []
        self.unsent: list[Any] = []
        self.child = ChildProcess(self.received.append, lambda how: None, self.unsent.extend)
        self.start = Start(Settings(dir="/a"), Settings(dir="/b"), 2, 3, 17_711, True)
        self.before = os.listdir("/proc/self/fd")

    def spawn(self, **variables: str) -> socket.socket:
        """Start it; returns its end of the channel."""
        self.child.spawn(self.reactor, self.start, variables)
        channel = self.reactor.channel
        assert channel is not None
        self.addCleanup(channel.close)
        self.addCleanup(self.child._lost)
        return channel

    def test_program(self) -> None:
        """It is the same program, which is told its number and that of its channel, and reads what
        it needs from its standard input."""
        self.spawn(LANG="C")
        program, words, variables, descriptors = self.reactor.begun
        module = "disque_tx.cli.programs.server"
        self.assertEqual((sys.executable, {"LANG": "C"}), (program, variables))
        self.assertEqual([sys.executable, "-P", "-m", module, "--process", "3", "2"], words)
        self.assertEqual([0, 1, 2, 3], sorted(descriptors))
        self.assertEqual((1, 2, 4711), (descriptors[1], descriptors[2], self.child.pid))
        self.assertEqual(self.start, pickle.loads(self.reactor.start))

    def test_sockets_of_systemd(self) -> None:
        """What systemd passed to the daemon has its places in a process, too: the channel is behind
        them."""
        self.spawn(LISTEN_FDS="2")
        _, words, _, descriptors = self.reactor.begun
        self.assertEqual((["5", "2"], [0, 1, 2, 3, 4, 5]), (words[-2:], sorted(descriptors)))
        self.assertEqual(descriptors[3], descriptors[4])
        self.assertNotEqual(descriptors[3], descriptors[5])

    def test_messages(self) -> None:
        """Messages go both ways, also those that it sent right before it ended."""
        channel = self.spawn()
        self.child.send(["set", "hz", "10"])
        self.assertEqual(b'["set", "hz", "10"]', channel.recv(100))
        channel.send(b'["opened", "id"]')
        channel.send(b'["failed", "why"]')
        self.child.processExited(Failure(ProcessDone(0)))
        self.assertEqual([["opened", "id"], ["failed", "why"]], self.received)

    def test_connections(self) -> None:
        """A connection that does not reach it is given back, whether it is still to end or has
        ended already."""
        self.spawn()
        while not self.reactor.getWriters():
            self.child.send(["x" * 50_000])
        mine, its = socket.socketpair()
        self.addCleanup(mine.close)
        self.addCleanup(its.close)
        self.child.send(["client", 4], its)
        self.assertEqual([], self.unsent)
        self.child._lost()
        self.child.send(["client", 5], its)
        self.child.send(["set", "hz", "10"])
        self.child.processExited(Failure(ProcessDone(0)))
        self.assertEqual([(["client", 4], its), (["client", 5], its)], self.unsent)

    def test_signals(self) -> None:
        """Signals reach it, and one that it has ended before is no error."""
        self.spawn()
        self.child.signal(signal.SIGHUP)
        self.child.kill()
        self.reactor.pid = 0
        self.child.kill()
        self.assertEqual([signal.SIGHUP, "KILL"], self.reactor.signals)

    def test_refused(self) -> None:
        """A process that cannot be started leaves no descriptor behind, and neither does one that
        was started, besides its channel."""
        self.reactor.error = OSError("no")
        self.assertRaises(OSError, self.child.spawn, self.reactor, self.start, {})
        self.assertEqual(len(self.before), len(os.listdir("/proc/self/fd")))
        self.reactor.error = None
        self.spawn()
        self.assertEqual(len(self.before) + 2, len(os.listdir("/proc/self/fd")))

    def test_environment(self) -> None:
        """A process has the variables of the daemon but those by which systemd watches it, and
        finds the same package, before it is installed as well."""
        folder = os.path.dirname(os.path.abspath(disque_tx.__path__[0]))
        daemon = {"LANG": "C", "NOTIFY_SOCKET": "a", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "2"}
        self.assertEqual({"LANG": "C", "PYTHONPATH": folder}, environment_of_children(daemon))
        found = environment_of_children({"PYTHONPATH": "/mine"})
        self.assertEqual({"PYTHONPATH": f"/mine{os.pathsep}{folder}"}, found)
        self.patch(site, "getsitepackages", lambda: [folder])
        self.assertEqual({"LANG": "C"}, environment_of_children(daemon))

    def test_read(self) -> None:
        """A process takes the sockets of systemd for its own, if there are any."""
        data = io.TextIOWrapper(io.BytesIO(pickle.dumps(self.start)))
        for variables in ({}, {"LISTEN_FDS": "1", "LISTEN_PID": "1"}):
            data.seek(0)
            self.patch(sys, "stdin", data)
            self.patch(os, "environ", dict(variables))
            self.assertEqual(self.start, read_start())
            expected = {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())} if variables else {}
            self.assertEqual(expected, os.environ)
