"""The short methods of the blocking client, and what importing the package loads."""

from __future__ import annotations

import subprocess
import sys

import disque_tx
from disque_tx import Disque
from disque_tx.client import AuthenticationRefused, OutcomeUnknown, PublicationIncomplete
from tests.acceptance.daemon import environment
from tests.client.blocking.test_session import ADDED, PONG, SessionTestCase
from tests.client.scripted import HANG_UP, JOB_ID, NO_ANSWER, array, bulk, job


def subscriptions(*queues: str) -> bytes:
    """A reply to QPEEK with these subscriptions."""
    return array(*(array(bulk("x"), bulk(JOB_ID), bulk(queue)) for queue in queues))


class ShortFormTests(SessionTestCase):
    """Adding and fetching jobs with the short methods."""

    def test_enqueue(self) -> None:
        """Short methods take times in seconds."""
        node = self.node(ADDJOB=ADDED)
        self.assertEqual(JOB_ID, self.client(node).enqueue("q", "é", delay=1, retry=2, ttl=3))
        self.assertEqual("ADDJOB q é 5000 DELAY 1 RETRY 2 TTL 3".encode().split(), node.requests[0])

    def test_dequeue(self) -> None:
        """A fetched job has its data, and methods to acknowledge, return or extend it."""
        node = self.node(GETJOB=array(job()), WORKING=b":300\r\n", ACKJOB=b":1\r\n", NACK=b":1\r\n")
        delivered = self.client(node).dequeue("q", timeout=0.5)
        assert delivered is not None
        self.assertEqual((b"body", JOB_ID, "q"), (delivered.data, delivered.id, delivered.queue))
        self.assertEqual(
            (300, True, True), (delivered.working(), delivered.nack(), delivered.ack())
        )
        self.assertEqual(["GETJOB", "WORKING", "NACK", "ACKJOB"], node.commands())
        self.assertNotIn("body", repr(delivered))

    def test_nack_options(self) -> None:
        """A delay and a reason reach the node; a reason that is too long is cut."""
        node = self.node(GETJOB=array(job()), NACK=b":1\r\n")
        delivered = self.client(node).dequeue("q")
        assert delivered is not None
        self.assertIs(True, delivered.nack(delay_s=0.25, reason="x" * 2_000))
        self.assertEqual([b"NACK", b"DELAY", b"0.250", b"REASON"], node.requests[-1][:4])
        self.assertEqual(1_024, len(node.requests[-1][4]))

    def test_auth(self) -> None:
        """A password is used from now on, and a wrong one is reported at once."""
        node = self.node(AUTH=[b"+OK\r\n", b"-ERR invalid password\r\n"], PING=PONG)
        client = self.client(node)
        client.ping()
        client.auth("right")
        self.assertEqual(["PING", "AUTH", "PING"], node.commands())
        self.assertRaises(AuthenticationRefused, client.auth, "wrong")

    def test_nack_to_an_original(self) -> None:
        """A node of the original takes options for IDs: it gets a plain NACK, and the job is
        delivered again at once."""
        bad = b"-BADID Invalid Job ID format.\r\n"
        node = self.node(GETJOB=array(job()), NACK=[bad, b":1\r\n"])
        delivered = self.client(node).dequeue("q")
        assert delivered is not None
        self.assertIs(True, delivered.nack(delay_s=5))
        self.assertEqual([b"NACK", JOB_ID.encode()], node.requests[-1])

    def test_dequeue_nothing(self) -> None:
        """When no job arrives in time, the result is None; with a timeout of 0 the request does not
        wait."""
        node = self.node(GETJOB=b"*-1\r\n")
        self.assertIsNone(self.client(node).dequeue("q", timeout=0))
        self.assertIn(b"NOHANG", node.requests[0])

    def test_in_order(self) -> None:
        """Jobs of the first queue come before those of the others, however many there are."""
        node = self.node(GETJOB=[array(job()), array(job()), array(job()), b"*-1\r\n"])
        self.assertEqual(3, len(self.client(node).take_in_order("a", "b", count=9)))
        counts = [words[words.index(b"COUNT") + 1] for words in node.requests]
        self.assertEqual({b"1"}, set(counts))
        both = self.node(GETJOB=array(job(), job()))
        self.assertEqual(2, len(self.client(both).take_in_order("a", count=2)))

    def test_iteration(self) -> None:
        """Iterating over a queue ends when no job arrives."""
        node = self.node(GETJOB=[array(job(body=b"1")), array(job(body=b"2")), b"*-1\r\n"])
        self.assertEqual(
            [b"1", b"2"], [delivered.data for delivered in self.client(node).queue("q", timeout=0)]
        )

    def test_delivering_node(self) -> None:
        """Requests about a job are sent to the node that delivered it, even if the client has moved
        to another."""
        nodes = self.cluster(2, WORKING=b":5\r\n", NACK=HANG_UP, GETJOB=array(job()))
        client = self.client(nodes[0])
        delivered = client.dequeue("q")
        assert delivered is not None
        client._session.follow("b" * 8)
        self.assertEqual(nodes[1].address, str(client.address()))
        delivered.working()
        self.assertEqual(["GETJOB", "WORKING"], nodes[0].commands())
        self.assertRaises(OutcomeUnknown, delivered.nack)
        nodes[0].close()
        delivered.working()
        self.assertEqual(["WORKING"], nodes[1].commands())

    def test_context(self) -> None:
        """The context manager closes the client; a later request connects again."""
        node = self.node(GETJOB=b"*-1\r\n")
        with self.client(node) as client:
            client.dequeue("q", timeout=0)
        client.dequeue("q", timeout=0)
        self.assertEqual(2, node.connections)


