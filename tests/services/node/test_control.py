"""Commands that control the process."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.services.node.control import BUS_FDS, RESERVED_FDS, clients_allowed, raise_fd_limit
from disque_tx.services.node.root import NodeRoot
from tests.services.nodebench import drive
from tests.services.rootbench import RootCase


class ConfigTests(RootCase):
    """CONFIG on a whole node (client protocol, section 9)."""

    def test_applied_at_once(self) -> None:
        """A value that was set takes effect and can be read."""
        root = self.started()
        client = self.dial()
        answer = self.ask(
            client,
            "CONFIG SET loglevel warning",
            "CONFIG SET maxclients 50",
            "CONFIG SET slowlog-max-len 7",
            "CONFIG GET maxclients",
        )
        self.assertEqual(b"+OK\r\n" * 3 + b"*2\r\n$10\r\nmaxclients\r\n$2\r\n50\r\n", answer)
        self.assertEqual("warning", root.log.level)

    def test_logged(self) -> None:
        """The log says who changed which setting, and what was refused."""
        self.started()
        self.ask(self.dial(), "CONFIG SET hz 100", "CONFIG SET hz fast")
        client = r"\* Client [^\n]+d.sock:0: CONFIG SET hz "
        self.assertRegex(self.logged(), client + "100\n")
        self.assertRegex(self.logged(), client + "fast, refused: ERR Invalid argument 'fast'")

    def test_password(self) -> None:
        """A new password applies to connected clients too, including the one that set it."""
        self.started()
        client = self.dial()
        self.assertEqual(
            b"+OK\r\n-NOAUTH Authentication required.\r\n",
            self.ask(client, "CONFIG SET requirepass x", "PING"),
        )

    def test_hz(self) -> None:
        """The periodic work continues at the new rate."""
        root = self.started()
        self.ask(self.dial(), "CONFIG SET hz 100")
        before = root.server.stats.commands_processed
        runs: list[int] = []
        self.patch(root.aof, "tick", lambda: runs.append(1))
        self.reactor.pump([0.01] * 100)
        self.assertTrue(95 <= len(runs) <= 101, len(runs))
        self.assertEqual(before, root.server.stats.commands_processed)

    def test_too_many_clients(self) -> None:
        """More clients than the system allows are refused at once."""
        self.started()
        answer = self.ask(self.dial(), f"CONFIG SET maxclients {2**31}")
        self.assertTrue(answer.startswith(b"-ERR "), answer)
        self.assertEqual(100, self.settings.maxclients)

    def test_no_file(self) -> None:
        """Without a configuration file there is nothing to rewrite."""
        self.started()
        self.assertEqual(
            b"-ERR The server is running without a config file\r\n",
            self.ask(self.dial(), "CONFIG REWRITE"),
        )

    def test_rewrite(self) -> None:
        """The file keeps its comments and gets the current values."""
        path = self.folder / "my.conf"
        path.write_text("# mine\nmaxclients 100\n")
        self.settings.config_file = str(path)
        self.started()
        self.ask(self.dial(), "CONFIG SET maxclients 60", "CONFIG REWRITE")
        lines = path.read_text().splitlines()
        self.assertEqual(["# mine", "maxclients 60"], lines[:2])

    def test_rewrite_fails(self) -> None:
        """The error contains the reason."""
        self.settings.config_file = "/no/such/folder/my.conf"
        self.started()
        self.assertEqual(
            b"-ERR Rewriting config file: No such file or directory\r\n",
            self.ask(self.dial(), "CONFIG REWRITE"),
        )

    def test_log_cannot_be_switched_on(self) -> None:
        """If the log cannot be created the setting is not changed."""
        self.started()
        self.settings.appendfilename = "no/such/folder.aof"
        client = self.dial()
        self.assertEqual(
            b"-ERR Unable to turn on AOF. Check server logs.\r\n"
            b"*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n",
            self.ask(client, "CONFIG SET appendonly yes", "CONFIG GET appendonly"),
        )
        self.assertIn("Unable to switch the log", self.logged())


class ProcessTests(RootCase):
    """Commands that affect the process."""

    def test_protocol(self) -> None:
        """HELLO changes the protocol of its own reply and later ones, not of earlier ones."""
        self.started()
        answer = self.ask(self.dial(), "CLIENT GETNAME", "HELLO 3", "CLIENT GETNAME")
        self.assertTrue(answer.startswith(b"$-1\r\n%7\r\n"), answer)
        self.assertTrue(answer.endswith(b"_\r\n"), answer)

    def test_info(self) -> None:
        """INFO has all sections, and reports that the log is disabled."""
        self.started()
        text = self.ask(self.dial(), "INFO all").decode()
        for section in ("Server", "Clients", "Memory", "Jobs", "Queues", "Persistence", "CPU"):
            self.assertIn(f"# {section}\r\n", text)
        self.assertIn("\r\naof_state:off\r\n", text)
        self.assertIn("\r\nloading:0\r\n", text)

    def test_client_list(self) -> None:
        """A client's buffers and its address are listed."""
        self.started()
        answer = self.ask(self.dial(), "CLIENT LIST").decode()
        self.assertRegex(answer, r"addr=\S*d\.sock:0 fd=\d+ name= .* flags=U qbuf=0 .* cmd=client")

    def test_client_without_connection(self) -> None:
        """A client without a connection of its own, such as a plugin's, has no buffers, and is on
        this host."""
        control = self.started().server.control
        client = Client(1, ValueReplies(), b"", 0)
        self.assertEqual((0, 0, 0), control.client_buffers(client))
        self.assertEqual(b"127.0.0.1", control.local_ip(client))

    def test_save_config(self) -> None:
        """CLUSTER SAVECONFIG writes the nodes file, or reports why it cannot."""
        self.started()
        client = self.dial()
        path = self.folder / "nodes.conf"
        path.unlink()
        self.assertEqual(b"+OK\r\n", self.ask(client, "CLUSTER SAVECONFIG"))
        self.assertIn("myself", path.read_text())
        path.unlink()
        path.mkdir()
        self.assertEqual(
            b"-ERR error saving the cluster node config: Is a directory\r\n",
            self.ask(client, "CLUSTER SAVECONFIG"),
        )
        path.rmdir()

    def test_restart(self) -> None:
        """DEBUG RESTART ends the process with a request to start again."""
        root = self.started()
        self.ask(self.dial(), "DEBUG RESTART 250")
        self.assertEqual(250, root.restart_wanted)
        self.assertTrue(self.reactor.hasStopped)

    def test_restart_refused(self) -> None:
        """If the configuration cannot be saved there is no restart."""
        self.settings.config_file = "/no/such/folder/my.conf"
        root = self.started()
        self.assertEqual(
            b"-ERR failed to restart the server. Check server logs.\r\n",
            self.ask(self.dial(), "DEBUG RESTART"),
        )
        self.assertIsNone(root.restart_wanted)

    def test_shutdown_refused(self) -> None:
        """While the first log is being written the process does not stop."""
        root = self.started()
        root.aof.state = "wait-rewrite"
        self.assertEqual(
            b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n", self.ask(self.dial(), "SHUTDOWN")
        )
        root.aof.state = "off"
        self.assertFalse(self.reactor.hasStopped)

    def test_shutdown_without_its_log(self) -> None:
        """If the log of SHUTDOWN REWRITE-AOF cannot be written, the node keeps running."""
        self.started()
        self.settings.appendfilename = "no/such/folder.aof"
        client = self.dial()
        self.assertEqual(
            b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n+PONG\r\n",
            self.ask(client, "SHUTDOWN REWRITE-AOF", "PING"),
        )
        self.assertFalse(self.reactor.hasStopped)


