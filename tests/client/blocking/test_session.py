"""Failing over, and what must not be done twice."""

from __future__ import annotations

import os

from disque_tx import Disque
from disque_tx.client import (
    AuthenticationRefused,
    BadJobId,
    BrokenReply,
    CannotConnect,
    Leaving,
    Loading,
    OutcomeUnknown,
    QueueFull,
    Refused,
    ScanInterrupted,
)
from tests.client.scripted import (
    HANG_UP,
    JOB_ID,
    NO_ANSWER,
    NODE_IDS,
    ScriptedNode,
    ScriptedTestCase,
    array,
    bulk,
    job,
)

LEAVING = b"-LEAVING This node is leaving the cluster, please connect to a different one\r\n"
PONG = b"+PONG\r\n"
_NO_QUEUES = array(bulk("0"), b"*0\r\n")
ADDED = b"+" + JOB_ID.encode() + b"\r\n"


class SessionTestCase(ScriptedTestCase):
    """Clients of scripted nodes."""

    def client(
        self,
        *nodes: ScriptedNode | str,
        password: str | None = None,
        patience_s: float = 20.0,
        discover: bool | None = None,
        timeout_s: float = 5.0,
    ) -> Disque:
        """A client that is closed after the test."""
        addresses = [node if isinstance(node, str) else node.address for node in nodes]
        client = Disque(
            addresses,
            password=password,
            patience_s=patience_s,
            discover=discover,
            timeout_s=timeout_s,
            environment=self.environment,
        )
        self.addCleanup(client.close)
        return client


class ConnectingTests(SessionTestCase):
    """Finding a node."""

    def test_nobody(self) -> None:
        """The error names each node and why it failed; the backoff grows with each round."""
        gone, other = self.node(), self.node()
        gone.close()
        other.close()
        client = self.client(gone, other, patience_s=5)
        error = self.assertRaises(CannotConnect, client.ping)
        self.assertEqual({gone.address, other.address}, set(error.tried))
        self.assertIn("refused", error.tried[gone.address])
        self.assertIn(gone.address, str(error))
        self.assertGreater(max(self.time.sleeps_s), 4 * min(self.time.sleeps_s))
        self.assertLess(self.time.s, 1000 + 5 + 5)

    def test_no_such_name(self) -> None:
        """A name that nobody can have is an address that failed."""
        self.assertRaises(CannotConnect, self.client("a..b:1", patience_s=0).ping)

    def test_one_of_many(self) -> None:
        """One good address is enough."""
        gone = [self.node() for _ in range(3)]
        for node in gone:
            node.close()
        self.assertEqual("PONG", self.client(*gone, self.node(PING=PONG)).ping())

    def test_spread(self) -> None:
        """Clients do not all come to the first address."""
        nodes = [self.node(node_id, PING=PONG) for node_id in NODE_IDS]
        for _ in range(30):
            self.client(*nodes, discover=False).ping()
        self.assertTrue(all(node.connections for node in nodes))

    def test_not_disque(self) -> None:
        """A server that answers HELLO with something else is no node."""
        client = self.client(self.node(HELLO=b"%1\r\n+server\r\n+other\r\n"), patience_s=1)
        error = self.assertRaises(CannotConnect, client.ping)
        self.assertIn("HELLO", str(error))

    def test_password_refused(self) -> None:
        """It is no use to try on, and the password is nobody's business."""
        for reply in (b"-ERR invalid password\r\n", b"-WRONGPASS no\r\n"):
            client = self.client(self.node(AUTH=reply), password="s3cret")
            error = self.assertRaises(AuthenticationRefused, client.ping)
            self.assertNotIn("s3cret", str(error) + repr(error) + repr(client))
            self.assertIn("requirepass", str(error))

    def test_password_missing(self) -> None:
        """A missing password is reported by the first request."""
        client = self.client(self.node(HELLO=b"-NOAUTH Authentication required.\r\n"))
        self.assertRaises(AuthenticationRefused, client.ping)

    def test_auth(self) -> None:
        """A password can be set later."""
        node = self.node(AUTH=b"+OK\r\n", PING=PONG)
        client = self.client(node)
        client.auth("late")
        self.assertEqual([[b"AUTH", b"late"], [b"PING"]], node.requests)

    def test_crowded(self) -> None:
        """A node without room for another client is passed over."""
        full = self.node(HELLO=b"-ERR max number of clients reached\r\n")
        for _ in range(8):
            self.assertEqual("PONG", self.client(full, self.node(PING=PONG)).ping())
        self.assertGreater(full.connections, 0)
        error = self.assertRaises(Refused, self.client(full, patience_s=0).ping)
        self.assertIn("max number of clients", str(error))

    def test_discovered(self) -> None:
        """When the only configured node is gone, the nodes it listed are used."""
        nodes = self.cluster(2, PING=PONG)
        client = self.client(nodes[0])
        client.ping()
        nodes[0].close()
        self.assertEqual("PONG", client.ping())
        self.assertEqual(nodes[1].address, str(client.address()))

    def test_leaving_at_once(self) -> None:
        """A node that reports itself as unusable is left for a better one."""
        nodes = self.cluster(2, PING=PONG)
        nodes[0].priorities[nodes[0].id] = 100
        client = self.client(nodes[0])
        client.ping()
        self.assertEqual(([], ["PING"]), (nodes[0].commands(), nodes[1].commands()))

    def test_leaving_alone(self) -> None:
        """When there is no better one, it still serves."""
        node = self.node(PING=PONG)
        node.priorities[node.id] = 100
        self.assertEqual("PONG", self.client(node).ping())

    def test_fork(self) -> None:
        """A child process opens connections of its own."""
        node = self.node(PING=PONG)
        client = self.client(node)
        client.ping()
        child = os.fork()
        if child == 0:
            os._exit(0 if client.ping() == "PONG" else 1)
        self.assertEqual(0, os.waitpid(child, 0)[1])
        client.ping()
        self.assertEqual(2, node.connections)


