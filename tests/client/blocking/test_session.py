"""Failover of the blocking client, and requests that must not be repeated."""

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
from disque_tx.client.blocking import session
from tests.client.lookups import NAME, Lookups
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
    """Starts scripted nodes and clients for them."""

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
    """How a client connects to a node."""

    def test_no_node(self) -> None:
        """The error lists each node with the reason; the backoff grows with each round."""
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
        """A malformed host name is treated as an address that failed."""
        self.assertRaises(CannotConnect, self.client("a..b:1", patience_s=0).ping)

    def test_one_of_many(self) -> None:
        """One reachable address is enough."""
        gone = [self.node() for _ in range(3)]
        for node in gone:
            node.close()
        self.assertEqual("PONG", self.client(*gone, self.node(PING=PONG)).ping())

    def test_spread(self) -> None:
        """Clients are spread over all addresses."""
        nodes = [self.node(node_id, PING=PONG) for node_id in NODE_IDS]
        for _ in range(30):
            self.client(*nodes, discover=False).ping()
        self.assertTrue(all(node.connections for node in nodes))

    def test_not_disque(self) -> None:
        """A server with another reply to HELLO is not used."""
        client = self.client(self.node(HELLO=b"%1\r\n+server\r\n+other\r\n"), patience_s=1)
        error = self.assertRaises(CannotConnect, client.ping)
        self.assertIn("HELLO", str(error))

    def test_password_refused(self) -> None:
        """A refused password is not tried again, and not shown in errors."""
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

    def test_max_clients(self) -> None:
        """A node that has reached its limit of clients is skipped."""
        full = self.node(HELLO=b"-ERR max number of clients reached\r\n")
        for _ in range(8):
            self.assertEqual("PONG", self.client(full, self.node(PING=PONG)).ping())
        self.assertGreater(full.connections, 0)
        error = self.assertRaises(Refused, self.client(full, patience_s=0).ping)
        self.assertIn("max number of clients", str(error))

    def test_discovered(self) -> None:
        """When the only configured node is down, the nodes it listed are used."""
        nodes = self.cluster(2, PING=PONG)
        client = self.client(nodes[0])
        client.ping()
        nodes[0].close()
        self.assertEqual("PONG", client.ping())
        self.assertEqual(nodes[1].address, str(client.address()))

    def test_low_priority(self) -> None:
        """When a node lists itself with a low priority, the client moves to a better one."""
        nodes = self.cluster(2, PING=PONG)
        nodes[0].priorities[nodes[0].id] = 100
        client = self.client(nodes[0])
        client.ping()
        self.assertEqual(([], ["PING"]), (nodes[0].commands(), nodes[1].commands()))

    def test_low_priority_alone(self) -> None:
        """A node with a low priority is used when there is no better one."""
        node = self.node(PING=PONG)
        node.priorities[node.id] = 100
        self.assertEqual("PONG", self.client(node).ping())

    def test_fork(self) -> None:
        """A child process opens its own connections."""
        node = self.node(PING=PONG)
        client = self.client(node)
        client.ping()
        child = os.fork()
        if child == 0:
            os._exit(0 if client.ping() == "PONG" else 1)
        self.assertEqual(0, os.waitpid(child, 0)[1])
        client.ping()
        self.assertEqual(2, node.connections)


class NameTests(SessionTestCase):
    """A name stands for the nodes of a cluster."""

    def setUp(self) -> None:
        super().setUp()
        self.lookups = Lookups()
        self.patch(session, "resolve", self.lookups)

    def test_unknown(self) -> None:
        """A name that gives no address for ``patience_s`` is an error with the reason; one that
        gives some meanwhile is used."""
        client = self.client(NAME, patience_s=5)
        error = self.assertRaises(CannotConnect, client.ping)
        self.assertEqual({NAME: "there is no such name"}, error.tried)
        self.assertTrue(5 <= self.time.s - 1000 < 6)
        self.assertTrue(4 <= self.lookups.count <= 7)
        node = self.node(PING=PONG)
        later = self.client(NAME, patience_s=5)
        self.patch(self.time, "sleep", lambda seconds: None)
        self.lookups.listed = [node.address]
        later.ping()

    def test_moved(self) -> None:
        """When all nodes have other addresses, the client finds them by the name."""
        before, after = self.node(PING=PONG), self.node(NODE_IDS[1], PING=PONG)
        self.lookups.listed = [before.address]
        client = self.client(NAME)
        client.ping()
        before.close()
        self.lookups.listed = [after.address]
        client.ping()
        self.assertEqual(after.address, str(client.address()))

    def test_new_nodes(self) -> None:
        """Nodes that the name does not list are used if the cluster has them."""
        first, second = self.cluster(2, PING=PONG)
        self.lookups.listed = [first.address]
        client = self.client(NAME)
        client.ping()
        first.close()
        client.ping()
        self.assertEqual(second.address, str(client.address()))