class FailureTests(RootCase):
    """What a node says when the disk refuses."""

    def broken(self, *_: object, **__: object) -> None:
        """The disk is full."""
        raise OSError(errno.ENOSPC, "No space left on device")

    def refused(self, request: str, reply: str) -> None:
        """The request has this reply, and the node goes on."""
        answer = self.ask(self.dial(), request, "PING")
        self.assertEqual(f"-ERR {reply}\r\n+PONG\r\n", answer.decode())

    def test_tables(self) -> None:
        """A policy or a schedule that could not be written is refused with the reason."""
        root = self.started()
        self.patch(root.files, "replace", self.broken)
        full = "can't be saved: No space left on device"
        self.refused("QPOLICY SET q ttl 5", f"The policies {full}")
        self.refused('SCHEDULE SET s "* * * * *" QUEUE q body', f"The schedules {full}")

    def test_log_switched(self) -> None:
        """A log that cannot be switched stays as it is shown, and the operator learns why."""
        root = self.started()
        self.patch(root.aof, "enable", self.broken)
        self.refused("CONFIG SET appendonly yes", "Unable to turn on AOF. Check server logs.")
        self.assertFalse(self.settings.appendonly)
        self.assertIn("# Unable to switch the log: No space left on device\n", self.logged())
        root.settings.appendonly = True
        self.patch(root.aof, "disable", self.broken)
        self.refused("CONFIG SET appendonly no", "Unable to turn on AOF. Check server logs.")
        self.assertTrue(self.settings.appendonly)

    def test_same_value(self) -> None:
        """The log is switched when the value changes, not when it is set again."""
        root = self.started()
        self.patch(root.aof, "disable", self.broken)
        self.assertEqual(b"+OK\r\n", self.ask(self.dial(), "CONFIG SET appendonly no"))
        self.assertEqual(b"+OK\r\n", self.ask(self.dial(), "CONFIG SET appendonly yes"))
        self.assertEqual("on", self.settled(root))

    def settled(self, root: NodeRoot) -> str:
        """The state of the log, once its first file is written."""
        for _ in range(5):
            drive(self.reactor)
            self.reactor.advance(0.1)
        return root.aof.state

    def test_shutdown(self) -> None:
        """Why a process does not stop is said to its operator."""
        root = self.started()
        refused = "Errors trying to SHUTDOWN. Check logs."
        root.aof.state = "wait-rewrite"
        self.refused("SHUTDOWN", refused)
        root.aof.state = "off"
        self.patch(root.aof, "rewrite_now", self.broken)
        self.refused("SHUTDOWN REWRITE-AOF", refused)
        lines = self.logged()
        self.assertIn("# The first log is still being written, the process can't stop yet\n", lines)
        self.assertIn("# Writing the log failed: No space left on device\n", lines)
        self.assertNotIn("User requested shutdown", lines)

    def test_restart(self) -> None:
        """Why a restart was refused is said to its operator; without a configuration file there is
        nothing to write, and the restart happens."""
        root = self.started()
        self.settings.config_file = "/no/such/folder/my.conf"
        self.refused("DEBUG RESTART", "failed to restart the server. Check server logs.")
        reason = "Rewriting config file: No such file or directory"
        self.assertIn(f"# Restart refused: {reason}\n", self.logged())
        self.assertIsNone(root.restart_wanted)
        self.settings.config_file = ""
        self.ask(self.dial(), "DEBUG RESTART")
        self.assertEqual(0, root.restart_wanted)

    def test_restart_without_its_file(self) -> None:
        """DEBUG CRASH-AND-RECOVER does not write the configuration: it is a crash."""
        root = self.started()
        self.settings.config_file = "/no/such/folder/my.conf"
        self.ask(self.dial(), "DEBUG CRASH-AND-RECOVER 20")
        self.assertEqual(20, root.restart_wanted)

    def test_written(self) -> None:
        """CONFIG REWRITE makes a file that was missing."""
        path = self.folder / "my.conf"
        self.settings.config_file = str(path)
        self.started()
        self.assertEqual(b"+OK\r\n", self.ask(self.dial(), "CONFIG REWRITE"))
        self.assertIn("maxclients 100\n", path.read_text())

    def test_sleep(self) -> None:
        """DEBUG SLEEP takes the time that it was told, in which the process does nothing else."""
        slept: list[float] = []
        self.started()
        self.patch(time, "sleep", slept.append)
        self.assertEqual(b"+OK\r\n", self.ask(self.dial(), "DEBUG SLEEP 0.25"))
        self.assertEqual([0.25], slept)

    def test_crash(self) -> None:
        """DEBUG SEGFAULT and DEBUG ASSERT end this process by different signals."""
        signals: list[tuple[int, int]] = []
        self.started()
        self.patch(os, "kill", lambda *words: signals.append(words))
        self.ask(self.dial(), "DEBUG SEGFAULT", "DEBUG ASSERT")
        own = os.getpid()
        self.assertEqual([(own, signal.SIGSEGV), (own, signal.SIGABRT)], signals)


