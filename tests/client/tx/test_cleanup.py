"""What a client of Twisted closes, returns and forgets, after errors and moves."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from disque_tx.client.errors import ConnectionLost, UnknownJob
from tests.client.scripted import HANG_UP, JOB_ID, NO_ANSWER, array, bulk, job
from tests.client.tx.network import NetworkTestCase

PONG = b"+PONG\r\n"
NONE = b"*-1\r\n"
LEAVING = b"-LEAVING this node is leaving the cluster\r\n"
LOADING = b"-LOADING Disque is loading the dataset in memory\r\n"


class LeftNodeTests(NetworkTestCase):
    """A node that is not used any more."""

    def test_leaving(self) -> None:
        """A client that goes elsewhere, because its node leaves or loads, keeps no connection
        there: an operator sees when the node can be stopped."""
        for refusal in (LEAVING, LOADING):
            first, second = self.cluster(2, PING=PONG, QLEN=b":1\r\n")
            first.answer("GETJOB", array(job()))
            client = self.client(first)
            self.result(client.take("q"))
            first.answer("QLEN", refusal)
            self.assertEqual(1, self.result(client.queue_length("q")))
            self.network.settle()
            self.assertEqual(([], 1), (first.wires, len(second.wires)))
            self.result(client.ping())
            self.assertEqual(["GETJOB", "QLEN"], first.commands())

    def test_answers_first(self) -> None:
        """Calls that are under way at the node that was left are answered there, and then their
        connection is closed."""
        first, _ = self.cluster(2, PING=PONG, QLEN=b":1\r\n", ADDJOB=NO_ANSWER)
        client = self.client(first)
        adding = client.add_job("q", "b")
        self.network.settle()
        first.answer("QLEN", LEAVING)
        self.result(client.queue_length("q"))
        self.assertNoResult(adding)
        (wire,) = first.wires
        wire.send(bulk(JOB_ID))
        self.assertEqual(JOB_ID, self.result(adding))
        self.network.settle()
        self.assertEqual([], first.wires)

    def test_forgotten(self) -> None:
        """Of a node that has delivered jobs, and is gone, nothing stays in a client that runs for
        months; the client stays where it is."""
        first, second = self.cluster(2, PING=PONG)
        second.answer("GETJOB", array(job()))
        second.answer("WORKING", b":5\r\n")
        client = self.client(second)
        (taken,) = self.result(client.take("q"))
        client._session.follow(first.id[:8])
        self.result(client.ping())
        self.assertEqual(5, self.result(taken.working()))
        self.assertEqual(2, len(client._session._pools))
        second.hang_up()
        self.network.settle()
        self.assertEqual(1, len(client._session._pools))
        self.result(client.ping())
        self.assertEqual((1, 1), (len(first.wires), first.connections))


class ErrorTests(NetworkTestCase):
    """A request that fails leaves everything ready for the next one."""

    def test_refused(self) -> None:
        """After an error reply the same connections are used."""
        node = self.node(PING=PONG, WORKING=b"-NOJOB Job not known.\r\n")
        node.answer("GETJOB", *[NONE, b"-ERR no\r\n"] * 3)
        client = self.client(node)
        for _ in range(3):
            self.failureResultOf(self.settled(client.working("D-1")), UnknownJob)
            self.settled(client.take("q")).addErrback(lambda _: None)
            self.result(client.ping())
        self.assertEqual((2, 2), (node.connections, len(node.wires)))

    def test_malformed(self) -> None:
        """After a malformed reply the connection is closed, for what comes next on it may belong to
        another request; the next request has a new one."""
        node = self.node(PING=PONG, QLEN=b"+five\r\n")
        client = self.client(node)
        self.settled(client.queue_length("q")).addErrback(lambda _: None)
        self.network.settle()
        self.assertEqual([], node.wires)
        self.result(client.ping())
        self.assertEqual(2, node.connections)

    def test_silence(self) -> None:
        """A connection on which nothing comes in time is closed, not kept for the next request."""
        node = self.node(PING=[NO_ANSWER, PONG])
        client = self.client(node, timeout_s=1)
        first = client.ping()
        self.pass_s(1.2)
        self.assertEqual("PONG", self.result(first))
        self.assertEqual((2, 1), (node.connections, len(node.wires)))

    def test_next_in_line(self) -> None:
        """When a connection that waits for jobs is lost, or its node refuses, the request behind it
        gets its turn, so that no place is lost."""
        for reply in (HANG_UP, b"-ERR no\r\n", b"+five\r\n"):
            node = self.node(GETJOB=[NONE, NONE, reply, array(job()), NONE, array(job())])
            client = self.client(node, connections_max=1)
            takes = [client.take("q") for _ in range(2)]
            for one in takes:
                one.addErrback(lambda _: [])
            self.pass_s(1)
            self.assertEqual(1, len(self.result(takes[1])), reply)
            self.assertEqual(1, len(self.result(client.take("q"))))

    def test_closed_for_waiting(self) -> None:
        """A client that was closed while requests waited for jobs has all its places again."""
        node = self.node()
        node.answer("GETJOB", *[NONE] * 4, *[NO_ANSWER] * 2, *[NONE] * 2, array(job()))
        client = self.client(node, connections_max=2)
        takes = [client.take("q") for _ in range(4)]
        self.network.settle()
        self.result(client.close())
        for one in takes:
            self.failureResultOf(one, ConnectionLost)
        again = [client.take("q") for _ in range(2)]
        self.assertEqual([1, 1], [len(self.result(one)) for one in again])

    def settled(self, of: Deferred[Any]) -> Deferred[Any]:
        """This, when the network has settled."""
        self.network.settle()
        return of
