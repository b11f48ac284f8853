"""A disque-server in a process and a folder of its own."""

from __future__ import annotations

import fcntl
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from twisted.trial.unittest import SynchronousTestCase

import disque_tx
from tests.acceptance.resp import ClosedError, Connection

#: The error that blocked clients receive when the daemon stops.
LEAVING = "LEAVING This node is shutting down, please connect to a different one"
#: A time limit that is long enough on a busy machine.
START_S = 60.0
BUS_OFFSET = 10_000
#: The child process runs the same package that the tests import.
SOURCE = Path(disque_tx.__file__).resolve().parents[1]
#: Below the range from which the system takes ports for outgoing connections.
_PORTS = range(12_000, 22_000)
#: Ports that this process took.
_CLAIMED: set[int] = set()
#: The file with the locks of all claims, once it is open. It stays open: closing it ends the locks.
_LOCKS: list[IO[bytes]] = []


def free_port() -> int:
    """A port that is free, whose bus port is free, too, and that no test running beside this one
    has been given, whether its daemon listens already or is being restarted."""
    return free_ports(1)


def free_ports(count: int, ip: str = "127.0.0.1") -> int:
    """The first of ``count`` ports in a row that are free as :func:`free_port` describes."""
    while True:
        port = random.choice(_PORTS[: 1 - count or None])
        if not claim(port, count):
            continue
        try:
            for number in range(port, port + count):
                for one in (number, number + BUS_OFFSET):
                    with bound(ip, one):
                        pass
        except OSError:
            continue
        return port


def bound(ip: str, port: int) -> socket.socket:
    """A socket at a port, as a server binds it: connections that are over are not in its way."""
    sock = socket.socket()
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((ip, port))
    except OSError:
        sock.close()
        raise
    return sock


def claim(port: int, count: int = 1) -> bool:
    """Whether nobody else has any of these ports; if so, they are ours until the process ends.

    A claim is a lock on as many bytes of a file that all processes of tests share.
    """
    wanted = set(range(port, port + count))
    if wanted & _CLAIMED:
        return False
    if not _LOCKS:
        path = Path(tempfile.gettempdir(), "disque-tx-test-ports.lock")
        _LOCKS.append(open(path, "ab"))  # noqa: SIM115 -- open for as long as the claims hold
    try:
        fcntl.lockf(_LOCKS[0], fcntl.LOCK_EX | fcntl.LOCK_NB, count, port)
    except OSError:
        return False
    _CLAIMED.update(wanted)
    return True


def import_paths() -> list[str]:
    """Where a child process finds the package, and Twisted finds the plugins beside it."""
    plugins = [path for path in (SOURCE, SOURCE.parent) if (path / "twisted/plugins").is_dir()]
    return [str(path) for path in (SOURCE, *plugins)]


def environment(**extra: str) -> dict[str, str]:
    """The environment of a child process that runs the same package."""
    paths = [*import_paths(), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **extra}


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = START_S) -> Any:
    """Poll until the condition is true, and return its value; fails after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"Not within {timeout_s} s: {what}")
        time.sleep(0.01)
    return value


class Daemon:
    """``directives``: lines of the configuration, given on the command line, or with ``in_file`` in
    ``disque.conf``. ``ip``: where it listens, and from where it connects. ``inherited``:
    descriptors that it gets."""

    program: tuple[str, ...] = (sys.executable, "-m", "disque_tx.cli.programs.server")

    def __init__(
        self,
        folder: Path,
        *directives: str,
        in_file: bool = False,
        ip: str = "127.0.0.1",
        **variables: str,
    ) -> None:
        self.folder = folder
        self.ip = ip
        self.port = free_port()
        self.variables = variables
        self.config = folder / "disque.conf"
        self.process: subprocess.Popen[bytes] | None = None
        self.inherited: list[int] = []
        lines = [f"port {self.port}", f"bind {ip}", f"dir {folder}", *directives]
        if in_file:
            self.config.write_text("".join(f"{line}\n" for line in lines))
            self.words = [str(self.config)]
        else:
            self.words = []
            for line in lines:
                name, *values = shlex.split(line)
                self.words += [f"--{name}", *values]
        self._connections: list[Connection] = []

    # -- process -----------------------------------------------------------------------------

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the process, without waiting until it serves clients."""
        with open(self.folder / "daemon.out", "ab") as output:
            self.process = subprocess.Popen(
                [*self.program, *self.words],
                cwd=self.folder,
                env=environment(**self.variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=self.inherited,
            )
        return self.process

    def start(self) -> Daemon:
        """Start, and wait until it serves clients."""
        self.spawn()
        wait_for(self.serves, f"the daemon on port {self.port} serves", 2 * START_S)
        return self

    def serves(self) -> bool:
        """Whether PING is answered as expected; fails if the process has ended."""
        if self.process is not None and self.process.poll() is not None:
            raise AssertionError(f"exit status {self.process.returncode}: {self.log()}")
        try:
            connection = Connection((self.ip, self.port))
        except OSError:
            return False
        try:
            # With a password, this cannot show whether a log is still being loaded.
            return connection.error("PING") in ("PONG", "NOAUTH Authentication required.")
        except ClosedError:
            return False
        finally:
            connection.close()

    @property
    def pid(self) -> int:
        """The ID of the process."""
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """End it at once, as a power failure would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def terminate(self, number: int = signal.SIGTERM) -> int:
        """Stop it with a signal, which lets it finish its work; returns the exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.wait()

    def wait(self, timeout_s: float = START_S) -> int:
        """Wait until the process ends; returns the exit status."""
        assert self.process is not None
        return self.process.wait(timeout_s)

    def discard(self) -> None:
        """Close all connections and kill the process."""
        for connection in self._connections:
            connection.close()
        if self.process is not None and self.process.poll() is None:
            self.kill()

    # -- connections -------------------------------------------------------------------------

    def client(self, address: tuple[str, int] | str | None = None) -> Connection:
        """A new connection, closed at the end of the test."""
        connection = Connection(address or (self.ip, self.port))
        self._connections.append(connection)
        return connection

    def log(self) -> str:
        """What it wrote to standard output and standard error, over all starts."""
        return (self.folder / "daemon.out").read_text(errors="replace")

    def info(self) -> dict[str, str]:
        """The fields of INFO."""
        connection = Connection((self.ip, self.port))
        try:
            lines = connection.call("INFO").decode().splitlines()
        finally:
            connection.close()
        return dict(line.split(":", 1) for line in lines if ":" in line)


class DaemonTestCase(SynchronousTestCase):
    """Starts daemons that are killed at the end of the test."""

    def folder(self) -> Path:
        """A new and empty folder."""
        path = Path(self.mktemp()).resolve()
        path.mkdir(parents=True)
        return path

    def short_folder(self) -> Path:
        """A new and empty folder with a path short enough for Unix sockets."""
        name = tempfile.mkdtemp(prefix="disque-")
        self.addCleanup(shutil.rmtree, name)
        return Path(name).resolve()

    def daemon(
        self,
        *directives: str,
        in_file: bool = False,
        folder: Path | None = None,
        **variables: str,
    ) -> Daemon:
        """A daemon that is not started yet."""
        daemon = Daemon(folder or self.folder(), *directives, in_file=in_file, **variables)
        self.addCleanup(daemon.discard)
        return daemon

    def running(self, *directives: str, in_file: bool = False) -> Daemon:
        """A daemon that serves clients."""
        return self.daemon(*directives, in_file=in_file).start()
