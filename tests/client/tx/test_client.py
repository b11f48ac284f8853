"""The short methods of the Twisted client, delivered jobs, channels, and how requests share
connections."""

from __future__ import annotations

import subprocess
import sys

import disque_tx.client
from disque_tx.client import BadAddress, DisqueClient, PublicationIncomplete, TakenJob
from disque_tx.client.errors import AuthenticationRefused, ConnectionLost, OutcomeUnknown
from tests.acceptance.daemon import environment
from tests.client.blocking.test_client import subscriptions
from tests.client.blocking.test_session import ADDED, PONG
from tests.client.scripted import HANG_UP, JOB_ID, NO_ANSWER, array, job
from tests.client.tx.network import NetworkTestCase
from tests.client.tx.test_commands import listed

NONE = b"*-1\r\n"
OTHER_ID = JOB_ID.replace("aaaaaaaa", "b" * 8)


class ShortFormTests(NetworkTestCase):
    """Adding and fetching jobs with the short methods."""

    def test_take(self) -> None:
        """A fetched job has its data, and methods to acknowledge, return or extend it."""
        one, five = b":1\r\n", b":5\r\n"
        node = self.node(GETJOB=array(job()), WORKING=five, ACKJOB=one, NACK=one, FASTACK=b":0\r\n")
        client = self.client(node)
        (delivered,) = self.result(client.take("q", "r", count=3))
        self.assertEqual(
            (b"body", JOB_ID, "q", 1),
            (delivered.data, delivered.id, delivered.queue, delivered.job.nacks),
        )
        self.assertEqual(node.address, str(delivered.address))
        self.assertEqual(5, self.result(delivered.working()))
        self.assertIs(True, self.result(delivered.nack()))
        self.assertIs(True, self.result(delivered.ack()))
        self.assertIs(False, self.result(delivered.fast_ack()))
        self.assertEqual(["GETJOB", "WORKING", "NACK", "ACKJOB", "FASTACK"], node.commands())
        self.assertNotIn("body", repr(delivered))

    def test_no_job(self) -> None:
        """When no job arrives in time, the result is empty, however the timeout was given."""
        node = self.node(GETJOB=NONE)
        client = self.client(node)
        self.assertIsNone(self.result(client.dequeue("q", timeout=0)))
        self.assertEqual([], self.result(client.take("q", no_hang=True)))
        self.assertEqual(2, len(node.requests))
        node.answer("GETJOB", NONE, NO_ANSWER)
        take = client.take("q", timeout_s=0.5)
        self.pass_s(0.5)
        self.assertEqual([b"TIMEOUT", b"500"], node.requests[-1][4:6])
        node.wires[-1].send(NONE)
        self.assertEqual([], self.result(take))

    def test_for_ever(self) -> None:
        """A wait without a timeout is sent as many shorter ones, to detect an unresponsive node.
        One connection is used for all of them."""
        node = self.node(GETJOB=[NONE, NONE, NONE, array(job())])
        job_ids = self.client(node).get_jobs("q")
        self.assertEqual(1, len(self.result(job_ids)))
        self.assertEqual([b"TIMEOUT", b"10000"], node.requests[-1][4:6])
        self.assertEqual((4, 2), (len(node.requests), node.connections))

    def test_iteration(self) -> None:
        """Iterating over a queue ends when no job arrives."""
        node = self.node(GETJOB=[array(job(body=b"1")), array(job(body=b"2")), NONE])
        jobs = self.result(listed(self.client(node).jobs("q", timeout_s=0)))
        self.assertEqual([b"1", b"2"], [delivered.data for delivered in jobs])

    def test_many(self) -> None:
        """Jobs of several nodes are acknowledged with one request to each node."""
        nodes = self.cluster(2, ACKJOB=b":2\r\n", NACK=b":1\r\n")
        nodes[0].answer("GETJOB", array(job(), job()))
        nodes[1].answer("GETJOB", array(job(OTHER_ID)))
        client = self.client(nodes[0])
        jobs = self.result(client.take("q", count=2))
        client._session.follow("b" * 8)
        (other,) = self.result(client.take("q"))
        jobs.append(other)
        self.assertEqual(4, self.result(client.ack_taken(jobs)))
        self.assertEqual([b"ACKJOB", JOB_ID.encode(), JOB_ID.encode()], nodes[0].requests[-1])
        self.assertEqual([b"ACKJOB", OTHER_ID.encode()], nodes[1].requests[-1])
        self.assertEqual(2, self.result(client.nack_taken(jobs)))
        self.assertEqual(0, self.result(client.ack_taken([])))
        nodes[1].answer("NACK", HANG_UP)
        self.failure(client.nack_taken(jobs), OutcomeUnknown)

    def test_auth(self) -> None:
        """A password is used from now on, and a wrong one is reported at once."""
        node = self.node(AUTH=[b"+OK\r\n", b"-ERR invalid password\r\n"], PING=PONG)
        client = self.client(node)
        self.result(client.ping())
        self.result(client.auth("right"))
        self.assertEqual(["PING", "AUTH", "PING"], node.commands())
        self.failure(client.auth("wrong"), AuthenticationRefused)

    def test_nack_to_an_original(self) -> None:
        """A node of the original takes options for IDs: it gets a plain NACK."""
        bad = b"-BADID Invalid Job ID format.\r\n"
        node = self.node(GETJOB=array(job()), NACK=[bad, b":1\r\n", bad, b":1\r\n"])
        client = self.client(node)
        (taken,) = self.result(client.take("q"))
        self.assertIs(True, self.result(taken.nack(delay_s=5, reason="why")))
        self.assertEqual([b"NACK", JOB_ID.encode()], node.requests[-1])
        self.assertEqual(1, self.result(client.nack_taken([taken], reason="why")))
        self.assertEqual([b"NACK", JOB_ID.encode()], node.requests[-1])


