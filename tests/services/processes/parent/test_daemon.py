"""The life of a daemon of several processes, by what its operator, systemd and its children are
told."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

from disque_tx.config.settings import Settings
from disque_tx.errors import ConfigError
from disque_tx.services.processes.gathering import ENDED
from disque_tx.services.processes.parent.parent import Parent
from disque_tx.services.processes.parent.supervision import SILENT_S
from tests.services.processes.parent.parentbench import ParentCase


class DaemonCase(ParentCase):
    """Three processes, whose parent is told to start by each test; systemd listens."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.systemd.close)
        path = str(self.folder / "notify")
        self.systemd.bind(path)
        self.systemd.setblocking(False)
        self.patch(os, "environ", {**os.environ, "NOTIFY_SOCKET": path})
        super().setUp()

    def notified(self) -> list[str]:
        """What systemd was told since the last look."""
        found = []
        try:
            while True:
                found.append(self.systemd.recv(1_000).decode())
        except BlockingIOError:
            return found

    def said(self) -> list[str]:
        """The lines of the log since the last look."""
        lines, self.log.lines = self.log.lines, []
        return lines

    def join(self) -> None:
        """All three have started, read their logs, and reach each other."""
        self.open(1, 2, 3)
        for number, others in ((1, (2, 3)), (2, (1, 3)), (3, (1, 2))) * 2:
            self.report(number, *others)
        self.said()
        self.notified()


class StartTests(DaemonCase):
    """From the first process to the last."""

    def test_told(self) -> None:
        """Each step of the start is said when it is reached, not before."""
        lines = [f"notice: Process {number} started with the ID 0" for number in (1, 2, 3)]
        self.assertEqual((lines, ["STATUS=Starting the processes"]), (self.said(), self.notified()))
        self.open(1, 2, 3)
        self.assertEqual(([], []), (self.said(), self.notified()))
        for number, others in ((1, (2, 3)), (2, (1, 3)), (3, (1, 2)), (1, (2, 3))):
            self.report(number, *others)
        self.assertEqual(([], []), (self.said(), self.notified()))
        for _ in range(2):
            self.report(2, 1, 3)
        self.assertEqual(["notice: All 3 processes serve clients"], self.said())
        ready = "READY=1\nSTATUS=Serving clients with 3 processes"
        self.assertEqual([ready], self.notified())

    def test_shares(self) -> None:
        """Each process gets its share; the first one has the bus port of the daemon as well, and
        none is surplus."""
        starts = [child.start for child in self.children]
        self.assertEqual([(n, 3) for n in (1, 2, 3)], [(s.number, s.count) for s in starts])
        self.assertEqual([7712, 7713, 7714], [start.settings.port for start in starts])
        self.assertEqual([17711, 0, 0], [start.extra_bus_port for start in starts])
        self.assertEqual([False] * 3, [start.surplus for start in starts])
        self.assertIs(self.settings, starts[0].common)

    def test_status(self) -> None:
        """All are told every second what is known of each one."""
        self.open(1, 2)
        self.children[0].say(["report", {**self.reported(), "ip": "192.0.2.1"}])
        self.reactor.advance(1)
        host_ip, rows, counted = self.children[2].took("status")[-1]
        self.assertEqual(("192.0.2.1", {}), (host_ip, counted))
        row = {"number": 1, "id": "id1", "pid": 0, "ip": "192.0.2.1", "port": 7712}
        row |= {"bus_port": 17712, "state": "ready", "uptime": 1, "restarts": 0}
        self.assertEqual({**row, "figures": {"connected_clients": 0}}, rows[0])
        self.assertEqual(["ready", "ready", "starting"], [row["state"] for row in rows])
        self.children[0].end("signal 9")
        self.assertEqual(rows, self.children[2].took("status")[-1][1])

    def reported(self) -> dict[str, Any]:
        """A report without anything in it."""
        figures = {"connected_clients": 0}
        return {"ip": "", "reached": [], "figures": figures, "received": 0, "work": 0, "nodes": 3}

    def test_failed(self) -> None:
        """When one process cannot start, the daemon ends with its reason, once all have ended, and
        the status says so."""
        self.open(1)
        self.children[1].say(["failed", "no such disk"])
        self.said()
        self.children[1].end("status 1")
        self.assertEqual([["stop", False]], [self.children[0].messages[-1]])
        self.children[0].end("")
        self.assertEqual([], self.started)
        self.children[2].end("")
        reason = "Process 2 did not start: no such disk"
        self.assertEqual([reason], self.started)
        self.assertEqual(
            [f"warning: {reason}", "warning: Disque is now ready to exit, bye bye..."], self.said()
        )
        self.assertEqual((1, True), (self.parent.exit_status, self.reactor.hasStopped))

    def test_queued_jobs_once(self) -> None:
        """Jobs of a log are queued at the start of the daemon by the processes that have a log, and
        by none that is started later."""
        folder = self.folder / "process-2"
        folder.mkdir()
        (folder / "disque.aof").write_bytes(b"")
        self.children.clear()
        settings = Settings(dir=str(self.folder), processes=3, aof_enqueue_jobs_once=True)
        self.parent = Parent(settings, self.log, self.reactor, {}, self.started.append)
        self.parent.startService()
        self.addCleanup(self.parent.stopService)
        once = [child.start.settings.aof_enqueue_jobs_once for child in self.children]
        self.assertEqual([False, True, False], once)
        self.join()
        self.assertFalse(settings.aof_enqueue_jobs_once)
        settings.aof_enqueue_jobs_once = True
        self.children[1].end("signal 9")
        self.reactor.advance(0)
        self.assertFalse(self.children[3].start.settings.aof_enqueue_jobs_once)

    def test_impossible(self) -> None:
        """Ports and folders are looked at before any process is started, and the error names
        what is wrong."""
        file = self.folder / "file"
        file.write_bytes(b"")
        for settings, why in (
            (Settings(dir=str(self.folder), processes=2, port=0), "'port 0' leaves them no ports"),
            (
                Settings(dir=str(file), processes=2),
                f"Process 1 cannot use its folder {file}/process-1: Not a directory.",
            ),
        ):
            parent = Parent(settings, self.log, self.reactor, {}, self.started.append)
            error = self.assertRaises(ConfigError, parent.privilegedStartService)
            self.assertIn(why, str(error))
        settings = Settings(dir=str(self.folder), processes=2)
        settings.cluster_config_file = str(self.folder / "nodes" / "nodes.conf")
        self.patch(os, "access", lambda path, mode: "nodes" not in path)
        parent = Parent(settings, self.log, self.reactor, {}, self.started.append)
        error = self.assertRaises(ConfigError, parent.privilegedStartService)
        self.assertEqual(
            f"Process 1 cannot use its folder {self.folder}/nodes/process-1: no files can be"
            " written there.",
            str(error),
        )


