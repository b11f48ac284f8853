"""Clients that wait by name or by pattern, and limits of queues."""

from __future__ import annotations

import attrs

from disque_tx.commands.base.values import ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.core.getting.getting import GetRequest
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.node import Node
from disque_tx.core.queues.queues import PAUSE_NONE, PAUSE_OUT
from disque_tx.sim.checkers.queues.matching import LimitsKept, NoJobBesideClient
from tests.sim.checkers.bench import HERE, THERE, CheckerCase, S


class NodeCase(CheckerCase):
    """A node of a simulation, at which clients ask."""

    def setUp(self) -> None:
        super().setUp()
        self.run_.machines[0].start()
        process = self.run_.machines[0].process
        assert process is not None
        self.node: Node = process.node
        self.policies()

    def policies(self, **settings: bytes) -> None:
        """These are the policies of the queue, as the checkers believe."""
        chosen = tuple((b"q", name.replace("_", "-").encode(), settings[name]) for name in settings)
        self.run_.workload = attrs.evolve(self.run_.workload, policies=chosen)

    def client(self) -> Client:
        """A new one."""
        return Client(1, ValueReplies(), b"10.0.0.9:1", self.node.now_ms)

    def add(self) -> None:
        """A job comes into the queue; nobody is served in this turn yet."""
        request = AddRequest(b"q", b"body")
        request.replicate = 1
        self.node.add_job(self.client(), request)

    def get(self, count: int = 1) -> Client:
        """GETJOB of a new client."""
        client = self.client()
        self.node.get_jobs(client, [b"q"], count, 0, False, False)
        return client

    def match(self, *patterns: bytes) -> Client:
        """The same by pattern."""
        client = self.client()
        self.node.get_matching(client, GetRequest([], list(patterns), []))
        return client


class BesideTests(NodeCase):
    """No job waits beside a client."""

    def setUp(self) -> None:
        super().setUp()
        self.checker = NoJobBesideClient()

    def look(self) -> int:
        """How many pairs there are now."""
        return len(self.checker.breaches_at(self.run_, self.node))

    def test_by_name(self) -> None:
        """A client that named the queue and is not served breaks the promise."""
        self.get()
        self.assertEqual(0, self.look())
        self.add()
        self.assertEqual(1, self.look())
        self.node.serve()
        self.assertEqual(0, self.look())

    def test_by_pattern(self) -> None:
        """So does one whose pattern matches; one with another pattern waits for something else."""
        self.match(b"other:*")
        client = self.match(b"q*")
        self.add()
        self.assertEqual(1, self.look())
        self.node.client_gone(client)
        self.assertEqual(0, self.look())

    def test_paused(self) -> None:
        """A paused queue gives no jobs."""
        self.get()
        self.add()
        queue = self.node.queues.get(b"q")
        assert queue is not None
        queue.paused = PAUSE_OUT
        self.assertEqual(0, self.look())
        queue.paused = PAUSE_NONE
        self.assertEqual(1, self.look())

    def test_full(self) -> None:
        """Nor does one with as many jobs in flight as its policy allows."""
        self.add()
        self.get()
        self.get()
        self.add()
        self.policies(concurrency=b"1")
        self.assertEqual(0, self.look())
        self.policies(concurrency=b"2")
        self.assertEqual(1, self.look())

    def test_rate(self) -> None:
        """A token that has just come may be unnoticed once, not twice, and more often if a node was
        stopped or slow."""
        self.policies(rate=b"4")
        self.get()
        self.add()
        self.assertEqual([0, 1], [self.look(), self.look()])
        self.fault("pause")
        self.assertEqual(0, self.look())


class LimitTests(NodeCase):
    """No limit is passed."""

    def test_concurrency(self) -> None:
        """More jobs in flight than allowed break the promise; those of other queues do not
        count."""
        self.add()
        self.add()
        self.get(2)
        for allowed, breaches in ((b"1", 1), (b"2", 0)):
            self.policies(concurrency=allowed)
            self.assertEqual(breaches, len(LimitsKept().breaches_at(self.run_, self.node)), allowed)
        self.run_.workload = attrs.evolve(
            self.run_.workload, policies=((b"other", b"concurrency", b"1"),)
        )
        self.assertEqual([], LimitsKept().breaches_at(self.run_, self.node))

    def test_done(self) -> None:
        """A job that is acknowledged is in nobody's hands."""
        self.policies(concurrency=b"1")
        self.add()
        self.add()
        self.get(2)
        self.node.acknowledge([next(iter(self.node.jobs.table.values())).id])
        self.assertEqual([], LimitsKept().breaches_at(self.run_, self.node))

    def test_rate(self) -> None:
        """Deliveries may come as fast as tokens do, and a burst at once."""
        self.policies(rate=b"4", rate_burst=b"2")
        for at_s in (1, 1, 1.25, 1.5, 9):
            self.deliver(at_s)
        self.assertEqual(0, self.found(LimitsKept()))
        self.deliver(1.3)
        self.assertEqual(1, self.found(LimitsKept()))

    def test_each_node(self) -> None:
        """Each node has a bucket of its own, and a full one after a restart."""
        self.policies(rate=b"4", rate_burst=b"1")
        self.deliver(1)
        self.deliver(1, THERE)
        self.assertEqual(0, self.found(LimitsKept()))
        self.deliver(1.1, HERE)
        self.assertEqual(1, self.found(LimitsKept()))
        self.run_.machines[0].started_us = int(1.05 * S)
        self.assertEqual(0, self.found(LimitsKept()))
