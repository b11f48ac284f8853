"""Processes that end or stand still, with work going on (cluster protocol, sections 10 and 14)."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from tests.acceptance.cluster.fleet import Fleet, FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.load import GONE, Load
from tests.acceptance.resp import Connection, ReplyError, encode

ALWAYS = ("appendonly yes", "appendfsync always", "auto-aof-rewrite-percentage 0")
_ROUNDS = 4


class FleetLoad(Load):
    """Clients that turn to another node when theirs is gone; ``refused``: ADDJOBs in vain."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(lambda: self._any(fleet))
        self.refused = 0
        self._ended = threading.Event()

    def _any(self, fleet: Fleet) -> Connection:
        node = random.choice(fleet.living())
        return Connection((node.ip, node.port), timeout_s=10)

    def _until_gone(self, work: Any) -> None:
        while not self._stopping.is_set():
            super()._until_gone(work)
            time.sleep(0.05)

    def _produce(self, connection: Connection) -> None:
        """Two kinds of jobs: at least once with three copies, at most once with one."""
        kinds = [random.choice((0, 1)) for _ in range(10)]
        words = {0: ("REPLICATE", 1, "RETRY", 0), 1: ("REPLICATE", 3, "RETRY", 1)}
        connection.send_raw(
            b"".join(encode("ADDJOB", "q", "body", 2000, *words[kind]) for kind in kinds)
        )
        for kind in kinds:
            answer = connection.read()
            with self._lock:
                if isinstance(answer, ReplyError):
                    self.refused += 1
                    continue
                self.added.add(str(answer))
                if kind == 0:
                    self.once.add(str(answer))
        time.sleep(0.01)


class KillTests(FleetTestCase):
    """Three nodes that keep a log."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3
    directives = ALWAYS

    def test_all_at_once(self) -> None:
        """All nodes are killed at once and started again: every job is delivered."""
        ids = [
            node.add(self.queue, replicate=1 + n % 3, retry=2)
            for node in self.nodes
            for n in range(60)
        ]
        acked = ids[::5]
        for job_id in acked:
            self.nodes[0].call("ACKJOB", job_id)
        self.wait(lambda: not any(self.fleet.holders(job_id) for job_id in acked), "they are gone")
        self.fleet.each(Node.kill)
        self.fleet.each(Node.boot)
        self.fleet.agreed()
        got: set[str] = set()
        deadline = time.monotonic() + 120
        while len(got) < len(ids) - len(acked) and time.monotonic() < deadline:
            for node, job_id in self.fleet.fetch(self.queue, 1):
                node.call("ACKJOB", job_id)
                got.add(job_id)
        self.assertEqual(set(ids) - set(acked), got)
        self.fleet.drained()

    def test_under_load(self) -> None:
        """One node after the other is killed: nothing accepted is lost, RETRY 0 comes once."""
        load = FleetLoad(self.fleet)
        load.begin(producers=3, consumers=3)
        try:
            for turn in range(_ROUNDS):
                time.sleep(random.uniform(0.3, 1.0))
                victim = self.nodes[turn % 3]
                victim.kill()
                time.sleep(random.uniform(0.2, 0.8))
                victim.boot()
        finally:
            load.end()
        self.fleet.agreed()
        self.drain(load)
        often = load.added - load.once
        self.assertEqual(set(), often - load.asked - set(load.delivered), "never delivered")
        twice = {job_id for job_id in load.once if load.delivered.get(job_id, 0) > 1}
        self.assertEqual(set(), twice, "at most once, delivered twice")
        self.assertGreater(len(often), 20)
        self.assertGreater(len(load.acked), 10)

    def drain(self, load: FleetLoad) -> None:
        """Take and acknowledge what is there, until nothing has come for four times RETRY."""
        connections = [node.client() for node in self.nodes]
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for connection in connections:
                ids = load.fetch(connection, 1000)
                if ids:
                    connection.call("ACKJOB", *ids)
                    load.asked.update(ids)
                    deadline = time.monotonic() + 10


class StopTests(FleetTestCase):
    """A process stands still for longer than the node time-out, and goes on."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3

    def test_others_go_on(self) -> None:
        """Its jobs are delivered by others meanwhile; what is acknowledged is gone from it, too."""
        frozen, *others = self.nodes
        ids = {frozen.add(self.queue, replicate=3, retry=1) for _ in range(50)}
        frozen.freeze()
        self.wait(lambda: all("fail" in o.flags(frozen) for o in others), "it is missed")
        got: set[str] = set()
        deadline = time.monotonic() + 120
        while got != ids and time.monotonic() < deadline:
            for node, job_id in self.fleet.fetch(self.queue, 0.5):
                node.call("ACKJOB", job_id)
                got.add(job_id)
        self.assertEqual(ids, got)
        frozen.thaw()
        self.fleet.agreed()
        self.wait(lambda: frozen.call("QLEN", self.queue) == 0, "it heard of it")
        self.fleet.drained()

    def test_at_most_once(self) -> None:
        """A job that only a frozen node has is delivered when it goes on, once."""
        frozen = self.nodes[0]
        ids = sorted(frozen.add(self.queue, replicate=1, retry=0) for _ in range(20))
        client = self.reader(self.nodes[1], f"{self.queue}-none", "TIMEOUT", 60_000)
        frozen.freeze()
        self.assertEqual([], self.fleet.fetch(self.queue, 4))
        frozen.thaw()
        got = self.fleet.fetch(self.queue, 120, until=20) + self.fleet.fetch(self.queue, 2)
        self.assertEqual(ids, sorted(job_id for _node, job_id in got))
        client.close()

    def test_clients_wait(self) -> None:
        """A client of the frozen node is served when it goes on, its request is not lost."""
        frozen = self.nodes[0]
        client = frozen.client()
        self.assertEqual("PONG", client.call("PING"))
        frozen.freeze()
        client.send("ADDJOB", self.queue, "b", 0, "REPLICATE", 3)
        self.wait(lambda: "fail" in self.nodes[1].flags(frozen), "it is missed")
        frozen.thaw()
        answer = client.read()
        self.assertNotIsInstance(answer, GONE)
        # The node may still find the others failing, for they did not answer in time.
        self.assertRegex(str(answer), r"\AD-|\ANOREPL ")
        self.fleet.agreed()
