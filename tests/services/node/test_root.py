"""The node as one service: how it starts and stops."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet import endpoints
from twisted.internet.defer import Deferred, succeed

from disque_tx.config.lists import WaitFor
from disque_tx.config.settings import Settings
from disque_tx.errors import ConfigError
from disque_tx.services.machine import log as log_module
from disque_tx.services.node import root as root_module
from disque_tx.services.node.identity import new_node_id
from disque_tx.services.node.root import prepare
from tests.acceptance.daemon import BUS_OFFSET, free_port
from tests.services.nodebench import drive
from tests.services.rootbench import RootCase

#: As an earlier run left it; a starting node rewrites it, with its start time.
_NODES = b"%s :0 myself 0 0 connected\n" % (b"a" * 40)


class ClosedPort:
    """A port without connections."""

    def getHost(self) -> str:
        """Its address."""
        return "slow:1"

    def stopListening(self) -> Deferred[None]:
        """Stop listening."""
        return succeed(None)


class SlowEndpoint:
    """An endpoint that starts to listen when ``port`` fires."""

    def __init__(self, port: Deferred[Any]) -> None:
        self._port = port

    def listen(self, factory: object) -> Deferred[Any]:
        """Start to listen."""
        return self._port


class StartTests(RootCase):
    """Client protocol, section 21; cluster protocol, section 16."""

    def test_serves(self) -> None:
        """After the start clients are served, and the log has the lines that scripts look for."""
        root = self.started()
        self.assertEqual(b"+PONG\r\n", self.ask(self.dial(), "PING"))
        self.assertFalse(root.server.degraded)
        self.assertIn("# Server started, Disque version 1.0-rc1", self.logged())
        self.assertIn("* The server is now ready to accept connections at ", self.logged())

    def test_waits_for_nodes(self) -> None:
        """A node that waits for others is started, but serves no clients, and says so to those who
        ask about its health; the addresses of others are looked up meanwhile."""
        self.settings.cluster_wait_for = WaitFor(2)
        self.settings.cluster_discovery = ["static:192.0.2.1:7711"]
        root = self.started()
        self.assertIn(b"-LOADING", self.ask(self.dial(), "QLEN q"))
        view = root.plugin_host.view
        self.assertFalse(view.health().started)
        self.assertEqual("1", view.info()["discovery_addresses"])
        root.server.awaited_nodes = 0
        self.assertTrue(view.health().started)

    def test_info_listening(self) -> None:
        """INFO shows where the node listens, in a section that the original does not have."""
        port = free_port()
        self.settings = self.make_settings(port=port, bind=["127.0.0.1", "::1"])
        self.started()
        reply = self.ask(self.dial(), "INFO listening").decode()
        self.assertIn(
            f"listening_clients:127.0.0.1:{port},[::1]:{port},unix:{self.settings.unixsocket}\r\n",
            reply,
        )
        bus = port + BUS_OFFSET
        self.assertIn(f"listening_bus:127.0.0.1:{bus},[::1]:{bus}\r\n", reply)

    def test_without_privileged_step(self) -> None:
        """Programs that only call startService are supported as well."""
        root = self.make()
        root.startService()
        self.addCleanup(self.stopped, root)
        self.assertEqual(b"+PONG\r\n", self.ask(self.dial(), "PING"))

    def test_node_id_stays(self) -> None:
        """A node keeps its ID after a restart."""
        root = self.started()
        first = self.ask(self.dial(), "CLUSTER MYID")
        self.stopped(root)
        self.started()
        self.assertEqual(first, self.ask(self.dial(), "CLUSTER MYID"))
        self.assertRegex(first, rb"\A\$40\r\n[0-9a-f]{40}\r\n\Z")

    def test_new_ids(self) -> None:
        """Every new node has another ID."""
        self.assertNotEqual(new_node_id(), new_node_id())

    def test_folder_in_use(self) -> None:
        """Two nodes do not share a nodes file."""
        self.started()
        with self.assertRaisesRegex(ConfigError, "in use by another node"):
            self.make()

    def test_renames(self) -> None:
        """Renamed commands are found by their new name."""
        self.settings.renames = [(b"PING", b"KNOCK"), (b"DEBUG", b"")]
        self.started()
        answer = self.ask(self.dial(), "KNOCK", "PING", "DEBUG SLEEP 0")
        self.assertEqual(
            b"+PONG\r\n-ERR unknown command 'PING'\r\n-ERR unknown command 'DEBUG'\r\n", answer
        )

    def test_settings_are_applied(self) -> None:
        """The configuration applies from the first client on."""
        self.settings.requirepass = b"secret"
        self.started()
        self.assertEqual(
            b"-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n",
            self.ask(self.dial(), "PING", "AUTH secret", "PING"),
        )

    def test_no_log_to_load(self) -> None:
        """If the log that must be loaded is missing, the process ends with a reason."""
        self.settings.aof_enqueue_jobs_once = True
        root = self.started()
        self.assertEqual(1, root.exit_status)
        self.assertIn("Can't open the append only file", self.logged())
        self.reactor.advance(0)
        self.assertTrue(self.reactor.hasStopped)

    def test_few_descriptors(self) -> None:
        """A limit on open files that is too low is said with what it leaves, or ends the start when
        it leaves nothing; it is the same for clients."""
        self.patch(root_module, "raise_fd_limit", lambda wanted: 7)
        root = self.started()
        self.assertEqual(7, root.settings.maxclients)
        self.assertIn(
            "# The limit on open files allows 7 clients instead of 100: maxclients is lowered."
            " Raise it with 'ulimit -n'.\n",
            self.logged(),
        )
        self.stopped(root)
        self.patch(root_module, "raise_fd_limit", lambda wanted: 0)
        error = self.assertRaises(ConfigError, self.make().privilegedStartService)
        self.assertEqual(
            "The limit on open files is too low to serve a single client: raise it ('ulimit -n',"
            " LimitNOFILE).",
            str(error),
        )

    def test_one_client(self) -> None:
        """A node serves a single client if that is all that it can."""
        self.patch(root_module, "raise_fd_limit", lambda wanted: 1)
        self.assertEqual(1, self.started().settings.maxclients)

    def test_queued_once(self) -> None:
        """A log whose jobs were to be queued once is not loaded so again: the option is off, in the
        configuration file, too, or the operator learns that it is not."""
        for path, said in ((self.folder / "my.conf", False), (Path("/no/such/my.conf"), True)):
            (self.folder / "disque.aof").write_bytes(b"")
            self.settings.aof_enqueue_jobs_once = True
            self.settings.config_file = str(path)
            if not said:
                path.write_text("aof-enqueue-jobs-once yes\n")
            self.stopped(self.started())
            self.assertFalse(self.settings.aof_enqueue_jobs_once)
            reason = "Rewriting config file: No such file or directory"
            line = f"# aof-enqueue-jobs-once is still on in the file: {reason}\n"
            self.assertEqual(said, line in self.logged())
        text = (self.folder / "my.conf").read_text()
        self.assertNotIn("aof-enqueue-jobs-once yes", text)

    def test_stopped_while_loading(self) -> None:
        """A node that is told to stop before it serves never does."""
        self.settings.appendonly = True
        root = self.make()
        root.privilegedStartService()
        root.startService()
        self.addCleanup(self.stopped, root)
        root.request_stop(0)
        drive(self.reactor)
        self.assertFalse(root.cluster.running)
        self.assertNotIn("ready to accept", self.logged())

    def test_fault_at_the_start(self) -> None:
        """A fault of this program at the start is logged with its traceback, and ends the node."""
        root = self.make()
        self.patch(root.aof, "open_and_load", lambda done: done(ZeroDivisionError("oops")))
        root.privilegedStartService()
        root.startService()
        self.addCleanup(self.stopped, root)
        self.assertIn("# The start failed: ", self.logged())
        self.assertIn("ZeroDivisionError: oops\n", self.logged())
        self.assertEqual(1, root.exit_status)

    def test_disk_lost(self) -> None:
        """A node whose disk failed under ``always`` ends at once, and says why, line by line."""
        root = self.started()
        root._broken("The disk failed.\nCheck it.")
        self.assertEqual([1], self.died)
        self.assertRegex(self.logged(), r"# The disk failed\.\n[^\n]* # Check it\.\n")

    def test_stop_without_its_log(self) -> None:
        """A stop that lost records says so with its exit status; one that lost none is clean."""
        root = self.started()
        self.stopped(root)
        self.assertEqual(0, root.exit_status)
        root = self.started()

        def broken() -> None:
            raise OSError(5, "Input/output error")

        self.patch(root.aof, "flush_and_sync", broken)
        self.stopped(root)
        self.assertEqual(1, root.exit_status)

    def test_syslog(self) -> None:
        """With ``syslog-enabled`` the lines go there, under the configured name and facility."""
        self.addCleanup(os.chdir, os.getcwd())
        asked: list[tuple[object, ...]] = []

        def system_log(*words: object) -> Callable[[str, str], None]:
            asked.append(words)
            return lambda level, text: asked.append((level, text))

        self.patch(log_module, "system_log", system_log)
        self.settings.syslog_enabled = True
        self.settings.syslog_ident, self.settings.syslog_facility = "queue", "local3"
        prepare(self.settings).warning("hello")
        self.assertEqual([("queue", "local3"), ("warning", "hello")], asked)

    def test_prepare(self) -> None:
        """The working directory is ``dir``; the error for a missing one names it."""
        self.addCleanup(os.chdir, os.getcwd())
        log = prepare(self.settings)
        self.assertEqual(self.folder, Path.cwd())
        self.assertEqual(("notice", self.settings.logfile), (log.level, log.path))
        with self.assertRaisesRegex(ConfigError, "Can't chdir to '/no/such'"):
            prepare(Settings(dir="/no/such"))


class ReadyTests(RootCase):
    """When a node reports that it is ready, and what a failed start leaves behind."""

    def systemd_messages(self) -> Callable[[], list[str]]:
        """Returns a function that returns the notifications sent to systemd since its last call."""
        path = self.path("notify")
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(path)
        manager.setblocking(False)
        self.patch(os, "environ", {**os.environ, "NOTIFY_SOCKET": path})

        def messages() -> list[str]:
            found = []
            try:
                while True:
                    found.append(manager.recv(1000).decode())
            except BlockingIOError:
                return found

        return messages

    def log_text(self) -> str:
        """The text of the log, which may be missing."""
        return self.logged() if (self.folder / "log").exists() else ""

    def unclaimed(self, **changes: object) -> str:
        """A node with these settings does not start, and changes nothing; returns the reason."""
        nodes, log = self.folder / "nodes.conf", self.folder / "disque.aof"
        nodes.write_bytes(_NODES)
        self.settings = self.make_settings(**changes)
        root = self.make()
        with self.assertRaises(ConfigError) as caught:
            root.privilegedStartService()
        self.assertEqual(_NODES, nodes.read_bytes())
        self.assertFalse((self.folder / "d.sock").exists() or log.exists())
        self.assertNotIn("ready to accept", self.log_text())
        # Nothing is locked: another node can start in its place.
        self.settings = self.make_settings(logfile="/dev/null")
        self.stopped(self.started())
        self.successResultOf(root.stopService())
        return str(caught.exception)

    def test_when_loaded(self) -> None:
        """READY is not sent while clients still get errors because the log is being loaded."""
        self.settings.appendonly = True
        messages = self.systemd_messages()
        root = self.make()
        root.privilegedStartService()
        root.startService()
        self.addCleanup(self.stopped, root)
        self.assertNotIn("ready to accept", self.logged())
        self.assertEqual(["STATUS=Loading the log"], messages())
        drive(self.reactor)
        self.assertIn("ready to accept", self.logged())
        self.assertEqual(["READY=1\nSTATUS=Serving clients"], messages())

    def test_bus_port_taken(self) -> None:
        """If the bus port is in use, the error names the address, and the node claims nothing."""
        port = free_port()
        with socket.create_server(("127.0.0.1", port + BUS_OFFSET)):
            text = self.unclaimed(port=port, appendonly=True)
        self.assertIn(f"127.0.0.1:{port + BUS_OFFSET}: Address already in use", text)
        self.assertIn("'cluster-bus-port'", text)

    def test_client_port_taken(self) -> None:
        """The same for the clients' port, which is in use in one family only."""
        port = free_port()
        with socket.create_server(("::1", port), family=socket.AF_INET6):
            text = self.unclaimed(port=port)
        self.assertIn(f"[::]:{port}: Address already in use", text)

    def test_other_mistakes(self) -> None:
        """The same for missing certificates and unknown protocols."""
        text = self.unclaimed(port=free_port(), cluster_bus_tls=True, cluster_bus_tls_cert="/no")
        self.assertIn("cluster-bus-tls needs three files", text)
        self.assertIn("no such protocol", self.unclaimed(listen=[("morse", "unix:x")]))

    def test_damaged_log(self) -> None:
        """A node with a damaged log is never ready, and keeps its files for examination."""
        messages = self.systemd_messages()
        nodes, log = self.folder / "nodes.conf", self.folder / "disque.aof"
        nodes.write_bytes(_NODES)
        log.write_bytes(b"*1\r\n$3\r\nfoo\r\n")
        self.settings.appendonly = True
        root = self.started()
        self.assertEqual(1, root.exit_status)
        self.stopped(root)
        self.assertEqual(_NODES, nodes.read_bytes())
        self.assertEqual(b"*1\r\n$3\r\nfoo\r\n", log.read_bytes())
        self.assertNotIn("ready to accept", self.logged())
        self.assertNotIn("READY=1", "".join(messages()))

    def test_nodes_file_cannot_be_written(self) -> None:
        """A node that cannot save its ID does not start, and the error names the file."""
        root = self.make()
        (self.folder / "nodes.conf").unlink()
        (self.folder / "nodes.conf").mkdir()
        root.privilegedStartService()
        root.startService()
        self.addCleanup(self.stopped, root)
        self.assertEqual(1, root.exit_status)
        self.assertIn(f"{self.folder}/nodes.conf can't be written: Is a directory", self.logged())
        self.assertNotIn("ready to accept", self.logged())

    def test_slow_endpoint(self) -> None:
        """A slow endpoint is waited for; one that fails late ends the start."""
        for error, expected in ((None, 0), (OSError("no route"), 1)):
            port: Deferred[Any] = Deferred()
            endpoint = SlowEndpoint(port)
            self.patch(endpoints, "serverFromString", lambda *_, endpoint=endpoint: endpoint)
            self.settings = self.make_settings(
                listen=[("resp", "slow:1")], logfile=str(self.folder / f"log{expected}")
            )
            root = self.started()
            self.assertNotIn("ready to accept", self.logged())
            if error is None:
                port.callback(ClosedPort())
            else:
                port.errback(error)
            self.assertEqual(expected, root.exit_status)
            self.assertEqual(not expected, "ready to accept" in self.logged())
            self.stopped(root)
        self.assertIn("listen resp slow:1: no route", self.logged())


