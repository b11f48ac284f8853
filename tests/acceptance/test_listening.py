"""Addresses and sockets for clients, and how service managers start the daemon."""

from __future__ import annotations

import socket
import subprocess
import sys

from tests.acceptance.daemon import (
    BUS_OFFSET,
    LEAVING,
    Daemon,
    DaemonTestCase,
    environment,
    free_port,
    wait_for,
)
from tests.acceptance.resp import Connection

_ACTIVATE = """\
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_FDNAMES="resp", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


class ListenTests(DaemonTestCase):
    """Addresses and sockets for clients."""

    def test_unix_socket(self) -> None:
        """The Unix socket has the configured mode, and a stale socket does not prevent the
        start."""
        daemon = self.daemon(
            "unixsocket d.sock", "unixsocketperm 700", "port 0", folder=self.short_folder()
        )
        path = str(daemon.folder / "d.sock")
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        daemon.spawn()
        client = wait_for(lambda: attempt(path), "the daemon listens")
        self.addCleanup(client.close)
        self.assertEqual("PONG", client.call("PING"))
        self.assertEqual(0o700, (daemon.folder / "d.sock").stat().st_mode & 0o777)
        self.assertIn(f"addr={daemon.folder}/d.sock:0".encode(), client.call("CLIENT", "LIST"))
        daemon.terminate()
        self.assertFalse((daemon.folder / "d.sock").exists())

    def test_bus_port_partly_taken(self) -> None:
        """When another program has one address of the bus, the daemon does not start: only some
        nodes could reach it."""
        daemon = self.daemon("bind 0.0.0.0", "appendonly yes")
        bus = daemon.port + BUS_OFFSET
        with socket.create_server(("127.0.0.1", bus)):
            daemon.spawn()
            self.assertEqual(1, daemon.wait())
        self.assertIn(
            f"Could not listen for other nodes on 127.0.0.1:{bus}: Address already in use."
            " Another port can be given with 'cluster-bus-port'.",
            daemon.log(),
        )
        self.assertNotIn("ready to accept connections", daemon.log())
        self.assertEqual(["daemon.out"], [path.name for path in daemon.folder.iterdir()])
        daemon.start()
        wait_for(
            lambda: f"ready to accept connections on port {daemon.port}\n" in daemon.log(),
            "the daemon is ready",
        )
        listening = daemon.client().call("INFO", "listening").decode()
        self.assertIn(f"listening_bus:127.0.0.1:{bus},[::1]:{bus}\r\n", listening)

    def test_both_loopbacks(self) -> None:
        """The daemon listens on several addresses, of both families."""
        daemon = self.running("bind 127.0.0.1 ::1")
        client = daemon.client(("::1", daemon.port))
        self.assertIn(b" addr=[::1]:", client.call("CLIENT", "LIST"))
        self.assertEqual("PONG", daemon.client().call("PING"))

    def test_endpoints(self) -> None:
        """``listen`` adds Twisted endpoints to the port."""
        extra = free_port()
        daemon = self.daemon(
            f"listen resp tcp:{extra}:interface=127.0.0.1",
            "listen resp unix:extra.sock",
            folder=self.short_folder(),
        ).start()
        client = daemon.client(("127.0.0.1", extra))
        client.call("ADDJOB", "q", "b", 0)
        by_path = daemon.client(str(daemon.folder / "extra.sock"))
        self.assertEqual(1, by_path.call("QLEN", "q"))
        self.assertEqual(3, by_path.call("CLIENT", "LIST").count(b"\n") + 1)

    def test_unknown_protocol(self) -> None:
        """An unknown protocol is named in the error, with those that are installed."""
        daemon = self.daemon("listen nonsense tcp:0")
        daemon.spawn()
        self.assertEqual(1, daemon.wait())
        self.assertIn(
            "listen nonsense: no such protocol is installed; there is beanstalk, http, resp",
            daemon.log(),
        )

    def test_socket_activation(self) -> None:
        """A socket that systemd opened is used."""
        daemon = self.daemon("port 0", "listen resp systemd:domain=INET:index=0")
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            daemon.process = subprocess.Popen(
                [sys.executable, "-c", _ACTIVATE, str(listening.fileno()), *Daemon.program]
                + daemon.words,
                cwd=daemon.folder,
                env=environment(),
                pass_fds=[listening.fileno()],
                stdout=subprocess.DEVNULL,
            )
            (daemon.folder / "daemon.out").touch()
            self.assertEqual("PONG", daemon.client(("127.0.0.1", port)).call("PING"))

    def test_no_socket_from_systemd(self) -> None:
        """Without a socket from systemd the error names the directive."""
        daemon = self.daemon("listen resp systemd:domain=INET:index=0")
        daemon.spawn()
        self.assertEqual(1, daemon.wait())
        self.assertIn("listen resp systemd:domain=INET:index=0: ", daemon.log())
        self.assertNotIn("Traceback", daemon.log())

    def test_notify(self) -> None:
        """systemd receives a message when the node is ready, regular watchdog messages, and a
        message when it stops."""
        folder = self.short_folder()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(folder / "notify"))
            manager.settimeout(20)
            daemon = self.daemon(NOTIFY_SOCKET=str(folder / "notify"), WATCHDOG_USEC="200000")
            daemon.start()
            self.assertIn("READY=1", receive(manager, "READY"))
            receive(manager, "WATCHDOG=1")
            receive(manager, "WATCHDOG=1")
            daemon.terminate()
            receive(manager, "STOPPING=1")

    def test_twistd(self) -> None:
        """The same daemon runs under Twisted's own program, which stops it in its own way."""
        self.stop_twist("epoll")

    def test_own_reactor(self) -> None:
        """Twisted's programs can choose the daemon's reactor by its name; they end at once when
        there is none of that name."""
        self.stop_twist("disque")

    def stop_twist(self, reactor: str) -> None:
        """Run the daemon under Twisted's program, and stop it while a client waits."""
        daemon = self.daemon(in_file=True)
        program = (sys.executable, "-m", "twisted", f"--reactor={reactor}")
        daemon.program = (*program, "disque", "--config")
        client = daemon.start().client()
        client.call("ADDJOB", "q", "b", 0)
        client.send("GETJOB", "FROM", "empty")
        wait_for(lambda: daemon.info()["blocked_clients"] == "1", "the client is blocked")
        daemon.terminate()
        self.assertEqual(LEAVING, str(client.read()))
        self.assertIn("bye bye", daemon.log())


def receive(manager: socket.socket, word: str) -> str:
    """The next message to the service manager that contains ``word``."""
    while word not in (text := manager.recv(4096).decode()):
        pass
    return text


def attempt(address: str) -> Connection | None:
    """A connection, if a server listens."""
    try:
        return Connection(address)
    except OSError:
        return None
