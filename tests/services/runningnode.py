"""A node with real engine, commands and sockets, on any reactor; without files and a bus."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

from disque_tx.commands.base.context import Server
from disque_tx.commands.base.control import Control
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.commands.server.memory import MemoryControl
from disque_tx.commands.table import standard_registry
from disque_tx.config.settings import Settings
from disque_tx.core.node import Node
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.nodes import MYSELF, NodeEntry
from disque_tx.services.clients.admission import Admission
from disque_tx.services.clients.protocol import RespFactory
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.net.hub import Hub
from disque_tx.services.turns.interfaces import IClock
from disque_tx.services.turns.runtime import Runtime, SystemClock
from tests.commands.desk import ME, NumberedIds


class RunningNode:
    """Serves clients until ``stop``. ``clock``: the machine's if it is not given; ``clock_ns``: by
    which requests are timed; ``name``: the node's ID."""

    def __init__(
        self,
        reactor: Any,
        log: DaemonLog | None = None,
        clock: IClock | None = None,
        control: Control | None = None,
        clock_ns: Callable[[], int] = time.perf_counter_ns,
        name: bytes = ME,
    ) -> None:
        self.settings = Settings(dir="/")
        membership = Membership(NodeEntry(name, b"", 7711, MYSELF, 0), lambda: b"b" * 40)
        self.node = Node(membership, NumberedIds(), lambda: 0.5)
        self.control = control or memory_control()
        self.server = Server(self.node, self.control, standard_registry())
        dispatcher = Dispatcher(self.server, self.server.registry, clock_ns)
        self.runtime = Runtime(self.node, self.server, dispatcher, clock or SystemClock(), reactor)
        self.admission = Admission(self.runtime, self.settings, log or DaemonLog("warning"))
        self.factory = RespFactory(self.runtime, self.admission)
        self.hub = Hub(reactor, self.runtime)
        self.hub.start()

    def dial(self) -> socket.socket:
        """The client's end of a connection to the fast acceptor."""
        mine, its = socket.socketpair()
        mine.settimeout(5)
        self.hub.adopt(its, self.factory)
        return mine

    def stop(self) -> None:
        """No more timers and connections."""
        self.runtime.stop()
        self.hub.stop()


def memory_control() -> MemoryControl:
    """What commands ask of the process, in memory."""
    return MemoryControl({b"requirepass": b"", b"maxmemory": b"1073741824"})