class StopTests(RootCase):
    """The orderly stop of a node (cluster protocol, section 16)."""

    def test_blocked_clients(self) -> None:
        """Blocked clients get the error LEAVING before their connections are closed."""
        root = self.started()
        client = self.dial()
        self.ask(client, "GETJOB FROM q")
        self.stopped(root)
        self.assertEqual(
            b"-LEAVING This node is shutting down, please connect to a different one\r\n",
            self.received(client),
        )
        self.assertEqual(b"", self.received(client))

    def test_nothing_is_left(self) -> None:
        """No descriptor, timer, lock or socket file is left."""
        root = self.started()
        self.ask(self.dial(), "ADDJOB q b 0 DELAY 10")
        self.stopped(root)
        self.assertEqual([], self.reactor.getReaders())
        self.assertEqual([], self.reactor.getDelayedCalls())
        self.assertFalse((self.folder / "d.sock").exists())
        self.stopped(self.started())
        self.assertIn("bye bye", self.logged())

    def test_asked_twice(self) -> None:
        """The reactor is stopped once, with the worst requested exit status."""
        root = self.started()
        root.request_stop(1)
        root.request_stop(0)
        self.assertFalse(self.reactor.hasStopped)
        self.reactor.advance(0)
        self.assertTrue(self.reactor.hasStopped)
        self.assertEqual((1, None), (root.exit_status, root.restart_wanted))

    def test_fault(self) -> None:
        """Of a fault that ends the node all lines are logged: the last one says what it was."""
        self.started().fatal(f"Traceback:\n{'x' * 1_000}\nZeroDivisionError")
        self.assertRegex(self.logged(), r"# Traceback:\n[^\n]* # x+\n[^\n]* # ZeroDivisionError\n")

    def test_nodes_file_lost(self) -> None:
        """A node that cannot save its node table stops."""
        root = self.started()
        client = self.dial()
        (self.folder / "nodes.conf").unlink()
        (self.folder / "nodes.conf").mkdir()
        self.ask(client, "CLUSTER LEAVING yes")
        self.assertEqual(1, root.exit_status)
        self.assertIn("nodes.conf can't be written", self.logged())

    def test_leaving_is_written_down(self) -> None:
        """The flag is saved before the operator gets the reply OK."""
        self.started()
        self.assertEqual(b"+OK\r\n", self.ask(self.dial(), "CLUSTER LEAVING yes"))
        self.assertIn(" myself,leaving ", (self.folder / "nodes.conf").read_text())

    def test_shutdown(self) -> None:
        """SHUTDOWN stops the reactor after its turn, and sends no reply."""
        root = self.started()
        client = self.dial()
        client.sendall(b"ADDJOB q b 0\r\nSHUTDOWN\r\n")
        drive(self.reactor)
        self.assertTrue(self.reactor.hasStopped)
        self.assertEqual(0, root.exit_status)
        self.assertRegex(self.received(client), rb"\A\+D-\S+\r\n\Z")
