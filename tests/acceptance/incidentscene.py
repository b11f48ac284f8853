"""A cluster of three nodes with consoles, whose clients have work: where incidents are planted."""

from __future__ import annotations

import contextlib
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.consolebench import Api
from tests.acceptance.daemon import free_port, wait_for
from tests.acceptance.load import GONE
from tests.acceptance.resp import Connection, ReplyError

#: Failures are told of for a minute; the rest is for a busy machine.
_WELL_S: Final = 120.0
_LOOK_S: Final = 0.5
_REST_S: Final = 0.1
_QUEUES: Final = ("orders", "mail", "thumbnails")
#: After so many jobs, many come at once.
_BURST_EVERY: Final = 500
_BURST: Final = 200


class Traffic:
    """A producer and a worker at each node, which connect again when their node is back."""

    def __init__(self, addresses: list[tuple[str, int]]) -> None:
        self.done = 0
        self.added = 0
        self.deployed_badly = False
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep, args=(work, address))
            for address in addresses
            for work in (self._produce, self._work)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """No more jobs."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _keep(self, work: Callable[[Connection], None], address: tuple[str, int]) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(*GONE, ReplyError):
                connection = Connection(address, 10)
                try:
                    while not self._ended.is_set():
                        work(connection)
                finally:
                    connection.close()
            self._ended.wait(_REST_S)

    def _produce(self, connection: Connection) -> None:
        for queue in _QUEUES:
            connection.call("ADDJOB", queue, "x", 2000, "RETRY", 30)
            self._ended.wait(_REST_S)
        connection.call("ADDJOB", _QUEUES[0], "later", 2000, "RETRY", 30, "DELAY", 5)
        self.added += len(_QUEUES) + 1
        if self.added % _BURST_EVERY < len(_QUEUES) + 1:
            for _ in range(_BURST):
                connection.call("ADDJOB", _QUEUES[-1], "many", 2000, "RETRY", 30)

    def _work(self, connection: Connection) -> None:
        for queue, job_id, _body in (
            connection.call("GETJOB", "TIMEOUT", 500, "COUNT", 5, "FROM", *_QUEUES) or ()
        ):
            if self.deployed_badly and queue == b"mail":
                connection.call("NACK", "DELAY", 0, "REASON", "KeyError: 'to'", job_id)
                self._ended.wait(_REST_S)
            else:
                connection.call("ACKJOB", job_id)
                self.done += 1


class Scene:
    """Three nodes with consoles, and their traffic. ``steps``: files that set their clocks."""

    def __init__(self) -> None:
        self.fleet = Fleet(3, "appendonly yes", "appendfsync everysec")
        self.ports = [free_port() for _ in self.fleet.nodes]
        program = (sys.executable, str(Path(__file__).with_name("steppedclock.py")))
        self.steps: list[Path] = []
        for node, port in zip(self.fleet.nodes, self.ports, strict=True):
            node.words += ["--listen", "http", f"tcp:{port}:interface={node.ip}"]
            node.program = program
            self.steps.append(node.folder / "ahead")
            node.variables["STEP_FILE"] = str(self.steps[-1])
        self.first, self.second, self.third = self.fleet.nodes
        self.apis = [
            Api(node.ip, port) for node, port in zip(self.fleet.nodes, self.ports, strict=True)
        ]
        try:
            self.fleet.start()
            self.traffic = Traffic([(node.ip, node.port) for node in self.fleet.nodes])
        except BaseException:
            self.fleet.discard()
            raise

    def close(self) -> None:
        """End everything."""
        self.traffic.end()
        self.fleet.discard()

    def findings(self, at: int = 0) -> list[dict[str, Any]]:
        """What a node's console shows."""
        found: list[dict[str, Any]] = self.apis[at]("GET", "findings?scope=cluster")["findings"]
        return found

    def until_well(self) -> float:
        """Wait until two nodes have nothing to tell; how long that took."""
        begun_s = time.monotonic()
        wait_for(lambda: not self.findings(0) and not self.findings(1), "all is well", _WELL_S)
        return time.monotonic() - begun_s

    def until_first(self, words: str, limit_s: float) -> float:
        """Wait until the first finding at the first node has these words; how long that took."""
        begun_s, seen = time.monotonic(), ""
        while time.monotonic() - begun_s < limit_s:
            found = self.findings()
            seen = f"{found[0]['node']} {found[0]['what']}" if found else ""
            if words in seen:
                return time.monotonic() - begun_s
            time.sleep(_LOOK_S)
        raise AssertionError(f"Not within {limit_s} s: {words}; instead: {seen or 'nothing'}")

    def limit_files(self, size_bytes: int) -> None:
        """The largest file that the second node may write."""
        _soft, hard = resource.prlimit(self.second.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.second.pid, resource.RLIMIT_FSIZE, (size_bytes, hard))

    def set_clocks(self, ahead_s: int, *steps: Path) -> None:
        """Set the clocks of these nodes."""
        for step in steps:
            step.write_text(str(ahead_s))

    def take(self, queue: str, count: int = 1) -> list[bytes]:
        """Get jobs and do nothing with them; their IDs."""
        jobs = self.first.call("GETJOB", "COUNT", count, "TIMEOUT", 2000, "FROM", queue)
        return [job_id for _queue, job_id, _body in jobs]


@contextlib.contextmanager
def scene() -> Iterator[Scene]:
    """A cluster that works, and is well."""
    made = Scene()
    try:
        made.until_well()
        yield made
    finally:
        made.close()


def quiet(made: Scene, seconds: float) -> tuple[set[str], int]:
    """All findings of this time, at any node, and how often they were asked for."""
    found: set[str] = set()
    looks, end_s = 0, time.monotonic() + seconds
    while time.monotonic() < end_s:
        looks += 1
        for at in range(len(made.apis)):
            found |= {f"{one['node']} {one['what']}" for one in made.findings(at)}
        time.sleep(1)
    return found, looks