class SharingTests(NetworkTestCase):
    """The connections that requests use."""

    def test_pipelining(self) -> None:
        """Many short requests are pipelined on one connection."""
        node = self.node(PING=PONG)
        client = self.client(node)
        pings = [client.ping() for _ in range(50)]
        self.network.settle()
        self.assertEqual(["PONG"] * 50, [self.successResultOf(ping) for ping in pings])
        self.assertEqual(1, node.connections)

    def test_writes(self) -> None:
        """Requests made while replies are handled are sent in one write."""
        node = self.node(PING=PONG)
        client = self.client(node)
        self.result(client.ping())
        node.answer("PING", NO_ANSWER)
        pings = [client.ping().addCallback(lambda _: client.ping()) for _ in range(20)]
        self.network.settle()
        (wire,) = node.wires
        before = wire.writes
        wire.send(PONG * 20)
        self.network.settle()
        self.assertEqual(before + 1, wire.writes)
        wire.send(PONG * 20)
        self.network.settle()
        self.assertEqual(["PONG"] * 20, [self.successResultOf(ping) for ping in pings])

    def test_copying(self) -> None:
        """ADDJOBs that wait for copies do not delay heartbeats; many of them share few
        connections."""
        node = self.node(ADDJOB=NO_ANSWER, WORKING=b":5\r\n")
        client = self.client(node)
        for _ in range(200):
            client.add_job("q", "b").addErrback(lambda _: None)
        self.assertEqual(5, self.result(client.working(JOB_ID)))
        self.assertEqual(9, node.connections)

    def test_waiting(self) -> None:
        """Each wait for jobs has its own connection, up to a limit; further ones wait in order, and
        no longer than their timeout."""
        node = self.node(GETJOB=[NONE] * 6 + [NO_ANSWER], PING=PONG)
        client = self.client(node, connections_max=2)
        takes = [client.take("q", timeout_s=4) for _ in range(4)]
        short = client.take("q", timeout_s=1)
        longer = client.take("q", timeout_s=3)
        self.network.settle()
        waiting = [wire for wire in node.wires if wire.unresponsive]
        self.assertEqual((2, 3), (len(waiting), node.connections))
        self.pass_s(1.5)
        self.assertEqual([], self.successResultOf(short))
        for wire in waiting:
            wire.unresponsive = False
            wire.send(array(job()))
        self.network.settle()
        self.assertEqual([1, 1], [len(self.successResultOf(take)) for take in takes[:2]])
        self.pass_s(2)
        self.assertEqual([], self.successResultOf(longer))
        self.assertEqual(3, node.connections)
        for take in takes[2:]:
            self.assertNoResult(take)
            take.addErrback(lambda failure: failure.trap(ConnectionLost))


