"""Doubles of child processes, for tests of what the parent does with children."""

from __future__ import annotations

import signal
import socket

from disque_tx.services.processes.channel import Message


class MemoryChild:
    """One child. ``messages``, ``signals``: what was sent to it. ``sockets``: those that came with
    messages, which are closed."""

    def __init__(self, number: int, pid: int) -> None:
        self.number = number
        self.pid = pid
        self.messages: list[Message] = []
        self.signals: list[int] = []
        self.sockets = 0

    def send(self, message: Message, sock: socket.socket | None = None) -> None:
        """Record a message."""
        self.messages.append(message)
        if sock is not None:
            self.sockets += 1
            sock.close()

    def kill(self) -> None:
        """Record it."""
        self.signals.append(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Record a signal."""
        self.signals.append(number)


class MemoryChildren:
    """Launches children. ``launched``: all of them, in this order. ``error``: the next launch
    fails with it."""

    def __init__(self) -> None:
        self.launched: list[MemoryChild] = []
        self.error: OSError | None = None

    def launch(self, number: int) -> MemoryChild:
        """A new child for this number; raises ``error``, once, if there is one."""
        error, self.error = self.error, None
        if error is not None:
            raise error
        child = MemoryChild(number, 1000 + len(self.launched))
        self.launched.append(child)
        return child

    def last(self, number: int) -> MemoryChild:
        """The latest child of this number."""
        return [child for child in self.launched if child.number == number][-1]