class RunningTests(DaemonCase):
    """While the daemon serves."""

    def setUp(self) -> None:
        super().setUp()
        self.join()

    def test_restarted(self) -> None:
        """How a process ended, and when it is started again, is said each time."""
        self.children[1].end("")
        self.reactor.advance(0)
        self.children[3].end("status 3")
        self.assertEqual(
            [
                "warning: Process 2 has ended (status 0) and is started again now",
                "notice: Process 2 started with the ID 0",
                "warning: Process 2 has ended (status 3) and is started again in 0.1 s",
            ],
            self.said(),
        )

    def test_silent(self) -> None:
        """A process that does not report is killed, and that is said."""
        for _ in range(int(SILENT_S) + 1):
            self.reactor.advance(1)
            for number in (1, 3):
                self.report(number)
        self.assertEqual(
            ["warning: Process 2 does not report any more, and is killed"], self.said()
        )
        signals = [child.signals for child in self.children]
        self.assertEqual([[], [signal.SIGKILL], []], signals)

    def test_passed_on(self) -> None:
        """Messages for other processes reach those, and nobody else."""
        one, two, three = self.children
        one.say(["follow", 5, [1], "q"])
        self.assertEqual([[1, 5, [1], "q"]], two.took("followed"))
        self.assertEqual([[], [[1, 5, [1], "q"]]], [one.took("followed"), three.took("followed")])
        two.say(["events", 1, 5, 0, ["row"]])
        self.assertEqual([[5, 0, ["row"]]], one.took("happened"))
        self.assertEqual([], three.took("happened"))
        messages: list[list[Any]] = [["counted"], ["ask", 5, "q"], ["answer", 3, 5]]
        for total, message in enumerate(messages):
            counters = {"info": {"total_x": f"{total}"}, "commands": [], "protocols": []}
            two.say([*message, {**counters, "wait": None, "run": None}])
            one.say(["late", 7, [2]])
            ended, token, kept = one.took("answered")[-1]
            self.assertEqual((ENDED, 7, {"total_x": f"{total}"}), (ended, token, kept["info"]))

    def test_signals(self) -> None:
        """A signal for the daemon is one for all of its processes."""
        self.parent.pass_on(signal.SIGHUP)
        self.parent.kill()
        found = [child.signals for child in self.children]
        self.assertEqual([[signal.SIGHUP, signal.SIGKILL]] * 3, found)

    def test_stopped(self) -> None:
        """The daemon ends when its last process has, with the worst status that was asked for."""
        self.parent.request_stop(3)
        self.parent.request_stop(0)
        self.assertEqual([[[False]]] * 3, [child.took("stop") for child in self.children])
        self.assertEqual(["STOPPING=1"] * 2, self.notified())
        for child in self.children:
            self.assertFalse(self.reactor.hasStopped)
            child.end("")
        self.assertTrue(self.reactor.hasStopped)
        self.assertEqual(["warning: Disque is now ready to exit, bye bye..."], self.said())
        self.assertEqual((3, [""]), (self.parent.exit_status, self.started))

    def test_shutdown(self) -> None:
        """SHUTDOWN at one process ends all, which write full logs if that was asked."""
        self.children[1].say(["shutdown", True])
        self.assertEqual([[[True]]] * 3, [child.took("stop") for child in self.children])
        self.assertEqual(["warning: User requested shutdown..."], self.said())

    def test_no_connections_at_the_end(self) -> None:
        """Connections that come while the daemon ends are closed, not kept."""
        self.parent.request_stop(0)
        mine, its = socket.socketpair()
        self.addCleanup(mine.close)
        self.children[0].give_back([(["client", 4], its)])
        self.assertEqual(-1, its.fileno())