class NodeOfTheMomentTests(SessionTestCase):
    """Which node commands are about."""

    def test_after_a_request_at_one_node(self) -> None:
        """A job acknowledged where it came from, as a lost node's successor is not chosen yet:
        scans and the address are of that node then, on the connection that is open."""
        node = self.node(PING=PONG, ACKJOB=b":1\r\n", GETJOB=array(job()), QSCAN=_NO_QUEUES)
        client = self.client(node)
        delivered = client.dequeue("q")
        assert delivered is not None
        client._session._current = None
        self.assertTrue(delivered.ack())
        self.assertEqual(node.address, str(client.address()))
        client._session._current = None
        self.assertEqual([], list(client.queue_scan()))
        self.assertEqual(1, node.connections)

    def test_many_at_once(self) -> None:
        """Many jobs are looked at in one round trip; an error among the replies is no loss."""
        node = self.node(PING=PONG, SHOW=b"$-1\r\n")
        client = self.client(node)
        self.assertEqual([None] * 3, client.show_jobs(JOB_ID, JOB_ID, JOB_ID))
        self.assertEqual([], client.show_jobs())
        node.answer("SHOW", b"$-1\r\n", b"-BADID no ID\r\n", b"$-1\r\n")
        self.assertRaises(BadJobId, client.show_jobs, JOB_ID, "x", JOB_ID)
        self.assertEqual("PONG", client.ping())
        self.assertEqual(1, node.connections)