class ChannelTests(NetworkTestCase):
    """Subscriptions are jobs in a queue of the channel."""

    def test_subscribe(self) -> None:
        """A new subscription is a job with a TTL of years; an existing one is not added again."""
        node = self.node(QPEEK=[subscriptions("other"), subscriptions("mail")], ADDJOB=ADDED)
        client = self.client(node)
        self.result(client.subscribe("news", "mail"))
        self.assertEqual(b"ADDJOB disque:channel:news mail".split(), node.requests[-1][:3])
        self.result(client.subscribe("news", "mail"))
        self.assertEqual(1, node.commands().count("ADDJOB"))

    def test_publish(self) -> None:
        """Subscriptions on all nodes are used, each queue once; nodes that do not answer are
        reported."""
        nodes = self.cluster(3, ADDJOB=ADDED)
        reply = (subscriptions("a", "b"), subscriptions("b", "c"), NO_ANSWER)
        for node, peeked in zip(nodes, reply, strict=True):
            node.answer("QPEEK", peeked)
        publishing = self.client(nodes[0], timeout_s=1).publish("news", "hi")
        self.pass_s(2)
        published = self.successResultOf(publishing)
        self.assertEqual({"a", "b", "c"}, set(published.jobs))
        self.assertEqual((nodes[2].address,), published.unseen)
        added = [words[:3] for words in nodes[0].requests if words[0] == b"ADDJOB"]
        self.assertEqual([[b"ADDJOB", queue, b"hi"] for queue in (b"a", b"b", b"c")], added)

    def test_partly_published(self) -> None:
        """When a queue refuses the message, the error lists the queues with and without it."""
        paused = b"-PAUSED Queue paused in input, try later\r\n"
        node = self.node(QPEEK=subscriptions("a", "b", "c"), ADDJOB=[ADDED, paused])
        error = self.failure(self.client(node).publish("news", "hi"), PublicationIncomplete)
        self.assertEqual(({"a": JOB_ID}, ["b", "c"]), (error.jobs, error.missing))

    def test_unsubscribe(self) -> None:
        """All jobs of the subscription are acknowledged."""
        node = self.node(QPEEK=subscriptions("a", "b", "a"), ACKJOB=b":2\r\n")
        client = self.client(node)
        self.assertTrue(self.result(client.unsubscribe("news", "a")))
        self.assertEqual([b"ACKJOB", JOB_ID.encode(), JOB_ID.encode()], node.requests[-1])
        self.assertFalse(self.result(client.unsubscribe("news", "z")))


class SocketTests(NetworkTestCase):
    """Connections over TCP."""

    def test_tuned(self) -> None:
        """A small request leaves at once, although an earlier one is not answered yet, and a node
        that vanished is noticed by a client that only waits."""
        node = self.node(PING=b"+PONG\r\n")
        self.result(self.client(node).ping())
        (wire,) = node.wires
        self.assertEqual((True, True), (wire.no_delay, wire.keep_alive))


class PackageTests(NetworkTestCase):
    """The name ``disque_tx.client.DisqueClient``."""

    def test_lazy_import(self) -> None:
        """Values, errors and the blocking client import neither Twisted nor txredisapi."""
        program = (
            "import disque_tx.client, sys; from disque_tx import Disque;"
            "sys.exit(sum(name in sys.modules for name in ('twisted', 'txredisapi')))"
        )
        done = subprocess.run([sys.executable, "-c", program], env=environment(), check=False)
        self.assertEqual(0, done.returncode)

    def test_names(self) -> None:
        """Names that need Twisted are imported when used; other names raise AttributeError."""
        self.assertIs(DisqueClient, disque_tx.client.DisqueClient)
        self.assertEqual("TakenJob", TakenJob.__name__)
        self.assertFalse(hasattr(disque_tx.client, "Redis"))

    def test_addresses(self) -> None:
        """Addresses have the format of the blocking client; the password is not shown."""
        self.assertRaises(BadAddress, DisqueClient, "not an address", reactor=self.network)
        client = DisqueClient("disque://:s3cret@[::1]:7712,b", reactor=self.network)
        self.assertEqual("<DisqueClient [::1]:7712,b:7711>", repr(client))
