"""The children as processes: how one is started, and what is known of it until it ends.

A child is the same program again. Its standard input is a file with what it needs to know
(:class:`Start`), and one more descriptor is its channel to the parent.
"""

from __future__ import annotations

import os
import pickle
import site
import socket
import sys
from collections.abc import Callable
from typing import Any, Final

import attrs
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

import disque_tx
from disque_tx.config.settings import Settings
from disque_tx.services.processes.channel import Message, ProcessChannel, pair

#: The word of the command line that makes the program a child; the number of its channel follows.
WORD: Final = "--process"
_PROGRAM: Final = "disque_tx.cli.programs.server"
#: The first descriptor that systemd passes on.
_SYSTEMD_FIRST: Final = 3
#: Only the parent notifies systemd.
_PARENT_ONLY: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


@attrs.frozen
class Start:
    """What a child starts with. ``settings``: its own; ``common``: those of the daemon. ``number``:
    its own, of ``count`` processes. ``extra_bus_port``: a second port for other nodes, 0 for none.
    ``surplus``: it is to hand its jobs to other processes and end."""

    settings: Settings
    common: Settings
    number: int
    count: int
    extra_bus_port: int = 0
    surplus: bool = False


class ChildProcess(ProcessProtocol):
    """One child. ``receive``: called with its messages. ``ended``: called with how it ended, empty
    for status 0. ``unsent``: called with the messages with sockets that did not reach it."""

    def __init__(
        self,
        receive: Callable[[Message], object],
        ended: Callable[[str], object],
        unsent: Callable[[list[tuple[Message, socket.socket]]], object],
    ) -> None:
        self.pid = 0
        self.channel: ProcessChannel | None = None
        self._receive = receive
        self._ended = ended
        self._unsent = unsent

    def spawn(self, reactor: Any, start: Start, environment: dict[str, str]) -> None:
        """Start the process; ``OSError`` when that is not possible."""
        here, there = pair()
        passed = int(environment.get("LISTEN_FDS", "0") or 0)
        number = _SYSTEMD_FIRST + passed
        letter = _letter(start)
        null = os.open(os.devnull, os.O_RDWR)
        descriptors = {0: letter, 1: 1, 2: 2, number: there.fileno()}
        # An endpoint of systemd closes the descriptor that it was made for.
        descriptors.update({_SYSTEMD_FIRST + place: null for place in range(passed)})
        words = [sys.executable, "-P", "-m", _PROGRAM, WORD, str(number), str(start.number)]
        try:
            process = reactor.spawnProcess(
                self, sys.executable, words, env=environment, childFDs=descriptors
            )
            self.pid = process.pid
        except OSError:
            here.close()
            raise
        finally:
            there.close()
            os.close(letter)
            os.close(null)
        self.channel = ProcessChannel(
            reactor, here, lambda message, _: self._receive(message), self._lost
        )

    def send(self, message: Message, sock: socket.socket | None = None) -> None:
        """Send it a message."""
        if self.channel is not None:
            self.channel.send(message, sock)
        elif sock is not None:
            self._unsent([(message, sock)])

    def kill(self) -> None:
        """End it at once."""
        self._signal("KILL")

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._signal(number)

    def _signal(self, which: str | int) -> None:
        transport: Any = self.transport
        try:
            transport.signalProcess(which)
        except ProcessExitedAlready:
            pass

    def _lost(self) -> None:
        """Close the parent's end of the channel; the child closed its own, and may live a little
        longer."""
        if self.channel is not None:
            channel, self.channel = self.channel, None
            self._unsent(channel.close())

    def processExited(self, reason: Failure) -> None:
        """Read its last messages."""
        if self.channel is not None:
            self.channel.doRead()
        self._lost()

    def processEnded(self, reason: Failure) -> None:
        """Report how the process ended: by a signal or with a status."""
        error: Any = reason.value
        status = getattr(error, "exitCode", None)
        number = getattr(error, "signal", None)
        self._ended(f"signal {number}" if number else f"status {status}" if status else "")


def _letter(start: Start) -> int:
    """A file that holds ``start`` and has no name."""
    descriptor = os.memfd_create("disque-start", os.MFD_CLOEXEC)
    data = pickle.dumps(start)
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def environment_of_children(variables: dict[str, str]) -> dict[str, str]:
    """The environment of the parent, as children get it: they find the same package."""
    environment = {name: text for name, text in variables.items() if name not in _PARENT_ONLY}
    package = disque_tx.__path__[0]
    folder = os.path.dirname(os.path.abspath(package))
    if folder not in (*site.getsitepackages(), site.getusersitepackages()):
        paths = [environment.get("PYTHONPATH", ""), folder]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


def read_start() -> Start:
    """What the parent of this process sent it, on standard input."""
    if "LISTEN_FDS" in os.environ:
        os.environ["LISTEN_PID"] = str(os.getpid())  # they were passed to the parent
    start = pickle.loads(sys.stdin.buffer.read())
    assert isinstance(start, Start)
    return start
