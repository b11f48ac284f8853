"""Cancelled requests, and what happens to their jobs."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from tests.client.blocking.test_session import ADDED, LEAVING, PONG
from tests.client.scripted import JOB_ID, NO_ANSWER, array, job
from tests.client.tx.network import MemoryNode, NetworkTestCase, Wire

NONE = b"*-1\r\n"
JOB = array(job())


class CancellingTests(NetworkTestCase):
    """One node."""

    def cancelled(self, deferred: Deferred[Any]) -> None:
        """Cancel a request, and check that it fails with CancelledError."""
        deferred.cancel()
        self.failureResultOf(deferred, CancelledError)

    def waiting(self, **options: Any) -> tuple[MemoryNode, Wire, Deferred[Any], Any]:
        """Start a ``take`` that waits on a node; returns the node, the connection, the Deferred and
        the client."""
        node = self.node(GETJOB=[NONE, NO_ANSWER], NACK=b":1\r\n", PING=PONG)
        client = self.client(node, **options)
        take = client.take("q", timeout_s=8)
        self.network.settle()
        return node, node.wires[-1], take, client

    def test_no_job(self) -> None:
        """Cancelling a wait for jobs closes its connection, so that the node delivers no job to
        it."""
        node, wire, take, client = self.waiting()
        self.cancelled(take)
        self.network.settle()
        self.assertTrue(wire.closed)
        self.assertEqual(["GETJOB", "GETJOB"], node.commands())
        self.assertEqual("PONG", self.result(client.ping()))
        self.assertEqual(2, node.connections)

    def test_job_on_its_way(self) -> None:
        """A job that was sent before the node read the end of the stream is returned to its
        queue."""
        node, wire, take, _ = self.waiting()
        wire.send(JOB)
        self.cancelled(take)
        self.network.settle()
        self.assertTrue(wire.closed)
        self.assertEqual([b"NACK", JOB_ID.encode()], node.requests[-1])

    def test_eof_ignored(self) -> None:
        """A node that ignores the end of the stream is disconnected after a timeout, and not
        treated as failed."""
        node, wire, take, client = self.waiting(timeout_s=2)
        node.ignores_eof = True
        self.cancelled(take)
        self.pass_s(1.5)
        self.assertFalse(wire.closed)
        self.pass_s(1)
        self.assertTrue(wire.closed)
        self.assertEqual("PONG", self.result(client.ping()))
        self.assertEqual(2, node.connections)

    def test_next_in_line(self) -> None:
        """When connections are limited, the next request waits until the connection is closed."""
        node, _, take, client = self.waiting(connections_max=1)
        node.answer("GETJOB", NONE, JOB)
        later = client.take("q")
        self.network.settle()
        self.assertNoResult(later)
        self.cancelled(take)
        self.assertEqual([JOB_ID], [delivered.id for delivered in self.result(later)])

    def test_waiting_for_a_connection(self) -> None:
        """A cancelled request that waits for a connection is never sent."""
        node, _, take, client = self.waiting(connections_max=1)
        node.answer("GETJOB", NONE)
        later = client.take("q")
        self.network.settle()
        self.cancelled(later)
        self.network.settle()
        self.assertEqual(3, len(node.requests))
        self.cancelled(take)

    def test_first_request(self) -> None:
        """Jobs in the reply to the first GETJOB, which does not wait, are returned to the queue,
        too."""
        node = self.node(GETJOB=JOB, NACK=b":1\r\n", PING=PONG)
        client = self.client(node)
        self.result(client.ping())
        take = client.take("q")
        self.cancelled(take)
        self.network.settle()
        self.assertEqual(["PING", "GETJOB", "NACK"], node.commands())
        self.assertEqual(1, node.connections)

    def test_nack_fails(self) -> None:
        """When returning a job fails, it is delivered again after its RETRY, and no error is
        logged."""
        node, wire, take, _ = self.waiting()
        node.answer("NACK", b"-ERR no\r\n")
        wire.send(JOB)
        self.cancelled(take)
        self.network.settle()
        self.assertEqual("NACK", node.commands()[-1])
        self.assertEqual([], self.flushLoggedErrors())

    def test_add_sent(self) -> None:
        """After a cancelled ADDJOB the connection stays usable."""
        node = self.node(ADDJOB=ADDED, PING=PONG)
        client = self.client(node)
        self.result(client.add_job("q", "b"))
        added = client.add_job("q", "b")
        self.cancelled(added)
        self.assertEqual(JOB_ID, self.result(client.add_job("q", "b")))
        self.assertEqual((["ADDJOB"] * 3, 1), (node.commands(), node.connections))

    def test_add_unsent(self) -> None:
        """A cancelled request that waits for a connection attempt is not sent."""
        node = self.node(ADDJOB=ADDED)
        self.cancelled(self.client(node).add_job("q", "b"))
        self.network.settle()
        self.assertEqual([], node.requests)

    def test_between_attempts(self) -> None:
        """A cancelled request makes no more attempts to connect."""
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

    def test_refused_later(self) -> None:
        """A cancelled request whose node leaves or loads is not sent to another one: an ADDJOB that
        nobody wants any more would add a job there. The node stays in use for others until one of
        theirs is refused."""
        for reply in (LEAVING, b"-LOADING soon\r\n", b"-ERR no\r\n"):
            nodes = self.cluster(2, ADDJOB=NO_ANSWER)
            client = self.client(nodes[0])
            added = client.add_job("q", "b")
            self.network.settle()
            self.cancelled(added)
            nodes[0].wires[-1].send(reply)
            self.pass_s(10)
            self.assertEqual((["ADDJOB"], []), (nodes[0].commands(), nodes[1].requests))
            self.assertEqual([], self.flushLoggedErrors())

    def test_iteration(self) -> None:
        """A coroutine that iterates over a queue can be cancelled while it waits."""
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
