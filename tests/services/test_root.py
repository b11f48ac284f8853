"""The node as one service: how it starts and how it stops."""

from __future__ import annotations

import os
from pathlib import Path

from disque_tx.errors import ConfigError
from disque_tx.services.root import new_node_id, prepare
from disque_tx.settings import Settings
from tests.services.nodebench import drive
from tests.services.rootbench import RootCase


class StartTests(RootCase):
    """Client protocol, section 21; cluster protocol, section 16."""

    def test_serves(self) -> None:
        """After the start clients are served, and the log says so in the words people look for."""
        root = self.started()
        self.assertEqual(b"+PONG\r\n", self.ask(self.dial(), "PING"))
        self.assertFalse(root.server.troubled)
        self.assertIn("# Server started, Disque version 1.0-rc1", self.logged())
        self.assertIn("* The server is now ready to accept connections at ", self.logged())

    def test_without_privileged_step(self) -> None:
        """Programs that only know startService are served as well."""
        root = self.make()
        root.startService()
        self.addCleanup(self.stopped, root)
        self.assertEqual(b"+PONG\r\n", self.ask(self.dial(), "PING"))

    def test_node_id_stays(self) -> None:
        """A node is itself after a restart."""
        root = self.started()
        first = self.ask(self.dial(), "CLUSTER MYID")
        self.stopped(root)
        self.started()
        self.assertEqual(first, self.ask(self.dial(), "CLUSTER MYID"))
        self.assertRegex(first, rb"\A\$40\r\n[0-9a-f]{40}\r\n\Z")

    def test_new_ids(self) -> None:
        """Every new node is another one."""
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
        """The configuration is in force from the first client on."""
        self.settings.requirepass = b"secret"
        self.started()
        self.assertEqual(
            b"-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n",
            self.ask(self.dial(), "PING", "AUTH secret", "PING"),
        )

    def test_no_log_to_load(self) -> None:
        """When the log that must be loaded is missing, the process ends with a reason."""
        self.settings.aof_enqueue_jobs_once = True
        root = self.started()
        self.assertEqual(1, root.exit_status)
        self.assertIn("Can't open the append only file", self.logged())
        self.reactor.advance(0)
        self.assertTrue(self.reactor.hasStopped)

    def test_prepare(self) -> None:
        """The process works in ``dir``; a folder that is not there is named."""
        self.addCleanup(os.chdir, os.getcwd())
        log = prepare(self.settings)
        self.assertEqual(self.folder, Path.cwd())
        self.assertEqual(("notice", self.settings.logfile), (log.level, log.path))
        with self.assertRaisesRegex(ConfigError, "Can't chdir to '/no/such'"):
            prepare(Settings(dir="/no/such"))


class StopTests(RootCase):
    """DESIGN, section 7."""

    def test_blocked_clients(self) -> None:
        """Clients that wait are told to go to another node, before the connections close."""
        root = self.started()
        client = self.dial()
        self.ask(client, "GETJOB FROM q")
        self.stopped(root)
        self.assertEqual(
            b"-LEAVING This node is shutting down, please connect to a different one\r\n",
            self.heard(client),
        )
        self.assertEqual(b"", self.heard(client))

    def test_nothing_is_left(self) -> None:
        """No descriptor, no timer, no lock, no socket file."""
        root = self.started()
        self.ask(self.dial(), "ADDJOB q b 0 DELAY 10")
        self.stopped(root)
        self.assertEqual([], self.reactor.getReaders())
        self.assertEqual([], self.reactor.getDelayedCalls())
        self.assertFalse((self.folder / "d.sock").exists())
        self.stopped(self.started())
        self.assertIn("bye bye", self.logged())

    def test_asked_twice(self) -> None:
        """The reactor is stopped once, with the worst status that was asked for."""
        root = self.started()
        root.request_stop(1)
        root.request_stop(0)
        self.assertFalse(self.reactor.hasStopped)
        self.reactor.advance(0)
        self.assertTrue(self.reactor.hasStopped)
        self.assertEqual((1, None), (root.exit_status, root.restart_wanted))

    def test_nodes_file_lost(self) -> None:
        """A node that cannot write down whom it knows does not go on."""
        root = self.started()
        client = self.dial()
        (self.folder / "nodes.conf").unlink()
        (self.folder / "nodes.conf").mkdir()
        self.ask(client, "CLUSTER LEAVING yes")
        self.assertEqual(1, root.exit_status)
        self.assertIn("nodes.conf can't be written", self.logged())

    def test_leaving_is_written_down(self) -> None:
        """The flag is in the file before the operator reads OK."""
        self.started()
        self.assertEqual(b"+OK\r\n", self.ask(self.dial(), "CLUSTER LEAVING yes"))
        self.assertIn(" myself,leaving ", (self.folder / "nodes.conf").read_text())

    def test_shutdown(self) -> None:
        """SHUTDOWN stops the reactor after its turn, and is not answered."""
        root = self.started()
        client = self.dial()
        client.sendall(b"ADDJOB q b 0\r\nSHUTDOWN\r\n")
        drive(self.reactor)
        self.assertTrue(self.reactor.hasStopped)
        self.assertEqual(0, root.exit_status)
        self.assertRegex(self.heard(client), rb"\A\+D-\S+\r\n\Z")