class CurrentNodeTests(SessionTestCase):
    """The node to which commands are sent."""

    def test_after_a_request_at_one_node(self) -> None:
        """After a request to the node that delivered a job, that node becomes the current one, with
        its open connection, if there was none."""
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
        """Many jobs are looked up in one round trip; after an error among the replies the
        connection stays usable."""
        node = self.node(PING=PONG, SHOW=b"$-1\r\n")
        client = self.client(node)
        self.assertEqual([None] * 3, client.show_jobs(JOB_ID, JOB_ID, JOB_ID))
        self.assertEqual([], client.show_jobs())
        node.answer("SHOW", b"$-1\r\n", b"-BADID no ID\r\n", b"$-1\r\n")
        self.assertRaises(BadJobId, client.show_jobs, JOB_ID, "x", JOB_ID)
        self.assertEqual("PONG", client.ping())
        self.assertEqual(1, node.connections)


class RepeatingTests(SessionTestCase):
    """Repetition of requests after a lost connection, by command."""

    def test_reading(self) -> None:
        """Commands that only read are repeated on another node."""
        nodes = self.cluster(2, QLEN=[HANG_UP, b":7\r\n"])
        nodes[1].answer("QLEN", b":7\r\n")
        self.assertEqual(7, self.client(nodes[0], discover=True).queue_length("q"))

    def test_silence(self) -> None:
        """When a node does not reply in time, the client moves to another one."""
        nodes = self.cluster(2, QLEN=b":7\r\n")
        nodes[0].answer("QLEN", NO_ANSWER)
        self.assertEqual(7, self.client(nodes[0], timeout_s=0.1).queue_length("q"))

    def test_blocked_silence(self) -> None:
        """The same applies while a GETJOB waits on the unresponsive node."""
        nodes = self.cluster(2, GETJOB=array(job()))
        nodes[0].answer("GETJOB", NO_ANSWER)
        jobs = self.client(nodes[0], timeout_s=0.1).get_jobs("q", timeout_ms=100)
        self.assertEqual([JOB_ID], [found.id for found in jobs])

    def test_add_lost(self) -> None:
        """ADDJOB is not repeated, because the job may have been added."""
        nodes = self.cluster(2, ADDJOB=HANG_UP)
        error = self.assertRaises(OutcomeUnknown, self.client(nodes[0]).add_job, "q", "b")
        self.assertEqual(("ADDJOB", nodes[0].address), (error.command, error.address))
        self.assertEqual([], nodes[1].requests)

    def test_add_repeated(self) -> None:
        """ADDJOB is repeated if the caller prefers a duplicate to a lost job."""
        nodes = self.cluster(2, ADDJOB=ADDED)
        nodes[0].answer("ADDJOB", HANG_UP)
        self.assertEqual(JOB_ID, self.client(nodes[0]).add_job("q", "b", retry_adds=True))

    def test_add_after_restart(self) -> None:
        """A connection that was closed while idle is detected before a request is sent."""
        node = self.node(PING=PONG, ADDJOB=ADDED)
        client = self.client(node)
        client.ping()
        node.hang_up()
        self.assertEqual(JOB_ID, client.add_job("q", "b"))

    def test_changes_of_one_node(self) -> None:
        """Commands that change one node are not repeated on another one."""
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
        """A client moves to another node when its own is leaving, also for ADDJOB."""
        nodes = self.cluster(2, ADDJOB=ADDED)
        nodes[0].answer("ADDJOB", LEAVING)
        client = self.client(nodes[0])
        self.assertEqual(JOB_ID, client.add_job("q", "b"))
        self.assertEqual(nodes[1].address, str(client.address()))
        nodes[0].wait_for_end()  # it need not wait for clients that are not coming back

    def test_all_leave(self) -> None:
        """When all nodes are leaving or loading, the caller receives that error."""
        client = self.client(self.node(GETJOB=LEAVING), patience_s=1)
        self.assertRaises(Leaving, client.get_jobs, "q")
        client = self.client(self.node(QLEN=b"-LOADING soon\r\n"), patience_s=1)
        self.assertRaises(Loading, client.queue_length, "q")

    def test_loading_ends(self) -> None:
        """When the only node is loading its log, the request is repeated until it is done."""
        node = self.node(QLEN=[b"-LOADING soon\r\n", b"-LOADING soon\r\n", b":3\r\n"])
        self.assertEqual(3, self.client(node).queue_length("q"))
        self.assertEqual(2, len(self.time.sleeps_s))

    def test_refused(self) -> None:
        """Other error replies are final, and the connection stays open."""
        node = self.node(ADDJOB=[b"-MAXLEN Queue is already longer\r\n", ADDED])
        client = self.client(node)
        error = self.assertRaises(QueueFull, client.add_job, "q", "b", maxlen=1)
        self.assertEqual(("MAXLEN", "ADDJOB"), (error.code, error.command))
        client.add_job("q", "b")
        self.assertEqual(1, node.connections)

    def test_refused_by_one_node(self) -> None:
        """Error replies to requests for one node leave the connection open, too."""
        page, refused = array(bulk("5"), array(bulk("one"))), b"-DENIED not any more\r\n"
        node = self.node(QSCAN=[page, refused] * 3)
        client = self.client(node)
        for _ in range(3):
            self.assertRaises(Refused, list, client.queue_scan())
        self.assertEqual(1, node.connections)

    def test_option_text(self) -> None:
        """An error text that begins with the name of another code is not mistaken for that code."""
        node = self.node(ADDJOB=b"-ERR MAXLEN must be a positive number\r\n")
        error = self.assertRaises(Refused, self.client(node).add_job, "q", "b", maxlen=0)
        self.assertEqual("ERR", error.code)

    def test_broken(self) -> None:
        """A malformed reply, or one of the wrong type, raises an error that names the command."""
        for reply in (b"hello\r\n", b"+text\r\n", array(), b":x\r\n", array(b"-LOADING\r\n")):
            node = self.node(QLEN=reply)
            error = self.assertRaises(BrokenReply, self.client(node).queue_length, "q")
            self.assertIn(f"The answer of {node.address} to QLEN is not", str(error))

    def test_scan_lost(self) -> None:
        """A scan is not continued on another node, where its cursor is invalid."""
        page = array(bulk("5"), array(bulk("one")))
        nodes = self.cluster(2, QSCAN=[page, HANG_UP])
        names = self.client(nodes[0]).queue_scan()
        self.assertEqual("one", next(names))
        self.assertRaises(ScanInterrupted, next, names)
        self.assertEqual([], nodes[1].requests)


class FollowingTests(SessionTestCase):
    """Moving to the node where most jobs come from."""

    def jobs_of_other_node(self, number: int, share: float) -> bytes:
        """A reply of the first node with jobs of which this share was added on the second."""
        ids = [JOB_ID] * number
        for place in range(int(number * share)):
            ids[place] = JOB_ID.replace("aaaaaaaa", "b" * 8)
        return array(*map(job, ids))

    def test_most_from_elsewhere(self) -> None:
        """A consumer moves to the node where most of its jobs were added."""
        nodes = self.cluster(2, GETJOB=self.jobs_of_other_node(100, 0.6))
        client = self.client(nodes[0])
        client.get_jobs("q", count=100)
        self.assertEqual(nodes[1].address, str(client.address()))

    def test_few_from_elsewhere(self) -> None:
        """A consumer does not move because of a minority of jobs, or too few jobs."""
        for reply in (self.jobs_of_other_node(100, 0.4), self.jobs_of_other_node(99, 1.0)):
            nodes = self.cluster(2, GETJOB=reply)
            client = self.client(nodes[0])
            client.get_jobs("q", count=100)
            self.assertEqual(nodes[0].address, str(client.address()))
