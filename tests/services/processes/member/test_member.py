"""A process of a daemon, between its node and its parent."""

from __future__ import annotations

import socket
from typing import Any

from disque_tx.messages.nodes import HANDSHAKE, NodeEntry
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.processes.channel import Message, ProcessChannel, pair
from disque_tx.services.processes.member.member import REPORT_S, MemberRoot
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
        self.parent = ProcessChannel(self.reactor, mine, self._receive, self._lost)
        self.addCleanup(self.parent.close)

    def _receive(self, message: Message, sock: socket.socket | None) -> None:
        self.sent.append(message)

    def _lost(self) -> None:
        self.parent.close()

    def make(self) -> MemberRoot:
        log = DaemonLog("debug", self.settings.logfile)
        start = Start(self.settings, self.settings, 0, 3)
        root = MemberRoot(start, log, self.reactor, self._sock, self.died.append)
        root.connect(self.ends.append)
        return root

    def dial(self, path: str = "") -> socket.socket:
        """A client, whose connection the parent passes on."""
        client, its = socket.socketpair()
        self.addCleanup(client.close)
        client.settimeout(5)
        self.parent.send(["client", 0], its)
        drive(self.reactor)
        return client

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

    def test_reports(self) -> None:
        """The parent learns the ID of the node, that it serves, and from then on what it counts,
        and which of the others it reaches."""
        root = self.started()
        kinds = [kind for kind, *_ in self.sent]
        self.assertLess(kinds.index("opened"), kinds.index("ready"))
        self.assertIn(["opened", root.runtime.node.id.decode()], self.sent)
        self.tell("joined")
        self.ask(self.dial(), "ADDJOB q b 0")
        del self.sent[:]
        self.reactor.advance(REPORT_S)
        drive(self.reactor)
        ((kind, report),) = self.sent
        self.assertEqual(("report", 1, []), (kind, report["work"], report["reached"]))
        self.assertEqual(1, report["figures"]["registered_jobs"])

    def test_waits_for_the_others(self) -> None:
        """Clients get LOADING until the parent says that the process reaches the others: their jobs
        could have too few copies."""
        self.started()
        self.assertIn(b"-LOADING", self.ask(self.dial(), "ADDJOB q b 0"))
        self.tell("joined")
        self.assertIn(b"+D-", self.ask(self.dial(), "ADDJOB q b 0"))

    def test_settings(self) -> None:
        """CONFIG SET at one process is told to the parent, and what the parent tells is in force
        here; what cannot be is logged."""
        root = self.started()
        self.tell("joined")
        del self.sent[:]
        self.assertEqual(b"+OK\r\n", self.ask(self.dial(), "CONFIG SET slowlog-max-len 7"))
        self.assertIn(["set", "slowlog-max-len", "7"], self.sent)
        self.tell("set", "slowlog-max-len", "9")
        self.assertEqual(9, root.settings.slowlog_max_len)
        self.tell("set", "slowlog-max-len", "x")
        self.assertIn("CONFIG SET slowlog-max-len: ", self.logged())

    def test_whole_daemon(self) -> None:
        """SHUTDOWN ends the daemon, not one process of it; the process ends when the parent says
        so, or is gone."""
        self.started()
        self.tell("joined")
        self.ask(self.dial(), "SHUTDOWN REWRITE-AOF")
        self.assertIn(["shutdown", True], self.sent)
        self.assertEqual([], self.ends)
        self.tell("stop", False)
        self.assertEqual(["The daemon ends"], self.ends)
        self.parent.close()
        drive(self.reactor)
        self.assertEqual("The parent process is gone: this one ends, too", self.ends[-1])

    def test_figures_at_the_end(self) -> None:
        """What a process has counted is not lost when it stops."""
        root = self.started()
        self.tell("joined")
        self.ask(self.dial(), "ADDJOB q b 0")
        del self.sent[:]
        self.stopped(root)
        drive(self.reactor)
        self.assertEqual(["counted", "report"], [kind for kind, *_ in self.sent])

    def test_forgets(self) -> None:
        """A process that is gone for good is forgotten, known or not."""
        root = self.started()
        membership = root.runtime.node.membership
        membership.add(NodeEntry(_KNOWN.encode(), b"127.0.0.1", 7_801, 0, 0))
        for node_id in (_KNOWN, "c" * 40):
            self.tell("forget", node_id)
        self.assertEqual([membership.myself.id], list(membership.nodes))