class ChannelTests(SessionTestCase):
    """Subscriptions are jobs in a queue of the channel."""

    def test_subscribe(self) -> None:
        """A new subscription is a job with a TTL of years; an existing one is not added again."""
        node = self.node(QPEEK=[subscriptions("other"), subscriptions("mail")], ADDJOB=ADDED)
        client = self.client(node)
        client.subscribe("news", "mail")
        self.assertEqual(b"ADDJOB disque:channel:news mail".split(), node.requests[-1][:3])
        self.assertIn(b"RETRY", node.requests[-1])
        client.subscribe("news", "mail")
        self.assertEqual(1, node.commands().count("ADDJOB"))

    def test_publish(self) -> None:
        """Subscriptions on all nodes are used, each queue once; nodes that do not answer are
        reported."""
        nodes = self.cluster(3, ADDJOB=ADDED)
        for node, reply in zip(
            nodes, (subscriptions("a", "b"), subscriptions("b", "c"), NO_ANSWER), strict=True
        ):
            node.answer("QPEEK", reply)
        published = self.client(nodes[0], timeout_s=0.1).publish("news", "hi")
        self.assertEqual({"a", "b", "c"}, set(published.jobs))
        self.assertEqual((nodes[2].address,), published.unseen)
        added = [words for node in nodes for words in node.requests if words[0] == b"ADDJOB"]
        self.assertEqual([b"a", b"b", b"c"], sorted(words[1] for words in added))

    def test_partly_published(self) -> None:
        """When a queue refuses the message, the error lists the queues with and without it."""
        paused = b"-PAUSED Queue paused in input, try later\r\n"
        node = self.node(QPEEK=subscriptions("a", "b", "c"), ADDJOB=[ADDED, paused])
        error = self.assertRaises(PublicationIncomplete, self.client(node).publish, "news", "hi")
        self.assertEqual(({"a": JOB_ID}, ["b", "c"]), (error.jobs, error.missing))

    def test_unsubscribe(self) -> None:
        """All jobs of the subscription are acknowledged."""
        node = self.node(QPEEK=subscriptions("a", "b", "a"), ACKJOB=b":2\r\n")
        client = self.client(node)
        self.assertTrue(client.unsubscribe("news", "a"))
        self.assertEqual([b"ACKJOB", JOB_ID.encode(), JOB_ID.encode()], node.requests[-1])
        self.assertFalse(client.unsubscribe("news", "z"))


class PackageTests(SessionTestCase):
    """The name ``disque_tx.Disque``."""

    def test_lazy_import(self) -> None:
        """The daemon does not import the client's library."""
        program = "import disque_tx.cli.programs.server, sys; sys.exit('redis' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", program], env=environment(), check=False)
        self.assertEqual(0, done.returncode)

    def test_unknown(self) -> None:
        """Other names of the package raise AttributeError."""
        self.assertIs(Disque, disque_tx.Disque)
        self.assertFalse(hasattr(disque_tx, "Redis"))
