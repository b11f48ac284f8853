"""What becomes of a request, and of jobs, when nobody waits for them any more."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from tests.client.blocking.test_session import ADDED, PONG
from tests.client.scripted import JOB_ID, NO_ANSWER, array, job
from tests.client.tx.network import MemoryNode, NetworkTestCase, Wire

NONE = b"*-1\r\n"
JOB = array(job())


class CancellingTests(NetworkTestCase):
    """One node."""

    def cancelled(self, deferred: Deferred[Any]) -> None:
        """Cancel it, and check that it fails with CancelledError."""
        deferred.cancel()
        self.failureResultOf(deferred, CancelledError)

    def waiting(self, **options: Any) -> tuple[MemoryNode, Wire, Deferred[Any], Any]:
        """A take that waits at a node: the node, the connection, the take and the client."""
        node = self.node(GETJOB=[NONE, NO_ANSWER], NACK=b":1\r\n", PING=PONG)
        client = self.client(node, **options)
        take = client.take("q", timeout_s=8)
        self.network.settle()
        return node, node.wires[-1], take, client

    def test_nothing_came(self) -> None:
        """A wait for jobs is ended by hanging up, so that the node delivers nothing to it."""
        node, wire, take, client = self.waiting()
        self.cancelled(take)
        self.network.settle()
        self.assertTrue(wire.closed)
        self.assertEqual(["GETJOB", "GETJOB"], node.commands())
        self.assertEqual("PONG", self.result(client.ping()))
        self.assertEqual(2, node.connections)

    def test_crossing(self) -> None:
        """A job that was sent before the node read the end of the stream is given back."""
        node, wire, take, _ = self.waiting()
        wire.send(JOB)
        self.cancelled(take)
        self.network.settle()
        self.assertTrue(wire.closed)
        self.assertEqual([b"NACK", JOB_ID.encode()], node.requests[-1])

    def test_deaf(self) -> None:
        """A node that ignores the end is disconnected in time, and does not count as failed."""
        node, wire, take, client = self.waiting(timeout_s=2)
        node.ignores_eof = True
        self.cancelled(take)
        self.pass_s(1.5)
        self.assertFalse(wire.closed)
        self.pass_s(1)
        self.assertTrue(wire.closed)
        self.assertEqual("PONG", self.result(client.ping()))
        self.assertEqual(2, node.connections)

    def test_place_in_line(self) -> None:
        """The next in line waits when the connection is closed, not before."""
        node, _, take, client = self.waiting(connections_max=1)
        node.answer("GETJOB", NONE, JOB)
        later = client.take("q")
        self.network.settle()
        self.assertNoResult(later)
        self.cancelled(take)
        self.assertEqual([JOB_ID], [delivered.id for delivered in self.result(later)])

    def test_in_line(self) -> None:
        """Who stands in line leaves it; nothing is sent."""
        node, _, take, client = self.waiting(connections_max=1)
        node.answer("GETJOB", NONE)
        later = client.take("q")
        self.network.settle()
        self.cancelled(later)
        self.network.settle()
        self.assertEqual(3, len(node.requests))
        self.cancelled(take)

    def test_first_look(self) -> None:
        """Jobs in the answer to the first GETJOB, which does not wait, are given back as well."""
        node = self.node(GETJOB=JOB, NACK=b":1\r\n", PING=PONG)
        client = self.client(node)
        self.result(client.ping())
        take = client.take("q")
        self.cancelled(take)
        self.network.settle()
        self.assertEqual(["PING", "GETJOB", "NACK"], node.commands())
        self.assertEqual(1, node.connections)

    def test_giving_back_fails(self) -> None:
        """When giving back does not succeed, the RETRY of the job brings it back; no noise."""
        node, wire, take, _ = self.waiting()
        node.answer("NACK", b"-ERR no\r\n")
        wire.send(JOB)
        self.cancelled(take)
        self.network.settle()
        self.assertEqual("NACK", node.commands()[-1])
        self.assertEqual([], self.flushLoggedErrors())

    def test_add_sent(self) -> None:
        """The connection goes on after an ADDJOB whose reply nobody wants."""
        node = self.node(ADDJOB=ADDED, PING=PONG)
        client = self.client(node)
        self.result(client.add_job("q", "b"))
        added = client.add_job("q", "b")
        self.cancelled(added)
        self.assertEqual(JOB_ID, self.result(client.add_job("q", "b")))
        self.assertEqual((["ADDJOB"] * 3, 1), (node.commands(), node.connections))

    def test_add_unsent(self) -> None:
        """What waits for a connection is not sent."""
        node = self.node(ADDJOB=ADDED)
        self.cancelled(self.client(node).add_job("q", "b"))
        self.network.settle()
        self.assertEqual([], node.requests)

    def test_at_rest(self) -> None:
        """A request between two attempts makes no more of them."""
        node = self.node(PING=PONG)
        node.die()
        ping = self.client(node).ping()
        self.pass_s(1)
        self.cancelled(ping)
        node.is_up = True
        self.pass_s(10)
        self.assertEqual(0, node.connections)

    def test_lost_later(self) -> None:
        """A cancelled request is not repeated when its connection is lost."""
        nodes = self.cluster(2, QLEN=NO_ANSWER)
        client = self.client(nodes[0])
        length = client.queue_length("q")
        self.network.settle()
        self.cancelled(length)
        nodes[0].die()
        self.network.settle()
        self.assertEqual([], nodes[1].requests)

    def test_iteration(self) -> None:
        """A coroutine that iterates over a queue can be cancelled where it waits."""
        _, wire, take, client = self.waiting()
        self.cancelled(take)
        jobs = client.jobs("q")

        async def work() -> None:
            async for _ in jobs:
                raise AssertionError("there is no job")

        working = Deferred.fromCoroutine(work())
        self.network.settle()
        self.cancelled(working)
        self.network.settle()
        self.assertTrue(wire.closed)
