"""A process of a daemon, between its node and its parent."""

from __future__ import annotations

import socket
from typing import Any

from disque_tx.messages.nodes import HANDSHAKE, NodeEntry
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.processes.channel import Message, ProcessChannel, pair
from disque_tx.services.processes.member.member import MemberRoot
from disque_tx.services.processes.parent.children import Start
from tests.services.nodebench import drive
from tests.services.rootbench import RootCase

_KNOWN = "b" * 40


class MemberTests(RootCase):
    """The first of three processes; the test is its parent."""

    def setUp(self) -> None:
        super().setUp()
        self.sent: list[Message] = []
        self.ends: list[str] = []
        mine, its = pair()
        self._sock = its
        self.parent = ProcessChannel(self.reactor, mine, self._receive, lambda: None)
        self.addCleanup(self.parent.close)

    def _receive(self, message: Message, sock: socket.socket | None) -> None:
        self.sent.append(message)

    def make(self) -> MemberRoot:
        log = DaemonLog("debug", self.settings.logfile)
        start = Start(self.settings, self.settings, 0, 3)
        root = MemberRoot(start, log, self.reactor, self._sock, self.died.append)
        root.connect(self.ends.append)
        return root

    def tell(self, *message: Any) -> None:
        """A message of the parent."""
        self.parent.send(list(message))
        drive(self.reactor)

    def row(self, number: int, node_id: str) -> dict[str, Any]:
        """What the parent knows of a process."""
        port = 7_800 + number
        addresses = {"ip": "127.0.0.1", "port": port, "bus_port": port + 10_000}
        state = {"state": "ready", "uptime": 5, "restarts": 0, "figures": {}}
        return {"number": number, "id": node_id, "pid": 100 + number, **addresses, **state}

    def test_meets_the_others(self) -> None:
        """A process introduces itself to those that it does not know, once, and to no process
        whose node is not known yet."""
        root = self.started()
        membership = root.runtime.node.membership
        membership.add(NodeEntry(_KNOWN.encode(), b"127.0.0.1", 7_801, 0, 0))
        myself = membership.myself.id.decode()
        rows = [self.row(0, myself), self.row(1, _KNOWN), self.row(2, "c" * 40), self.row(3, "")]
        for _ in range(2):
            self.tell("status", "", rows, {})
        met = [one for one in membership.nodes.values() if one.flags & HANDSHAKE]
        self.assertEqual([(b"127.0.0.1", 7_802)], [(one.ip, one.port) for one in met])