class SurplusTests(DaemonCase):
    """A fourth process of an earlier start, which three processes are enough to replace."""

    def setUp(self) -> None:
        super().setUp()
        self.children.clear()
        self.nodes = self.folder / "process-4" / "nodes.conf"
        self.nodes.parent.mkdir()
        self.nodes.write_text("something")
        self.settings = Settings(dir=str(self.folder), processes=3)
        self.settings.cluster_config_file = str(self.folder / "nodes.conf")
        self.said()
        self.parent = Parent(self.settings, self.log, self.reactor, {}, self.started.append)
        self.parent.startService()
        self.addCleanup(self.parent.stopService)

    def serving(self) -> None:
        """All four serve, and reach each other."""
        self.open(1, 2, 3, 4)
        for number in (1, 2, 3, 4) * 2:
            self.report_jobs(number, work=1)
        self.said()

    def report_jobs(self, number: int, work: int = 0, nodes: int = 4) -> None:
        """One reports how many jobs keep it, and how many nodes it knows."""
        ids = [f"id{other}" for other in (1, 2, 3, 4) if other != number]
        report = {"ip": "", "reached": ids, "figures": {"connected_clients": 0}, "received": 0}
        self.children[number - 1].say(["report", {**report, "work": work, "nodes": nodes}])

    def test_told(self) -> None:
        """It is started with the others, is told that it is surplus, and the operator is, too."""
        self.assertEqual([False, False, False, True], [c.start.surplus for c in self.children])
        self.assertEqual(
            "notice: Process 4 is surplus now: it gives its jobs to the others, and ends when it"
            " has none",
            self.said()[0],
        )

    def test_ends(self) -> None:
        """When it was empty twice it is ended; then its files are gone, the others forget its node,
        and it is not started again."""
        self.serving()
        self.report_jobs(4, work=1)
        self.report_jobs(4)
        self.assertEqual([], self.children[3].took("stop"))
        self.report_jobs(4)
        self.assertEqual([[False]], self.children[3].took("stop"))
        self.children[3].end("")
        self.assertEqual(
            ["notice: Process 4 has no jobs any more: its files are removed"], self.said()
        )
        self.assertFalse(self.nodes.parent.exists())
        self.assertEqual([[["id4"]]] * 3, [child.took("forget") for child in self.children[:3]])
        self.reactor.advance(60)
        self.assertNotIn(4, [child.number for child in self.children[4:]])

    def test_got_a_job(self) -> None:
        """One that got a job at the last moment is started again, and keeps its files."""
        self.serving()
        self.report_jobs(4)
        self.report_jobs(4)
        self.report_jobs(4, work=1)
        self.children[3].end("")
        self.assertEqual(
            ["warning: Process 4 has ended (status 0) and is started again now"], self.said()
        )
        self.assertTrue(self.nodes.exists())

    def test_unknown_nodes(self) -> None:
        """One that knows more nodes than the others stays until these know them."""
        self.serving()
        for _ in range(3):
            self.report_jobs(4, nodes=5)
        self.assertEqual([], self.children[3].took("stop"))
        for number in (1, 2, 3):
            self.report_jobs(number, nodes=5)
        self.report_jobs(4, nodes=5)
        self.assertEqual([[False]], self.children[3].took("stop"))

    def test_no_connections(self) -> None:
        """It gets no connections, however few the others can take."""
        self.serving()
        for _ in range(8):
            mine, its = socket.socketpair()
            self.addCleanup(mine.close)
            self.children[0].give_back([(["client", 4], its)])
        self.assertEqual([], self.children[3].took("client"))
