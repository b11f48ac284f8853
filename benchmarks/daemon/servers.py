"""The servers under measurement: each a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_START_S: Final = 30
_PORTS: Final = range(17_000, 55_000)
_taken: set[int] = set()


class Server:
    """A running server. ``kind``: what it is to the load generator. ``port``: where it listens.
    Processes that it starts count as part of it."""

    def __init__(self, kind: str, command: list[str], port: int) -> None:
        self.kind = kind
        self.port = port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline_s = time.monotonic() + _START_S
        while not self._answers():
            if time.monotonic() > deadline_s or self.process.poll() is not None:
                raise SystemExit(f"{kind} did not start: {' '.join(command)}")
            time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            if self.kind == "beanstalk":
                return self.ask(b"list-tube-used\r\n").startswith(b"USING")
            return self.ask(b"PING\r\n").startswith(b"+PONG")
        except OSError:
            return False

    def ask(self, request: bytes) -> bytes:
        """One short request on a connection of its own."""
        with socket.create_connection(("127.0.0.1", self.port)) as sock:
            sock.sendall(request)
            return sock.recv(65536)

    def pids(self) -> list[int]:
        """The process and its children."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def cpu_s(self) -> float:
        """Processor time used so far, user and system."""
        return sum(_cpu_s(pid) for pid in self.pids())

    def resident(self) -> int:
        """Bytes in memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * _PAGE

    def stop(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Cluster:
    """Nodes that know each other; clients connect to the first."""

    def __init__(self, nodes: list[Server]) -> None:
        self.nodes = nodes
        self.kind = nodes[0].kind
        self.port = nodes[0].port
        for other in nodes[1:]:
            nodes[0].ask(b"CLUSTER MEET 127.0.0.1 %d\r\n" % other.port)
        deadline_s = time.monotonic() + _START_S
        reachable = b"reachable_nodes:%d" % (len(nodes) - 1)
        while not all(reachable in node.ask(b"CLUSTER INFO\r\n") for node in nodes):
            if time.monotonic() > deadline_s:
                raise SystemExit("the nodes did not find each other")
            time.sleep(0.1)

    def cpu_s(self) -> float:
        """Processor time of all."""
        return sum(node.cpu_s() for node in self.nodes)

    def lose(self) -> None:
        """End the last one at once, with all it has, and let the others forget it."""
        lost = self.nodes.pop()
        lost_id = lost.ask(b"CLUSTER MYID\r\n").split(b"\r\n")[1]
        lost.process.kill()
        lost.process.wait()
        for node in self.nodes:
            node.ask(b"CLUSTER FORGET %s\r\n" % lost_id)

    def stop(self) -> None:
        """End them."""
        for node in self.nodes:
            node.stop()


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


def disque(python: str, folder: Path, *options: str) -> Server:
    """Our daemon, of the version that is installed for the interpreter ``python``."""
    port = free_port()
    data = Path(tempfile.mkdtemp(dir=folder))
    # The command, which every version has, and not a module, which may move.
    command = [str(Path(python).with_name("disque-server")), "--port", str(port)]
    words = ["--bind", "127.0.0.1", "--dir", str(data), "--maxmemory", "4gb", *options]
    return Server("disque", command + words, port)


def redis(folder: Path) -> Server:
    """Redis without persistence."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(folder)]
    return Server("redis", command, port)


def beanstalkd() -> Server:
    """beanstalkd without its log."""
    port = free_port()
    return Server("beanstalk", ["beanstalkd", "-l", "127.0.0.1", "-p", str(port)], port)


def free_port() -> int:
    """A port on which nobody listens, with some free ones after it, and room for the bus above."""
    for port in _PORTS[::8]:
        with socket.socket() as sock:
            if port not in _taken and sock.connect_ex(("127.0.0.1", port)):
                _taken.add(port)
                return port
    raise SystemExit("no port is free")


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