class RepeatingTests(SessionTestCase):
    """A lost connection, by what was asked."""

    def test_reading(self) -> None:
        """What only looks is asked at another node."""
        nodes = self.cluster(2, QLEN=[HANG_UP, b":7\r\n"])
        nodes[1].answer("QLEN", b":7\r\n")
        self.assertEqual(7, self.client(nodes[0], discover=True).queue_length("q"))

    def test_silence(self) -> None:
        """A node that does not answer in time is left."""
        nodes = self.cluster(2, QLEN=b":7\r\n")
        nodes[0].answer("QLEN", NO_ANSWER)
        self.assertEqual(7, self.client(nodes[0], timeout_s=0.1).queue_length("q"))

    def test_blocked_silence(self) -> None:
        """This includes a node that stops answering while a GETJOB waits there."""
        nodes = self.cluster(2, GETJOB=array(job()))
        nodes[0].answer("GETJOB", NO_ANSWER)
        jobs = self.client(nodes[0], timeout_s=0.1).get_jobs("q", timeout_ms=100)
        self.assertEqual([JOB_ID], [found.id for found in jobs])

    def test_add_lost(self) -> None:
        """ADDJOB is not repeated: the job may be there."""
        nodes = self.cluster(2, ADDJOB=HANG_UP)
        error = self.assertRaises(OutcomeUnknown, self.client(nodes[0]).add_job, "q", "b")
        self.assertEqual(("ADDJOB", nodes[0].address), (error.command, error.address))
        self.assertEqual([], nodes[1].requests)

    def test_add_repeated(self) -> None:
        """Unless the caller prefers two jobs to none."""
        nodes = self.cluster(2, ADDJOB=ADDED)
        nodes[0].answer("ADDJOB", HANG_UP)
        self.assertEqual(JOB_ID, self.client(nodes[0]).add_job("q", "b", retry_adds=True))

    def test_add_after_restart(self) -> None:
        """A connection that ended while it was idle is detected before anything is sent."""
        node = self.node(PING=PONG, ADDJOB=ADDED)
        client = self.client(node)
        client.ping()
        node.hang_up()
        self.assertEqual(JOB_ID, client.add_job("q", "b"))

    def test_changes_of_one_node(self) -> None:
        """What changes a node must not happen to another one."""
        for name in ("NACK", "PAUSE", "CLUSTER"):
            nodes = self.cluster(2, **{name: HANG_UP})
            client = self.client(nodes[0])
            call = {
                "NACK": lambda client: client.nack(JOB_ID),
                "PAUSE": lambda client: client.pause("q", "in"),
                "CLUSTER": lambda client: client.cluster_reset(),
            }[name]
            self.assertRaises(OutcomeUnknown, call, client)
            self.assertEqual([], nodes[1].requests)

    def test_leaving(self) -> None:
        """A refusal because the node leaves is a request to go elsewhere, also for ADDJOB."""
        nodes = self.cluster(2, ADDJOB=ADDED)
        nodes[0].answer("ADDJOB", LEAVING)
        client = self.client(nodes[0])
        self.assertEqual(JOB_ID, client.add_job("q", "b"))
        self.assertEqual(nodes[1].address, str(client.address()))

    def test_all_leave(self) -> None:
        """When there is nowhere to go, the refusal is what the caller gets."""
        client = self.client(self.node(GETJOB=LEAVING), patience_s=1)
        self.assertRaises(Leaving, client.get_jobs, "q")
        client = self.client(self.node(QLEN=b"-LOADING soon\r\n"), patience_s=1)
        self.assertRaises(Loading, client.queue_length, "q")

    def test_loading_passes(self) -> None:
        """A node that reads its log is asked again when it is alone."""
        node = self.node(QLEN=[b"-LOADING soon\r\n", b"-LOADING soon\r\n", b":3\r\n"])
        self.assertEqual(3, self.client(node).queue_length("q"))
        self.assertEqual(2, len(self.time.sleeps_s))

    def test_refused(self) -> None:
        """A plain refusal is final, and the connection stays."""
        node = self.node(ADDJOB=[b"-MAXLEN Queue is already longer\r\n", ADDED])
        client = self.client(node)
        error = self.assertRaises(QueueFull, client.add_job, "q", "b", maxlen=1)
        self.assertEqual(("MAXLEN", "ADDJOB"), (error.code, error.command))
        client.add_job("q", "b")
        self.assertEqual(1, node.connections)

    def test_refused_by_one_node(self) -> None:
        """The same for what only one node can answer: refusals use up no connections."""
        page, refused = array(bulk("5"), array(bulk("one"))), b"-DENIED not any more\r\n"
        node = self.node(QSCAN=[page, refused] * 3)
        client = self.client(node)
        for _ in range(3):
            self.assertRaises(Refused, list, client.queue_scan())
        self.assertEqual(1, node.connections)

    def test_option_text(self) -> None:
        """A refused option whose text begins like a code is not mistaken for that code."""
        node = self.node(ADDJOB=b"-ERR MAXLEN must be a positive number\r\n")
        error = self.assertRaises(Refused, self.client(node).add_job, "q", "b", maxlen=0)
        self.assertEqual("ERR", error.code)

    def test_broken(self) -> None:
        """What is no reply, and what is another command's, is named."""
        for reply in (b"hello\r\n", b"+text\r\n", array(), b":x\r\n", array(b"-LOADING\r\n")):
            error = self.assertRaises(
                BrokenReply, self.client(self.node(QLEN=reply)).queue_length, "q"
            )
            self.assertIn("QLEN", str(error))

    def test_scan_lost(self) -> None:
        """A cursor is of no use at another node."""
        page = array(bulk("5"), array(bulk("one")))
        nodes = self.cluster(2, QSCAN=[page, HANG_UP])
        names = self.client(nodes[0]).queue_scan()
        self.assertEqual("one", next(names))
        self.assertRaises(ScanInterrupted, next, names)
        self.assertEqual([], nodes[1].requests)


class FollowingTests(SessionTestCase):
    """Going where the jobs are made."""

    def foreign(self, number: int, share: float) -> bytes:
        """Jobs of the second node, and others, of the first."""
        ids = [JOB_ID] * number
        for place in range(int(number * share)):
            ids[place] = JOB_ID.replace("aaaaaaaa", "b" * 8)
        return array(*map(job, ids))

    def test_most_from_elsewhere(self) -> None:
        """A consumer goes to the node that most of its jobs come from."""
        nodes = self.cluster(2, GETJOB=self.foreign(100, 0.6))
        client = self.client(nodes[0])
        client.get_jobs("q", count=100)
        self.assertEqual(nodes[1].address, str(client.address()))

    def test_few_from_elsewhere(self) -> None:
        """It stays for the sake of a minority, or of unknown nodes."""
        for reply in (self.foreign(100, 0.4), self.foreign(99, 1.0)):
            nodes = self.cluster(2, GETJOB=reply)
            client = self.client(nodes[0])
            client.get_jobs("q", count=100)
            self.assertEqual(nodes[0].address, str(client.address()))
