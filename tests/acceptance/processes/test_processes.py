"""The daemon as a group of processes: signals, SHUTDOWN, CONFIG, the background, systemd."""

from __future__ import annotations

import os
import signal
import socket
import sys
from functools import partial
from pathlib import Path

from tests.acceptance.daemon import LEAVING, bound, wait_for
from tests.acceptance.processes.group import Group, GroupTestCase, alive
from tests.acceptance.resp import Connection


class StopTests(GroupTestCase):
    """The end of the daemon."""

    def test_signals(self) -> None:
        """SIGTERM and SIGINT end all processes within ten seconds, with status 0; blocked clients
        learn why."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self.stop_by(self.group(3).start(), number)

    def stop_by(self, group: Group, number: int) -> None:
        """Send the signal while a client waits, and look at the end."""
        pids = group.pids()
        client = group.client()
        client.send("GETJOB", "FROM", "q")
        wait_for(lambda: blocked(group) == 1, "the client is blocked")
        os.kill(group.pid, number)
        self.assertEqual(0, group.wait(10))
        self.assertEqual(LEAVING, str(client.read()))
        self.assertFalse(any(map(alive, pids.values())))

    def test_interrupt_of_a_terminal(self) -> None:
        """A Ctrl-C reaches all processes at once, and still ends them in an orderly way."""
        group = self.group(2).start()
        pids = group.pids()
        for pid in (group.pid, *pids.values()):
            os.kill(pid, signal.SIGINT)
        self.assertEqual(0, group.wait(10))
        self.assertEqual(3, group.log().count("bye bye"))

    def test_shutdown(self) -> None:
        """SHUTDOWN ends the whole daemon, whichever process gets it."""
        group = self.group(3, "appendonly yes").start()
        pids = group.pids()
        client = group.client()
        client.send("SHUTDOWN", "REWRITE-AOF")
        self.assertEqual(0, group.wait(15))
        self.assertTrue(client.closed())
        self.assertFalse(any(map(alive, pids.values())))

    def test_one_process(self) -> None:
        """A process that gets SIGTERM ends in an orderly way, and is started again: so one can be
        renewed while the others serve."""
        group = self.group(2).start()
        pid = group.pids()[1]
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not alive(pid), "the process has ended")
        group.wait_until_joined()
        self.assertEqual("1", group.rows()[1]["restarts"])
        self.assertNotEqual(pid, group.pids()[1])
        group.client((group.ip, group.own_port(2))).send("DEBUG", "RESTART")
        wait_for(lambda: "Process 2 has ended" in group.log(), "the other one has ended")
        group.wait_until_joined()
        self.assertEqual("1", group.rows()[2]["restarts"])

    def test_hangup(self) -> None:
        """SIGHUP ends nothing."""
        group = self.group(2).start()
        pids = group.pids()
        os.kill(group.pid, signal.SIGHUP)
        wait_for(lambda: group.log().count("no certificates to reload") == 2, "all have it")
        self.assertEqual(pids, group.pids())


def blocked(group: Group) -> int:
    """How many clients wait for jobs."""
    return int(group.section()["all_blocked_clients"])


class ConfigurationTests(GroupTestCase):
    """CONFIG concerns the daemon."""

    def test_set(self) -> None:
        """What CONFIG SET changes holds for all processes, and for those that are started later."""
        group = self.group(3).start()
        group.client().call("CONFIG", "SET", "slowlog-max-len", 7)

        def known(number: int) -> bool:
            port = group.own_port(number)
            return bool(group.ask(port, "CONFIG", "GET", "slowlog-max-len")[1] == b"7")

        for number in (1, 2, 3):
            wait_for(partial(known, number), f"process {number} has it")
        os.kill(group.pids()[2], signal.SIGKILL)
        wait_for(lambda: "Process 2 has ended" in group.log(), "the parent knows")
        group.wait_until_joined()
        self.assertTrue(known(2))

    def test_log_turned_on(self) -> None:
        """A log that was turned on by CONFIG SET is loaded when a process is started again: its
        jobs are there."""
        group = self.group(2, "appendfsync always").start()
        group.client().call("CONFIG", "SET", "appendonly", "yes")
        client = group.client((group.ip, group.own_port(2)))
        wait_for(
            lambda: group.log().count("append only file was rewritten") == 2,
            "both have their first log",
        )
        job_id = client.call("ADDJOB", "q", "body", 0, "REPLICATE", 1)
        os.kill(group.pids()[2], signal.SIGKILL)
        wait_for(lambda: "Process 2 has ended" in group.log(), "the parent knows")
        group.wait_until_joined()
        self.assertIsNotNone(group.ask(group.own_port(2), "SHOW", job_id))

    def test_memory(self) -> None:
        """The memory for jobs is that of the daemon: processes share it. CONFIG shows the whole."""
        group = self.group(2, "maxmemory 100mb").start()
        client = group.client()
        self.assertEqual(b"104857600", client.call("CONFIG", "GET", "maxmemory")[1])
        self.assertIn("\r\nmaxmemory:52428800\r\n", client.call("INFO", "totals").decode())
        client.call("CONFIG", "SET", "maxmemory", "60mb")

        def has_share(number: int) -> bool:
            text = group.ask(group.own_port(number), "INFO", "totals")
            return b"\r\nmaxmemory:31457280\r\n" in text

        for number in (1, 2):
            wait_for(partial(has_share, number), f"process {number} has its share")

    def test_rewrite(self) -> None:
        """CONFIG REWRITE writes the configuration of the daemon, not the share of the process that
        gets it: the next start is the same."""
        group = self.group(2)
        lines = [f"port {group.port}", "bind 127.0.0.1", "processes 2", "maxmemory 100mb"]
        path = group.folder / "disque.conf"
        path.write_text("".join(f"{line}\n" for line in [*lines, f"dir {group.folder}"]))
        group.words = [str(path)]
        group.start()
        client = group.client()
        client.call("CONFIG", "SET", "hz", 20)
        client.call("CONFIG", "REWRITE")
        self.assertEqual(
            [*lines, f'dir "{group.folder}"', "# Generated by CONFIG REWRITE", "hz 20"],
            [line for line in path.read_text().splitlines() if line],
        )
        self.assertEqual([b"processes", b"2"], client.call("CONFIG", "GET", "processes"))
        self.assertEqual(0, group.terminate())
        group.start()

    def test_password(self) -> None:
        """A password that is set closes all processes, not one of them."""
        group = self.group(2).start()
        group.client().call("CONFIG", "SET", "requirepass", "secret")

        def closed(client: Connection) -> bool:
            return "NOAUTH" in client.error("PING")

        for number in (1, 2):
            client = group.client((group.ip, group.own_port(number)))
            wait_for(partial(closed, client), f"process {number} asks for the password")


class BackgroundTests(GroupTestCase):
    """``daemonize yes``, and systemd."""

    def test_daemonize(self) -> None:
        """The pid file holds the parent, which ends the whole daemon."""
        group = self.group(2, "daemonize yes", "pidfile my.pid", "logfile my.log")
        group.spawn()
        self.assertEqual(0, group.wait())
        group.process = None
        group.wait_until_joined()
        path = group.folder / "my.pid"
        parent, pids = int(path.read_text()), group.pids()
        self.assertNotIn(parent, pids.values())
        os.kill(parent, signal.SIGTERM)
        wait_for(lambda: not any(map(alive, (parent, *pids.values()))), "all have ended")
        self.assertFalse(path.exists())

    def test_systemd(self) -> None:
        """systemd is notified once, when all processes serve; the watchdog is fed while all of them
        live, and by the parent only."""
        path = self.short_folder() / "notify"
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(str(path))
        manager.settimeout(30)
        group = self.group(2)
        group.variables = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "2000000"}
        group.start()
        got = [manager.recv(200).decode()]
        while not got[-1].startswith("READY=1"):
            got.append(manager.recv(200).decode())
        self.assertEqual("READY=1\nSTATUS=Serving clients with 2 processes", got[-1])
        while manager.recv(200) != b"WATCHDOG=1":
            pass
        os.kill(group.pids()[1], signal.SIGSTOP)
        wait_for(lambda: "Process 1 does not report" in group.log(), "the silence is noticed")
        group.terminate()
        rest = b""
        while b"STOPPING=1" not in rest:
            rest += manager.recv(200)
        self.assertNotIn(b"READY", rest)

    def test_socket_of_systemd(self) -> None:
        """A socket that systemd has opened is served by all processes."""
        sock = socket.socket()
        self.addCleanup(sock.close)
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        group = self.group(2, "listen resp systemd:domain=INET:index=0")
        script = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3);"
            " os.environ['LISTEN_PID'] = str(os.getpid()); os.execv(sys.argv[2], sys.argv[2:])"
        )
        number = str(sock.fileno())
        group.program = (sys.executable, "-c", script, number, *group.program)
        group.variables = {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "clients"}
        group.inherited = [sock.fileno()]
        group.start()
        clients = [group.client(sock.getsockname()) for _ in range(4)]
        ids = [client.call("CLUSTER", "MYID") for client in clients]
        self.assertEqual(2, len(set(ids)))


class StartTests(GroupTestCase):
    """A start that fails, fails as a whole."""

    def refused(self, group: Group) -> str:
        """The output of a start that must fail."""
        group.spawn()
        self.assertEqual(1, group.wait())
        return group.log()

    def test_too_few_ports(self) -> None:
        """Ports that do not exist are named before anything starts."""
        group = self.group(4)
        group.words[group.words.index("--port") + 1] = "55533"
        output = self.refused(group)
        ports = "the ports 55534 to 55537 are needed, and 65534 to 65537"
        self.assertIn(f"For 4 processes {ports}", output)
        self.assertFalse((group.folder / "process-1").exists())

    def test_no_port(self) -> None:
        """Without TCP the processes could not reach each other."""
        group = self.group(2, f"unixsocket {self.short_folder()}/d.sock")
        group.words[group.words.index("--port") + 1] = "0"
        self.assertIn("The processes of a daemon reach each other by TCP", self.refused(group))

    def test_own_port_is_that_of_all(self) -> None:
        """A port cannot be both."""
        group = self.group(3)
        group.words += ["--process-port", str(group.port - 1)]
        self.assertIn("cannot be among those of its 3 processes", self.refused(group))

    def test_bus_port_in_use(self) -> None:
        """When a port of one process is taken, none of them serves, and the reason is shown."""
        group = self.group(3)
        with bound("127.0.0.1", group.own_port(2) + 10_000) as sock:
            sock.listen()
            output = self.refused(group)
        self.assertIn("Process 2 did not start: Could not listen for other nodes on", output)
        self.assertIn("Address already in use", output)
        self.assertNotIn("ready to accept connections on port {group.port}\n", output)

    def test_folder_not_usable(self) -> None:
        """A folder that one process cannot use is named."""
        group = self.group(3)
        (group.folder / "process-2").write_text("in the way")
        output = self.refused(group)
        self.assertIn(f"Process 2 cannot use its folder {group.folder}/process-2", output)

    def test_reason_on_the_terminal(self) -> None:
        """Also with a log file, and in the background, the reason is where the user looks."""
        for background in ("no", "yes"):
            group = self.group(2, "logfile d.log", f"daemonize {background}", "pidfile d.pid")
            with bound("127.0.0.1", group.own_port(1) + 10_000) as sock:
                sock.listen()
                output = self.refused(group)
            self.assertIn("Process 1 did not start: Could not listen", output)
            log = Path(group.folder / "d.log").read_text()
            self.assertIn("Process 1 did not start: Could not listen", log)

    def test_damaged_log(self) -> None:
        """A log that one process cannot load keeps the daemon from starting without its jobs."""
        group = self.group(2, "appendonly yes").start()
        group.terminate()
        (group.folder / "process-2" / "disque.aof").write_bytes(b"*nonsense\r\n")
        self.assertIn("Process 2 did not start: ", self.refused(group))

    def test_twice(self) -> None:
        """A second daemon cannot use the folders of the first one."""
        group = self.group(2).start()
        second = self.group(2, folder=group.folder)
        self.assertIn("nodes.conf", self.refused(second))
        self.assertEqual("PONG", group.client().call("PING"))
