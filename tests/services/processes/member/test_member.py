"""A process of a daemon, between its node and its parent."""

from __future__ import annotations

import socket
from typing import Any

from disque_tx.config.settings import Settings
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
        self.surplus = False
        self.common: Settings | None = None
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
        start = Start(self.settings, self.common or self.settings, 0, 3, 0, self.surplus)
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

    def test_port_of_the_daemon(self) -> None:
        """The first process does not listen on the daemon's port, which is its own by number: the
        parent listens there, and passes connections on."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.settings.bind, self.settings.port = ["127.0.0.1"], listening.getsockname()[1]
            self.started()
            self.tell("joined")
            self.assertEqual(b"+PONG\r\n", self.ask(self.dial(), "PING"))

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

    def test_whole_report(self) -> None:
        """A report says all that the parent decides by, and is sent often until the parent knows
        that the process reaches the others, then every second."""
        root = self.started()
        reports = [message[1] for message in self.sent if message[0] == "report"]
        for _ in range(10):
            self.reactor.advance(0.05)
            drive(self.reactor)
        often = [message[1] for message in self.sent if message[0] == "report"]
        self.assertGreaterEqual(len(often), len(reports) + 10)
        self.tell("joined")
        self.reactor.advance(0.05)
        self.dial()
        del self.sent[:]
        self.reactor.pump([0.1] * 29)
        drive(self.reactor)
        self.assertEqual(["report"] * len(self.sent), [kind for kind, _ in self.sent])
        self.assertTrue(2 <= len(self.sent) <= 3, len(self.sent))
        report = dict(self.sent[-1][1])
        self.assertEqual(1, report.pop("figures")["connected_clients"])
        expected = {"received": 1, "work": 0, "evacuated": False, "reached": [], "nodes": 1}
        self.assertEqual({**expected, "ip": ""}, report)
        root.runtime.node.membership.myself.ip = b"::ffff:192.0.2.1"
        self.reactor.advance(REPORT_S)
        drive(self.reactor)
        self.assertEqual("192.0.2.1", self.sent[-1][1]["ip"])

    def test_surplus(self) -> None:
        """A surplus process leaves, and that is known after a crash; when it is wanted again, it
        stays."""
        self.surplus = True
        root = self.started()
        mark = self.folder / "nodes.conf.leaving"
        self.assertTrue(root.runtime.node.membership.leaving)
        self.assertTrue(mark.exists())
        self.again(False)
        root = self.started()
        self.assertFalse(root.runtime.node.membership.leaving)
        self.assertFalse(mark.exists())

    def test_left_by_an_operator(self) -> None:
        """A node that an operator told to leave does so in a new process, surplus or not."""
        root = self.started()
        self.tell("joined")
        self.ask(self.dial(), "CLUSTER LEAVING yes")
        for surplus in (True, False):
            self.again(surplus)
            root = self.started()
            self.assertTrue(root.runtime.node.membership.leaving)
        self.assertFalse((self.folder / "nodes.conf.leaving").exists())

    def again(self, surplus: bool) -> None:
        """The process ends, and is to be started again, surplus or not."""
        root = self.root
        self.stopped(root)
        self.surplus = surplus
        mine, self._sock = pair()
        self.parent.close()
        self.parent = ProcessChannel(self.reactor, mine, self._receive, self._lost)
        self.addCleanup(self.parent.close)

    def started(self) -> MemberRoot:
        """A process that serves."""
        root = super().started()
        assert isinstance(root, MemberRoot)
        self.root = root
        return root

    def test_learns(self) -> None:
        """A process announces the address of the host that the parent names, once, and asks those
        of the others about figures that serve."""
        root = self.started()
        myself = root.runtime.node.id.decode()
        rows = [self.row(0, myself), self.row(1, _KNOWN), self.row(2, "c" * 40)]
        rows[2]["state"] = "loading"
        self.tell("status", "192.0.2.1", rows, {"total_jobs_added": 5})
        self.tell("status", "192.0.2.2", rows, {"total_jobs_added": 5})
        self.assertEqual("192.0.2.1", root.settings.cluster_announce_ip)
        self.assertEqual([_KNOWN.encode(), b"c" * 40], root.runtime.node.membership.siblings)
        self.assertEqual([1], root._gathering.others)
        numbers = {myself.encode(): 0, _KNOWN.encode(): 1, b"c" * 40: 2}
        self.assertEqual(numbers, root._gathering.numbers())
        info = dict(root.info_processes())
        self.assertEqual(("3", "5"), (info["processes"], info["all_total_jobs_added"]))

    def test_configured_address(self) -> None:
        """A configured address is not replaced by what the parent learned."""
        self.settings.cluster_announce_ip = "198.51.100.1"
        root = self.started()
        self.tell("status", "192.0.2.1", [], {})
        self.assertEqual("198.51.100.1", root.settings.cluster_announce_ip)

    def test_failed(self) -> None:
        """Why a process cannot go on is told to the parent, and logged here."""
        root = self.started()
        root.fatal("the disk\nis gone")
        drive(self.reactor)
        self.assertIn(["failed", "the disk\nis gone"], self.sent)
        self.assertIn("# is gone", self.logged())
        self.assertEqual(1, root.exit_status)

    def test_shares(self) -> None:
        """CONFIG SET of what processes share changes the share of each, and the whole that CONFIG
        GET shows; a new ``dir`` is made."""
        self.common = self.make_settings(maxmemory=3_000)
        root = self.started()
        self.tell("joined")
        self.tell("set", "maxmemory", "900")
        self.assertEqual((300, 900), (root.settings.maxmemory, self.common.maxmemory))
        client = self.dial()
        answer = self.ask(client, "CONFIG GET maxmemory")
        self.assertIn(b"\r\n900\r\n", answer)
        root.setting_changed("dir")
        folder = self.folder / "new" / "logs"
        root._make_folder(str(folder))
        self.assertTrue(folder.is_dir())
        (self.folder / "file").write_bytes(b"")
        root._make_folder(f"{self.folder}/file/logs")
        line = f"The folder {self.folder}/file/logs can't be made: Not a directory"
        self.assertIn(line, self.logged())

    def test_log_at_the_end(self) -> None:
        """A daemon that ends with full logs has one of each process; one that cannot be written is
        no reason to stay."""
        root = self.started()
        self.tell("joined")
        self.ask(self.dial(), "ADDJOB q b 0")
        log = self.folder / "disque.aof"
        self.tell("stop", True)
        self.assertIn(b"LOADJOB", log.read_bytes())
        root.settings.appendfilename = "no/such/folder.aof"
        self.tell("stop", True)
        self.assertEqual(["The daemon ends"] * 2, self.ends)
        self.assertIn("Writing the log failed: No such file or directory", self.logged())

    def test_restart(self) -> None:
        """DEBUG RESTART at one process ends it, for its parent starts it again."""
        root = self.started()
        root.request_restart(50)
        self.assertEqual((0, None), (root.exit_status, root.restart_wanted))
        self.reactor.advance(0)
        self.assertTrue(self.reactor.hasStopped)

    def test_serving(self) -> None:
        """A process is reported as started once it reaches the others, not when it has read its
        log."""
        root = self.started()
        self.assertFalse(root.plugin_host.view.health().started)
        self.tell("joined")
        self.assertTrue(root.plugin_host.view.health().started)
        self.assertFalse(root.server.joining or root.server.degraded)

    def test_degraded(self) -> None:
        """One whose log lacks records goes on to refuse jobs when it has joined."""
        root = self.started()
        self.patch(root.server.control, "write_error", lambda: "full")
        self.tell("joined")
        self.assertTrue(root.server.degraded)

    def test_forgets(self) -> None:
        """A process that is gone for good is forgotten, known or not."""
        root = self.started()
        membership = root.runtime.node.membership
        membership.add(NodeEntry(_KNOWN.encode(), b"127.0.0.1", 7_801, 0, 0))
        for node_id in (_KNOWN, "c" * 40):
            self.tell("forget", node_id)
        self.assertEqual([membership.myself.id], list(membership.nodes))
