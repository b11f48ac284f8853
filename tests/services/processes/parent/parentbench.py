"""A parent whose children are no processes."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.settings import Settings
from disque_tx.services.processes.channel import Message
from disque_tx.services.processes.parent import parent
from disque_tx.services.processes.parent.children import Start
from disque_tx.services.processes.parent.memorychildren import MemoryChild
from disque_tx.services.processes.parent.parent import Parent
from tests.engine.aof.bench import Lines
from tests.forwardclock import ForwardReactor


class SpawnedChild(MemoryChild):
    """A child that the parent spawns. ``say``: it sends a message; ``end``: it ends;
    ``give_back``: it has not taken these connections."""

    def __init__(
        self,
        receive: Callable[[Message], None],
        ended: Callable[[str], None],
        unsent: Callable[[list[tuple[Message, socket.socket]]], None],
    ) -> None:
        super().__init__(0, 0)
        self.give_back = unsent
        self.say = receive
        self.end = ended

    def spawn(self, reactor: object, start: Start, environment: dict[str, str]) -> None:
        """It has this number, and runs."""
        self.number, self.start = start.number, start

    def took(self, kind: str) -> list[Message]:
        """The messages of a kind that it got so far, without the kind."""
        return [message[1:] for message in self.messages if message[0] == kind]


class ParentCase(SynchronousTestCase):
    """Three processes, which have started and read their logs when a test says so."""

    def setUp(self) -> None:
        self.children: list[SpawnedChild] = []
        self.patch(parent, "ChildProcess", self.make)
        self.settings = Settings(dir=self.mktemp())
        self.settings.processes = 3
        self.reactor: Any = ForwardReactor()
        self.log = Lines()
        self.started: list[str] = []
        self.parent = Parent(self.settings, self.log, self.reactor, {}, self.started.append)
        self.parent.startService()
        self.addCleanup(self.parent.stopService)

    def make(self, *places: Any) -> SpawnedChild:
        """A new child."""
        child = SpawnedChild(*places)
        self.children.append(child)
        return child

    def open(self, *numbers: int) -> None:
        """These listen, and then serve clients."""
        for number in numbers:
            self.children[number - 1].say(["opened", f"id{number}"])
        for number in numbers:
            self.children[number - 1].say(["ready"])

    def report(self, number: int, *reached: int) -> None:
        """One reports which others it reaches."""
        figures = {"connected_clients": 0}
        ids = [f"id{other}" for other in reached]
        report = {"ip": "", "reached": ids, "figures": figures, "received": 0, "work": 0}
        self.children[number - 1].say(["report", report])
