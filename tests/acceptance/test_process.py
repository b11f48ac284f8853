"""The daemon as a process: its command line, signals, files and sockets."""

from __future__ import annotations

import contextlib
import os
import signal
import ssl
import subprocess
from pathlib import Path

from tests.acceptance.daemon import (
    LEAVING,
    Daemon,
    DaemonTestCase,
    environment,
    free_port,
    wait_for,
)
from tests.acceptance.resp import Connection, ReplyError
from tests.commands.test_table import COMMANDS
from tests.services.net.certificates import Authority


class ProgramTestCase(DaemonTestCase):
    """Runs of the program that are expected to end."""

    def run_program(
        self, *words: str, stdin: str = "", folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        return subprocess.run(
            [*Daemon.program, *words],
            cwd=folder or self.folder(),
            env=environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )


class CommandLineTests(ProgramTestCase):
    """Client protocol, sections 21.1 and 21.2."""

    def test_version(self) -> None:
        """Scripts can read the version."""
        done = self.run_program("--version")
        self.assertEqual(0, done.returncode)
        self.assertRegex(
            done.stdout,
            r"\ADisque server v=1\.0-rc1 sha=\w+:[01] malloc=\w+ bits=64 build=[0-9a-f]+",
        )

    def test_help(self) -> None:
        """The usage goes to standard error with status 1, and mentions no option of Redis."""
        done = self.run_program("--help")
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("disque-server", done.stderr)
        self.assertNotIn("slaveof", done.stderr)

    def test_bad_directive(self) -> None:
        """An error on the command line is shown with its option, and no file is touched."""
        folder = self.folder()
        done = self.run_program("--maxclients", "0", folder=folder)
        self.assertEqual(1, done.returncode)
        self.assertEqual(
            "\n*** FATAL CONFIG FILE ERROR ***\n"
            "Reading the command line, at the option '--maxclients'\n"
            ">>> 'maxclients \"0\"'\n"
            "Invalid max clients limit\n"
            "(in the command line)\n",
            done.stderr,
        )
        self.assertEqual([], list(folder.iterdir()))

    def test_bad_file(self) -> None:
        """An error in the file is shown with its line."""
        folder = self.folder()
        (folder / "my.conf").write_text("# mine\nport 7711\n  nonsense yes  \n")
        done = self.run_program("my.conf", folder=folder)
        self.assertEqual(1, done.returncode)
        self.assertIn("at line 3\n>>> 'nonsense yes'\nBad directive", done.stderr)

    def test_missing_file(self) -> None:
        """A missing configuration file is reported in the log."""
        done = self.run_program("/no/such.conf")
        self.assertEqual(1, done.returncode)
        self.assertIn("Fatal error, can't open config file '/no/such.conf'", done.stdout)

    def test_missing_directory(self) -> None:
        """A missing working directory prevents the start."""
        done = self.run_program("--dir", "/no/such/folder")
        self.assertEqual(1, done.returncode)
        self.assertIn("Can't chdir to '/no/such/folder'", done.stdout + done.stderr)

    def test_port_too_high(self) -> None:
        """A port that leaves no port for the bus is refused."""
        done = self.run_program("--port", "60000")
        self.assertEqual(1, done.returncode)
        self.assertIn("55535", done.stdout)

    def test_nowhere_to_listen(self) -> None:
        """A daemon that listens nowhere does not start."""
        done = self.run_program("--port", "0")
        self.assertEqual(1, done.returncode)
        self.assertIn("Configured to not listen anywhere, exiting.", done.stdout)

    def test_standard_input(self) -> None:
        """The configuration can come from standard input; then there is no file to rewrite."""
        daemon = self.daemon()
        text = f"port {daemon.port}\nbind 127.0.0.1\nmaxmemory 128mb\n"
        process = daemon.process = subprocess.Popen(
            [*Daemon.program, "-", "--hz", "20"],
            cwd=daemon.folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        (daemon.folder / "daemon.out").touch()
        assert process.stdin is not None
        process.stdin.write(text.encode())
        process.stdin.close()
        wait_for(daemon.serves, "the daemon serves clients")
        client = daemon.client()
        self.assertEqual([b"maxmemory", b"134217728"], client.call("CONFIG", "GET", "maxmemory"))
        self.assertEqual([b"hz", b"20"], client.call("CONFIG", "GET", "hz"))
        self.assertEqual(
            "ERR The server is running without a config file", client.error("CONFIG", "REWRITE")
        )

    def test_rename(self) -> None:
        """Commands can be renamed and removed (client protocol, section 21.3)."""
        client = self.running("rename-command SHUTDOWN ''", "rename-command PAUSE hold").client()
        self.assertEqual("ERR unknown command 'SHUTDOWN'", client.error("SHUTDOWN"))
        self.assertEqual("in", client.call("HOLD", "q", "in"))
        self.assertEqual(COMMANDS - 1, client.call("COMMAND", "COUNT"))


class SignalTests(DaemonTestCase):
    """Client protocol, section 21.6; cluster protocol, section 16."""

    def test_new_certificate(self) -> None:
        """On SIGHUP a new certificate is used; connected clients are not affected."""
        folder, port = self.folder(), free_port()
        authority = Authority(folder, "authority")
        certificate, key = authority.issue("node")
        daemon = self.daemon(
            f"listen resp ssl:{port}:privateKey={key}:certKey={certificate}:interface=127.0.0.1"
        ).start()
        client = daemon.client()
        address = (daemon.ip, port)
        old = ssl.get_server_certificate(address)
        authority.days = 2
        authority.issue("node")
        os.kill(daemon.pid, signal.SIGHUP)
        wait_for(lambda: ssl.get_server_certificate(address) != old, "the new certificate is used")
        self.assertEqual(Path(certificate).read_text(), ssl.get_server_certificate(address))
        self.assertEqual("PONG", client.call("PING"))
        self.assertIn("expires on", daemon.log())

    def test_graceful(self) -> None:
        """SIGTERM and SIGINT end the process with status 0; SIGHUP and SIGPIPE do not end it."""
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = self.running()
            os.kill(daemon.pid, signal.SIGHUP)
            os.kill(daemon.pid, signal.SIGPIPE)
            self.assertEqual("PONG", daemon.client().call("PING"))
            self.assertEqual(0, daemon.terminate(number))
            self.assertIn("bye bye", daemon.log())

    def test_drain(self) -> None:
        """SIGUSR1, which tells beanstalkd to drain, makes the node leave its cluster, and the log
        says how that was done."""
        daemon = self.running()
        client = daemon.client()
        os.kill(daemon.pid, signal.SIGUSR1)
        wait_for(lambda: client.call("CLUSTER", "LEAVING") == "yes", "the node leaves")
        self.assertIn("Received SIGUSR1: the node leaves its cluster", daemon.log())
        self.assertEqual("PONG", client.call("PING"))

    def test_audit(self) -> None:
        """The log says who changed how the node works, from where, and what was refused, and no
        password."""
        daemon = self.running()
        client = daemon.client()
        client.call("CLIENT", "SETNAME", "shop-admin")
        for words in (
            ("QPOLICY", "SET", "mail:*", "retry", "60"), ("PAUSE", "mail", "out"),
            ("QFLUSH", "mail"), ("PAUSE", "mail", "state"), ("CONFIG", "GET", "hz"),
            ("CONFIG", "SET", "hz", "many"), ("CONFIG", "SET", "requirepass", "very secret"),
        ):  # fmt: skip
            with contextlib.suppress(ReplyError):
                client.call(*words)
        log = daemon.log()
        said = [line.partition(" (shop-admin): ")[2] for line in log.splitlines()]
        said = [line for line in said if line]
        self.assertEqual(["QPOLICY SET mail:* retry 60", "PAUSE mail out", "QFLUSH mail"], said[:3])
        self.assertTrue(said[3].startswith("CONFIG SET hz many, refused: ERR "), said)
        self.assertTrue(said[4].startswith("CONFIG SET requirepass "), said)
        self.assertEqual(5, len(said))
        self.assertNotIn("very secret", log)
        self.assertIn("Client 127.0.0.1:", log)

    def test_blocked_clients(self) -> None:
        """Clients that wait for jobs receive an error that asks them to use another node, before
        they are disconnected."""
        daemon = self.running()
        client, other = daemon.client(), daemon.client()
        client.send("GETJOB", "FROM", "q")
        wait_for(lambda: daemon.info()["blocked_clients"] == "1", "the client is blocked")
        self.assertEqual(0, daemon.terminate())
        self.assertEqual(LEAVING, str(client.read()))
        self.assertTrue(client.closed())
        self.assertTrue(other.closed())

    def test_second_signal(self) -> None:
        """A second SIGINT ends the process at once."""
        daemon = self.running()
        daemon.client().send("DEBUG", "SLEEP", "15")
        wait_for(lambda: busy(daemon), "the daemon is busy")
        os.kill(daemon.pid, signal.SIGINT)
        wait_for(lambda: "Received SIGINT" in daemon.log(), "the first signal was handled")
        self.assertEqual(1, daemon.terminate(signal.SIGINT))

    def test_log_file_moved(self) -> None:
        """When the log file is moved away, a new one is started, without a signal."""
        daemon = self.running("logfile disque.log")
        path = daemon.folder / "disque.log"
        self.assertIn("Server started, Disque version 1.0-rc1", path.read_text())
        path.rename(daemon.folder / "old.log")
        daemon.terminate()
        self.assertIn("bye bye", path.read_text())
        self.assertRegex(
            path.read_text(), r"\A\d+:P \d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3} [+-]\d{4} [-.*#] "
        )

    def test_daemonize(self) -> None:
        """In the background, the pid file contains the process ID, and is removed at the end."""
        daemon = self.daemon("daemonize yes", "pidfile my.pid", "logfile my.log")
        daemon.spawn()
        self.assertEqual(0, daemon.wait())
        daemon.process = None
        wait_for(daemon.serves, "the daemon serves clients")
        path = daemon.folder / "my.pid"
        text = wait_for(path.exists, "there is a pid file") and path.read_text()
        pid = int(daemon.info()["process_id"])
        self.assertEqual(f"{pid}\n", text)
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not path.exists(), "the pid file is gone")
        wait_for(lambda: not alive(pid), "the process is gone")

    def test_nodes_file_locked(self) -> None:
        """Two daemons cannot share a folder: the second one ends at once."""
        daemon = self.running()
        second = self.daemon(folder=daemon.folder)
        second.spawn()
        self.assertEqual(1, second.wait())
        self.assertIn("nodes.conf", daemon.log())
        self.assertEqual("PONG", daemon.client().call("PING"))

    def test_port_taken(self) -> None:
        """A port that another program uses is named in the error."""
        daemon = self.running()
        second = self.daemon(f"port {daemon.port}")
        second.spawn()
        self.assertEqual(1, second.wait())
        self.assertIn(f"127.0.0.1:{daemon.port}", second.log())

    def test_restart(self) -> None:
        """DEBUG RESTART starts again with the same command line, after rewriting the
        configuration."""
        daemon = self.running("appendonly yes", in_file=True)
        client = daemon.client()
        client.call("ADDJOB", "q", "b", 0)
        client.call("CONFIG", "SET", "maxclients", 77)
        run_id = daemon.info()["run_id"]
        client.send("DEBUG", "RESTART")
        self.assertTrue(client.closed())
        wait_for(daemon.serves, "the daemon serves clients again")
        self.assertNotEqual(run_id, daemon.info()["run_id"])
        self.assertEqual("1", daemon.info()["registered_jobs"])
        self.assertEqual(
            [b"maxclients", b"77"], daemon.client().call("CONFIG", "GET", "maxclients")
        )

    def test_crash_and_recover(self) -> None:
        """DEBUG CRASH-AND-RECOVER also starts again."""
        daemon = self.running("appendonly yes", "appendfsync always")
        client = daemon.client()
        client.call("ADDJOB", "q", "b", 0)
        client.send("DEBUG", "CRASH-AND-RECOVER", "10")
        self.assertTrue(client.closed())
        wait_for(daemon.serves, "the daemon serves clients again")
        self.assertEqual("1", daemon.info()["registered_jobs"])


def busy(daemon: Daemon) -> bool:
    """Whether the daemon takes long to answer."""
    connection = Connection(("127.0.0.1", daemon.port), timeout_s=0.3)
    try:
        return connection.error("PING") != "PONG"
    except TimeoutError:
        return True
    finally:
        connection.close()


def alive(pid: int) -> bool:
    """Whether the process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