class AddressTests(RootCase):
    """The address that a client connected to."""

    def test_local_client(self) -> None:
        """For a client on a Unix socket this is the loopback address."""
        self.started()
        self.assertIn(b"$9\r\n127.0.0.1\r\n", self.ask(self.dial(), "HELLO"))


class LimitTests(SynchronousTestCase):
    """The limit on open files (client protocol, section 2)."""

    def test_enough(self) -> None:
        """A limit that fits is granted, and the soft limit is raised for it."""
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
        self.assertEqual(500, raise_fd_limit(500))
        self.assertEqual(
            500 + RESERVED_FDS + BUS_FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        )

    def test_already_high(self) -> None:
        """A limit that is high enough is not changed."""
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.assertEqual(10, raise_fd_limit(10))
        self.assertEqual(limits, resource.getrlimit(resource.RLIMIT_NOFILE))

    def test_hard_limit(self) -> None:
        """The node does not promise more clients than the system allows."""
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = clients_allowed()
        self.assertEqual(hard - RESERVED_FDS if hard > 0 else 2**31 - 1, allowed)

    def limits(self, soft: int, hard: int, refusal: Exception | None = None) -> list[object]:
        """The system has these limits; what the process asks for is in the list returned."""
        asked: list[object] = []

        def ask(_which: int, limits: tuple[int, int]) -> None:
            if refusal is not None:
                raise refusal
            asked.append(limits)

        self.patch(resource, "getrlimit", lambda _which: (soft, hard))
        self.patch(resource, "setrlimit", ask)
        return asked

    def test_exact(self) -> None:
        """A process asks for a descriptor per client, 32 for itself and 512 for the bus, or for as
        many as it may have; the bus goes short before clients do."""
        infinite = resource.RLIM_INFINITY
        for soft, hard, clients, asked in (
            (643, 10_000, 100, [(644, 10_000)]),
            (644, 10_000, 100, []),
            (infinite, infinite, 100, []),
            (10, infinite, 100, [(644, infinite)]),
            (10, 132, 100, [(132, 132)]),
            (10, 131, 99, [(131, 131)]),
        ):
            found = self.limits(soft, hard)
            self.assertEqual((clients, asked), (raise_fd_limit(100), found), (soft, hard))

    def test_refused(self) -> None:
        """When the system refuses, the process serves as many clients as it can have now."""
        for error in (OSError("no"), ValueError("no")):
            self.limits(82, 10_000, error)
            self.assertEqual(50, raise_fd_limit(100))

    def test_allowed(self) -> None:
        """What CONFIG SET maxclients may be is what the system allows at most."""
        self.limits(10, 1_032)
        self.assertEqual(1_000, clients_allowed())
        self.limits(10, resource.RLIM_INFINITY)
        self.assertEqual(2**31 - 1, clients_allowed())
