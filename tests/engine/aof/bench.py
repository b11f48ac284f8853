"""A node with a log on in-memory files, and everything that drives it, for the tests of the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock

from disque_tx.commands.base.values import Status, ValueReplies
from disque_tx.config.settings import Settings
from disque_tx.core.base.client import Client
from disque_tx.core.node import Node
from disque_tx.core.nodes.membership import Membership
from disque_tx.engine.interfaces import IFiles
from disque_tx.messages.nodes import MYSELF, NodeEntry
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.machine.memoryfiles import MemoryFiles
from disque_tx.services.node.aof import AppendOnlyFile
from disque_tx.wire.jobs.jobid import JobIdSource
from tests.core.bench import add_request

ME = b"a" * 40
PATH = "/data/disque.aof"
#: Shortly after the vectors were recorded.
WALL_US = 1_795_175_660_102_154
_TURN_S = 2.0**-20
VECTORS = Path(__file__).parents[2] / "vectors"


def vector(name: str) -> bytes:
    """A file written by the original, or recorded from it."""
    return (VECTORS / name).read_bytes()


def vector_json(name: str) -> Any:
    """The same, parsed as JSON."""
    return json.loads(vector(name))


class Lines(DaemonLog):
    """Collects log lines in a list."""

    def __init__(self) -> None:
        super().__init__("debug")
        self.lines: list[str] = []

    def write(self, level: str, text: str) -> None:
        self.lines.append(f"{level}: {text}")


class Threads:
    """A thread pool that runs work at once, or when :meth:`release` is called if ``held``."""

    def __init__(self) -> None:
        self.held = False
        self._waiting: list[tuple[Deferred[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def defer(self, work: Callable[..., Any], *args: Any) -> Deferred[Any]:
        if not self.held:
            return maybeDeferred(work, *args)
        result: Deferred[Any] = Deferred()
        self._waiting.append((result, work, args))
        return result

    @property
    def waiting(self) -> int:
        """The number of work items that were not started."""
        return len(self._waiting)

    def release(self) -> None:
        """Run the waiting work."""
        waiting, self._waiting = self._waiting, []
        for result, work, args in waiting:
            maybeDeferred(work, *args).chainDeferred(result)


class Turns(Clock):
    """A reactor that is stepped by hand: calls without a delay run in the next step."""

    def callLater(self, delay: float, *args: Any, **kwargs: Any) -> Any:
        return super().callLater(max(delay, _TURN_S), *args, **kwargs)

    def turn(self) -> bool:
        """One step; whether any call was waiting for it."""
        waiting = bool(self.getDelayedCalls())
        self.advance(_TURN_S)
        return waiting


class Bench:
    """One process: a node and its log. ``died``: the fatal error."""

    def __init__(
        self,
        files: IFiles,
        settings: Settings,
        monotonic: Callable[[], float] | None = None,
        seed: int = 1,
    ) -> None:
        self.files = files
        self.settings = settings
        self.clock = Turns()
        self.threads = Threads()
        self.log = Lines()
        self.died: list[str] = []
        random = Random(seed)
        membership = Membership(NodeEntry(ME, b"", 7711, MYSELF, 0), lambda: b"b" * 40)
        self.node = Node(membership, JobIdSource(b"%040d" % seed), random.random)
        self.now_ms = 50_000
        self.wall_us = WALL_US
        self.begin()
        self.aof = AppendOnlyFile(
            self.node,
            files,
            self.clock,
            settings,
            defer_to_thread=self.threads.defer,
            fatal=self.died.append,
            reports=self.log,
            monotonic=monotonic or self.clock.seconds,
        )
        self.client = Client(1, ValueReplies(), b"", self.now_ms)

    def begin(self) -> None:
        """A turn begins."""
        self.node.begin(self.now_ms, self.wall_us)

    def start(self) -> Deferred[None]:
        """Load the log to the end, unless something prevents it."""
        done = self.aof.load()
        self.settle()
        return done

    def settle(self) -> None:
        """Step the reactor until no calls are waiting."""
        while self.clock.turn():
            pass

    def add(
        self,
        queue: bytes = b"q",
        body: bytes = b"body",
        retry_s: int = 60,
        delay_s: int = 0,
        ttl_s: int = 1000,
    ) -> bytes:
        """ADDJOB within the turn; the ID."""
        replies = self.client.replies
        assert isinstance(replies, ValueReplies)
        replies.clear()
        request = add_request(
            queue, body, replicate=1, ttl_s=ttl_s, retry_s=retry_s, delay_s=delay_s
        )
        self.node.add_job(self.client, request)
        status = replies.values[0]
        assert isinstance(status, Status)
        return status.text

    def remove(self, job_ids: list[bytes]) -> None:
        """ACKJOB as a turn of its own."""
        self.turn(lambda: self.node.delete(job_ids))

    def get(self, queue: bytes = b"q") -> None:
        """GETJOB of a single existing job."""
        self.node.get_jobs(self.client, [queue], 1, 0, True, False)

    def turn(self, *works: Callable[[], object]) -> None:
        """Run these within one turn and commit it."""
        self.begin()
        for work in works:
            work()
        self.aof.commit()

    def pass_ms(self, duration_ms: int) -> None:
        """Time passes, with a tick every 100 ms."""
        for _ in range(duration_ms // 100):
            self.now_ms += 100
            self.wall_us += 100_000
            self.turn(self.aof.tick)

    def ids(self) -> list[bytes]:
        """The jobs of the node, sorted."""
        return sorted(job.id for job in self.node.jobs.table.values())

    def field(self, name: str) -> str:
        """A field of INFO Persistence."""
        return dict(self.aof.info())[name]


def settings(**values: Any) -> Settings:
    """The log is enabled and durable, unless the test changes it."""
    wanted = {"dir": "/data", "appendonly": True, "appendfsync": "always", **values}
    result = Settings(dir="/data")
    for name, value in wanted.items():
        assert hasattr(result, name)
        setattr(result, name, value)
    return result


def loaded(content: bytes, **values: Any) -> Bench:
    """A node that was started with this log."""
    files = MemoryFiles()
    files.put(PATH, content)
    bench = Bench(files, settings(**values))
    bench.start()
    return bench
