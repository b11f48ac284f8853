"""One daemon of a cluster, with a process and an address of its own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.acceptance.daemon import BUS_OFFSET, Daemon
from tests.acceptance.resp import Connection, ReplyError

#: A short timeout for clusters in which nodes fail, so that failures are detected soon.
NODE_TIMEOUT_S = 3.0
#: How long ADDJOB is repeated while nodes are suspected only because the machine is busy.
_ADD_S = 60.0
_TOO_FEW = "NOREPL Not enough reachable nodes"


class Node(Daemon):
    """One daemon of a fleet. ``bus_port``: the port to which other nodes connect. ``alive``: the
    process exists and is not suspended."""

    def __init__(self, folder: Path, ip: str, *directives: str) -> None:
        timeout_ms = int(NODE_TIMEOUT_S * 1000)
        super().__init__(folder, f"cluster-node-timeout {timeout_ms}", *directives, ip=ip)
        self.bus_port = self.port + BUS_OFFSET
        self.alive = False
        self._id = ""
        self._connection: Connection | None = None

    def announce(self, bus_port: int) -> None:
        """Let other nodes connect to this port."""
        self.bus_port = bus_port
        self.words += ["--cluster-announce-bus-port", str(bus_port)]

    # -- process -----------------------------------------------------------------------------

    def boot(self) -> None:
        """Start the node unless it is running."""
        if not self.alive:
            self.start()
            self.alive = True

    def kill(self) -> None:
        """See :meth:`Daemon.kill`."""
        self.alive = False
        self._hang_up()
        super().kill()

    def lose(self) -> None:
        """Kill the node and remove all that it wrote: it is gone, and the next one at its address
        has another ID."""
        self.kill()
        self._id = ""
        for path in self.folder.iterdir():
            if path.is_file() and path != self.config:
                path.unlink()

    def stop(self) -> None:
        """End the process in an orderly way."""
        self.alive = False
        self._hang_up()
        self.terminate()

    def suspend(self) -> None:
        """Suspend the process, with its connections open."""
        self.alive = False
        self._hang_up()
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the process."""
        os.kill(self.pid, signal.SIGCONT)
        self.alive = True

    # -- commands ----------------------------------------------------------------------------

    def call(self, *words: bytes | str | int) -> Any:
        """Send a request on the test's own connection; error replies raise :class:`ReplyError`."""
        if self._connection is None:
            self._connection = Connection((self.ip, self.port))
        return self._connection.call(*words)

    def error(self, *words: bytes | str | int) -> str:
        """The text of the reply, or of the error reply."""
        try:
            return str(self.call(*words))
        except ReplyError as error:
            return str(error)

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def id(self) -> str:
        """The ID of the node."""
        if not self._id:
            self._id = self.call("CLUSTER", "MYID").decode()
        return self._id

    def add(
        self,
        queue: str,
        body: str = "body",
        *flags: str,
        timeout_ms: int = 30_000,
        **options: int,
    ) -> str:
        """ADDJOB; options by their names, returns the ID.

        Repeated while too few nodes are reachable: then nothing was added.
        """
        words = [word for name, value in options.items() for word in (name.upper(), value)]
        deadline_s = time.monotonic() + _ADD_S
        while True:
            answer = self.error("ADDJOB", queue, body, timeout_ms, *words, *flags)
            if not answer.startswith(_TOO_FEW) or time.monotonic() > deadline_s:
                break
            time.sleep(0.1)
        if not answer.startswith("D-"):
            raise ReplyError(answer)
        return answer

    def get(self, queue: str, timeout_ms: int = 0, count: int = 1) -> list[str]:
        """The IDs of jobs that GETJOB delivers; ``timeout_ms`` 0 does not wait."""
        words = ["TIMEOUT", timeout_ms] if timeout_ms else ["NOHANG"]
        jobs = self.call("GETJOB", *words, "COUNT", count, "FROM", queue) or []
        return [job[1].decode() for job in jobs]

    def show(self, job_id: str) -> dict[str, Any]:
        """The reply of SHOW as a mapping; empty when the job is unknown."""
        flat = self.call("SHOW", job_id) or []
        return {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}

    def state(self, job_id: str) -> str:
        """The state of a job; empty when it is unknown."""
        shown = self.show(job_id)
        return shown["state"].decode() if shown else ""

    def figures(self, section: str) -> dict[str, str]:
        """The fields of one section of INFO."""
        lines = self.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def jobs(self) -> int:
        """The number of jobs on the node, including those that are only acknowledgements."""
        return int(self.figures("jobs")["registered_jobs"])

    def table(self) -> dict[str, tuple[set[str], bool]]:
        """Node ID → its flags and whether there is a link, from CLUSTER NODES."""
        rows = [line.split(" ") for line in self.call("CLUSTER", "NODES").decode().splitlines()]
        return {row[0]: (set(row[2].split(",")), row[5] == "connected") for row in rows}

    def flags(self, other: Node) -> set[str]:
        """The flags that this node has for another one; empty when it does not know it."""
        return self.table().get(other.id, (set(), False))[0]

    def reachable(self) -> int:
        """The number of other nodes that can receive copies."""
        text = self.call("CLUSTER", "INFO").decode()
        return int(text.split("cluster_reachable_nodes:")[1].split()[0])
