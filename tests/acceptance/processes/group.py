"""A daemon of several processes, and what tests ask of each of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import Daemon, DaemonTestCase, free_ports, wait_for
from tests.acceptance.load import GONE
from tests.acceptance.resp import Connection, ReplyError

#: Ports in a row: those of the daemon and of each process, with some for more processes later.
_PORTS = 8


class Group(Daemon):
    """``processes``: how many."""

    def __init__(
        self, folder: Path, processes: int, *directives: str, ip: str = "127.0.0.1"
    ) -> None:
        super().__init__(folder, *directives, ip=ip)
        self._set_port(free_ports(_PORTS, ip))
        self.set_processes(processes)

    def _set_port(self, port: int) -> None:
        self.words[self.words.index("--port") + 1] = str(port)
        self.port = port

    def set_processes(self, processes: int) -> None:
        """The number of the next start."""
        self.processes = processes
        if "--processes" in self.words:
            place = self.words.index("--processes")
            del self.words[place : place + 2]
        self.words += ["--processes", str(processes)]

    def start(self) -> Group:
        """Start, and wait until all processes serve clients and know each other."""
        super().start()
        self.wait_until_joined()
        return self

    def wait_until_joined(self, processes: int | None = None) -> None:
        """Wait until every process serves, and sees all others as reachable."""
        wanted = self.processes if processes is None else processes
        wait_for(
            lambda: self.joined(wanted), f"{wanted} processes are joined: {self.log()[-3000:]}"
        )

    def wait_until_ready(self, wanted: int) -> None:
        """Wait until so many processes serve, of which some may be leaving."""
        wait_for(lambda: self._ready(wanted), f"{wanted} processes are ready: {self.log()[-3000:]}")

    def _ready(self, wanted: int) -> bool:
        try:
            rows = self.rows()
            for row in rows.values():
                self.ask(
                    int(row["port"]), "QLEN", "q"
                )  # LOADING while it does not reach the others
        except (*GONE, ReplyError, KeyError):
            return False
        return len(rows) == wanted and all(row["state"] == "ready" for row in rows.values())

    def joined(self, wanted: int) -> bool:
        """Whether all processes serve, and each can reach all others."""
        try:
            return self._ready(wanted) and all(
                self.reachable(int(row["port"])) == wanted - 1 for row in self.rows().values()
            )
        except (*GONE, ReplyError, KeyError):
            return False

    def reachable(self, port: int) -> int:
        """How many nodes the process at this port can reach."""
        text = self.ask(port, "CLUSTER", "INFO").decode()
        return int(text.split("cluster_reachable_nodes:")[1].split()[0])

    def ask(self, port: int, *words: str | int) -> Any:
        """One request, on a connection of its own."""
        connection = Connection((self.ip, port))
        try:
            return connection.call(*words)
        finally:
            connection.close()

    def section(self) -> dict[str, str]:
        """INFO processes, from any process."""
        text = self.ask(self.port, "INFO", "processes").decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def rows(self) -> dict[int, dict[str, str]]:
        """INFO processes: the fields of each process, by its number."""
        return {
            int(name.removeprefix("process_")): dict(
                part.split("=", 1) for part in value.split(",")
            )
            for name, value in self.section().items()
            if name.startswith("process_")
        }

    def own_port(self, number: int) -> int:
        """The port for clients of one process."""
        return self.port + number

    def pids(self) -> dict[int, int]:
        """The IDs of the processes, by their numbers."""
        return {number: int(row["pid"]) for number, row in self.rows().items()}

    def discard(self) -> None:
        """Kill all processes."""
        children = _children(self.process.pid) if self.process is not None else []
        super().discard()
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def alive(pid: int) -> bool:
    """Whether there is a process with this ID."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class GroupTestCase(DaemonTestCase):
    """Starts daemons of several processes."""

    def group(
        self, processes: int, *directives: str, folder: Path | None = None, ip: str = "127.0.0.1"
    ) -> Group:
        """A daemon that is not started yet."""
        group = Group(folder or self.folder(), processes, *directives, ip=ip)
        self.addCleanup(group.discard)
        return group
