"""The servers under measurement: each a process of its own, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_START_S: Final = 30
_PORTS: Final = range(17_000, 55_000)
_taken: set[int] = set()
#: What a server that works is asked, and how its answer begins, by kind; PING for the others.
_PROBES: Final = {
    "beanstalk": (b"list-tube-used\r\n", b"USING"),
    "nats": (b"PING\r\n", b"INFO"),
    "amqp": (b"AMQP\0\0\x09\1", b"\1\0\0"),
}


class Server:
    """A running server. ``kind``: what it is to the load generator. ``port``: where it listens.
    ``variables``: of its environment, besides those of this program. ``start_s``: how long its
    start may take. Processes that it starts count as part of it."""

    def __init__(
        self,
        kind: str,
        command: list[str],
        port: int,
        variables: Mapping[str, str] | None = None,
        start_s: float = _START_S,
    ) -> None:
        self.kind = kind
        self.port = port
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **(variables or {})},
        )
        try:
            self._wait(start_s, " ".join(command))
        except BaseException:
            self.kill()
            raise

    def _wait(self, start_s: float, command: str) -> None:
        deadline_s = time.monotonic() + start_s
        while not self._answers():
            if time.monotonic() > deadline_s or self.process.poll() is not None:
                raise SystemExit(f"{self.kind} did not start: {command}")
            time.sleep(0.01)

    def _answers(self) -> bool:
        request, answer = _PROBES.get(self.kind.partition("-")[0], (b"PING\r\n", b"+PONG"))
        try:
            return self.ask(request).startswith(answer)
        except OSError:
            return False

    def ask(self, request: bytes) -> bytes:
        """One short request on a connection of its own."""
        with socket.create_connection(("127.0.0.1", self.port)) as sock:
            sock.sendall(request)
            return sock.recv(65536)

    def pids(self) -> list[int]:
        """The process, its children, and theirs."""
        return descent(self.process.pid)

    def cpu_s(self) -> float:
        """Processor time used so far, user and system."""
        return tree_cpu_s(self.process.pid)

    def resident(self) -> int:
        """Bytes in memory."""
        return sum(
            int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE for pid in self.pids()
        )

    def stop(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def kill(self) -> None:
        """End it and all that descends from it at once."""
        for pid in reversed(self.pids()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


class Group:
    """Servers that work together; clients connect to the first."""

    def __init__(self, nodes: list[Server]) -> None:
        self.nodes = nodes
        self.kind = nodes[0].kind
        self.port = nodes[0].port

    def cpu_s(self) -> float:
        """Processor time of all."""
        return sum(node.cpu_s() for node in self.nodes)

    def resident(self) -> int:
        """Bytes in memory, of all."""
        return sum(node.resident() for node in self.nodes)

    def stop(self) -> None:
        """End them."""
        for node in self.nodes:
            node.stop()


class Cluster(Group):
    """Nodes of Disque that know each other."""

    def __init__(self, nodes: list[Server]) -> None:
        super().__init__(nodes)
        for other in nodes[1:]:
            nodes[0].ask(b"CLUSTER MEET 127.0.0.1 %d\r\n" % other.port)
        deadline_s = time.monotonic() + _START_S
        reachable = b"reachable_nodes:%d" % (len(nodes) - 1)
        while not all(reachable in node.ask(b"CLUSTER INFO\r\n") for node in nodes):
            if time.monotonic() > deadline_s:
                raise SystemExit("the nodes did not find each other")
            time.sleep(0.1)

    def lose(self) -> None:
        """End the last one at once, with all it has, and let the others forget it."""
        lost = self.nodes.pop()
        lost_id = lost.ask(b"CLUSTER MYID\r\n").split(b"\r\n")[1]
        lost.process.kill()
        lost.process.wait()
        for node in self.nodes:
            node.ask(b"CLUSTER FORGET %s\r\n" % lost_id)


class RoundRobin:
    """A proxy in front of nodes, which gives each new connection to the next one. Its processor
    time is not that of the nodes."""

    kind = "disque"

    def __init__(self, folder: Path, nodes: Cluster) -> None:
        program = folder / "roundrobin"
        source = Path(__file__).with_name("roundrobin.c")
        subprocess.run(["cc", "-O2", "-o", program, source], check=True)
        self.port = free_port()
        self.cpu_s = nodes.cpu_s
        ports = [str(node.port) for node in nodes.nodes]
        self._process = subprocess.Popen([str(program), str(self.port), *ports])
        deadline_s = time.monotonic() + _START_S
        while not self._listens():
            if time.monotonic() > deadline_s:
                raise SystemExit("the proxy did not start")
            time.sleep(0.01)

    def _listens(self) -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


def started(starts: Iterable[Callable[[], Server]]) -> list[Server]:
    """Servers, started one after the other. If one fails, those before it are ended."""
    servers: list[Server] = []
    try:
        for start in starts:
            servers.append(start())
    except BaseException:
        for server in servers:
            server.kill()
        raise
    return servers


def disque(python: str, folder: Path, *options: str) -> Server:
    """Our daemon, of the version that is installed for the interpreter ``python``."""
    port = free_port()
    data = Path(tempfile.mkdtemp(dir=folder))
    # The command, which every version has, and not a module, which may move.
    command = [str(Path(python).with_name("disque-server")), "--port", str(port)]
    words = ["--bind", "127.0.0.1", "--dir", str(data), "--maxmemory", "4gb", *options]
    return Server("disque", command + words, port)


def redis(folder: Path, *options: str, kind: str = "redis") -> Server:
    """Redis, without persistence unless the options say so."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(folder)]
    return Server(kind, [*command, *options], port)


def beanstalkd(*options: str) -> Server:
    """beanstalkd, without its log unless the options say so."""
    port = free_port()
    command = ["beanstalkd", "-l", "127.0.0.1", "-p", str(port)]
    return Server("beanstalk", [*command, *options], port)


def free_port() -> int:
    """A port on which nobody listens, with some free ones after it, and room for the bus above."""
    for port in _PORTS[::8]:
        with socket.socket() as sock:
            if port not in _taken and sock.connect_ex(("127.0.0.1", port)):
                _taken.add(port)
                return port
    raise SystemExit("no port is free")


def descent(pid: int) -> list[int]:
    """A process and all that descend from it; without those that have just ended."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                children += map(int, (task / "children").read_text().split())
    return [pid, *(each for child in children for each in descent(child))]


def tree_cpu_s(pid: int) -> float:
    """Processor time that a process and all that descend from it used so far, user and system."""
    return sum(_cpu_s(each) for each in descent(pid))


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()
    except OSError:
        return 0  # it has just ended
    # Its own, and that of children that have ended.
    return sum(map(int, fields[11:15])) / _TICKS
