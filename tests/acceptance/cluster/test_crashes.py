"""Processes that are killed or suspended under load (cluster protocol, sections 10 and 14)."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from tests.acceptance.cluster.fleet import Fleet, FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.load import GONE, Load
from tests.acceptance.resp import Connection, encode

ALWAYS = ("appendonly yes", "appendfsync always", "auto-aof-rewrite-percentage 0")
_ROUNDS = 4


class FleetLoad(Load):
    """Clients that connect to another node when theirs has ended."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(lambda: self._any(fleet))
        self._ended = threading.Event()

    def _any(self, fleet: Fleet) -> Connection:
        node = random.choice(fleet.living())
        return Connection((node.ip, node.port), timeout_s=10)

    def _until_gone(self, work: Any) -> None:
        while not self._stopping.is_set():
            super()._until_gone(work)
            time.sleep(0.05)

    def _produce(self, connection: Connection) -> None:
        """Add two kinds of jobs: at least once with three copies, at most once with one."""
        kinds = [random.choice((0, 1)) for _ in range(10)]
        words = {0: ("REPLICATE", 1, "RETRY", 0), 1: ("REPLICATE", 3, "RETRY", 1)}
        connection.send_raw(
            b"".join(encode("ADDJOB", "q", "body", 2000, *words[kind]) for kind in kinds)
        )
        for kind in kinds:
            self.note_answer(connection.read(), kind == 0)
        time.sleep(0.01)


class KillTests(FleetTestCase):
    """Three nodes that write a log."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3
    directives = ALWAYS

    def test_all_at_once(self) -> None:
        """When all nodes are killed at once and started again, every job is delivered."""
        ids = [
            node.add(self.queue, replicate=1 + n % 3, retry=2)
            for node in self.nodes
            for n in range(60)
        ]
        acked = ids[::5]
        for job_id in acked:
            self.nodes[0].call("ACKJOB", job_id)
        self.wait(
            lambda: not any(self.fleet.holders(job_id) for job_id in acked),
            "the acknowledged jobs are removed",
        )
        self.fleet.each(Node.kill)
        self.fleet.each(Node.boot)
        self.fleet.wait_until_agreed()
        got: set[str] = set()
        deadline = time.monotonic() + 120
        while len(got) < len(ids) - len(acked) and time.monotonic() < deadline:
            for node, job_id in self.fleet.fetch(self.queue, 1):
                node.call("ACKJOB", job_id)
                got.add(job_id)
        self.assertEqual(set(ids) - set(acked), got)
        self.fleet.wait_until_empty()

    def test_under_load(self) -> None:
        """When one node after the other is killed, no accepted job is lost, and jobs with RETRY 0
        are delivered at most once."""
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
        self.fleet.wait_until_agreed()
        self.drain(load)
        often = load.added - load.once
        self.assertEqual(set(), often - load.ack_sent - set(load.delivered), "never delivered")
        twice = {job_id for job_id in load.once if load.delivered.get(job_id, 0) > 1}
        self.assertEqual(set(), twice, "at most once, delivered twice")
        self.assertGreater(len(often), 20)
        self.assertGreater(len(load.acked), 10)

    def drain(self, load: FleetLoad) -> None:
        """Fetch and acknowledge jobs until none has been delivered for ten times RETRY."""
        connections = [node.client() for node in self.nodes]
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for connection in connections:
                ids = load.fetch(connection, 1000)
                if ids:
                    connection.call("ACKJOB", *ids)
                    load.ack_sent.update(ids)
                    deadline = time.monotonic() + 10


class SuspendTests(FleetTestCase):
    """A process is suspended for longer than the node timeout, and then resumed."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3

    def test_others_deliver(self) -> None:
        """The others deliver the suspended node's jobs; those acknowledged meanwhile are removed
        from it, too."""
        suspended, *others = self.nodes
        ids = {suspended.add(self.queue, replicate=3, retry=1) for _ in range(50)}
        suspended.suspend()
        self.wait(
            lambda: all("fail" in o.flags(suspended) for o in others), "its failure is detected"
        )
        got: set[str] = set()
        deadline = time.monotonic() + 120
        while got != ids and time.monotonic() < deadline:
            for node, job_id in self.fleet.fetch(self.queue, 0.5):
                node.call("ACKJOB", job_id)
                got.add(job_id)
        self.assertEqual(ids, got)
        suspended.resume()
        self.fleet.wait_until_agreed()
        self.wait(
            lambda: suspended.call("QLEN", self.queue) == 0, "the acknowledgements arrive there"
        )
        self.fleet.wait_until_empty()

    def test_at_most_once(self) -> None:
        """A job that only a suspended node has is delivered once, when the node is resumed."""
        suspended = self.nodes[0]
        ids = sorted(suspended.add(self.queue, replicate=1, retry=0) for _ in range(20))
        client = self.blocked_client(self.nodes[1], f"{self.queue}-none", "TIMEOUT", 60_000)
        suspended.suspend()
        self.assertEqual([], self.fleet.fetch(self.queue, 4))
        suspended.resume()
        got = self.fleet.fetch(self.queue, 120, until=20) + self.fleet.fetch(self.queue, 2)
        self.assertEqual(ids, sorted(job_id for _node, job_id in got))
        client.close()

    def test_clients_wait(self) -> None:
        """A client of a suspended node receives its reply when the node is resumed; its request is
        not lost."""
        suspended = self.nodes[0]
        client = suspended.client()
        self.assertEqual("PONG", client.call("PING"))
        suspended.suspend()
        client.send("ADDJOB", self.queue, "b", 0, "REPLICATE", 3)
        self.wait(lambda: "fail" in self.nodes[1].flags(suspended), "its failure is detected")
        suspended.resume()
        answer = client.read()
        self.assertNotIsInstance(answer, GONE)
        # The node may still suspect the others, because it received no reply from them in time.
        self.assertRegex(str(answer), r"\AD-|\ANOREPL ")
        self.fleet.wait_until_agreed()
