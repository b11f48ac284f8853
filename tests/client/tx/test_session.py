"""Failover of the Twisted client, and requests that must not be repeated."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

from twisted.internet.defer import maybeDeferred

from disque_tx.client import (
    AuthenticationRefused,
    BrokenReply,
    CannotConnect,
    DisqueClient,
    Leaving,
    Loading,
    OutcomeUnknown,
    QueueFull,
    Refused,
    ScanInterrupted,
)
from disque_tx.client.errors import ConnectionLost
from disque_tx.client.tx import backoff
from tests.client.blocking.test_session import ADDED, LEAVING, PONG
from tests.client.lookups import NAME, Lookups
from tests.client.scripted import HANG_UP, JOB_ID, NO_ANSWER, NODE_IDS, array, bulk, job
from tests.client.tx.network import NetworkTestCase
from tests.client.tx.test_commands import listed
from tests.logged import warnings

NONE = b"*-1\r\n"


class ConnectingTests(NetworkTestCase):
    """How a client connects to a node."""

    def test_no_node(self) -> None:
        """The error is raised after patience_s, not earlier, and lists each node with the
        reason."""
        nodes = [self.node(), self.node()]
        for node in nodes:
            node.die()
        ping = self.client(*nodes, patience_s=5).ping()
        self.pass_s(4)
        self.assertNoResult(ping)
        error = self.failure(ping, CannotConnect, 6)
        self.assertEqual({node.address for node in nodes}, set(error.tried))
        self.assertIn("refused", error.tried[nodes[0].address])

    def test_backoff(self) -> None:
        """Attempts to connect to a dead node become less frequent, independent of the number of
        requests, but never stop."""
        node = self.node(PING=PONG)
        node.die()
        attempts: list[float] = []
        connect = self.network.connectTCP

        def counted(*words: Any, **options: Any) -> Any:
            attempts.append(self.network.seconds())
            return connect(*words, **options)

        self.network.connectTCP = counted  # type: ignore[method-assign]
        client = self.client(node)
        pings = [client.ping() for _ in range(50)]
        self.pass_s(10)
        gaps = [late - early for early, late in pairwise(attempts)]
        self.assertLess(len(attempts), 14)
        self.assertGreater(max(gaps), 10 * min(gaps))
        node.is_up = True
        self.pass_s(6)
        self.assertEqual(["PONG"] * 50, [self.successResultOf(ping) for ping in pings])

    def test_connect_timeout(self) -> None:
        """An attempt that is neither accepted nor refused ends after the usual timeout."""
        lost, node = self.node(), self.node(PING=PONG)
        self.network.swallowing.add(lost.port)
        pings = [self.client(lost, node, seed=seed, timeout_s=2).ping() for seed in range(6)]
        self.pass_s(1)
        self.assertTrue(any(not ping.called for ping in pings))
        self.pass_s(2)
        self.assertEqual(["PONG"] * 6, [self.successResultOf(ping) for ping in pings])

    def test_spread(self) -> None:
        """Clients are spread over all addresses."""
        nodes = [self.node(node_id, PING=PONG) for node_id in NODE_IDS]
        for seed in range(30):
            self.result(self.client(*nodes, discover=False, seed=seed).ping())
        self.assertTrue(all(node.connections for node in nodes))

    def test_hello_timeout(self) -> None:
        """A server that accepts the connection but never replies is abandoned after the timeout."""
        nodes = [self.node(HELLO=NO_ANSWER), self.node(PING=PONG)]
        pings = [self.client(*nodes, seed=seed, timeout_s=1).ping() for seed in range(6)]
        self.pass_s(1.5)
        self.assertEqual(["PONG"] * 6, [self.successResultOf(ping) for ping in pings])
        self.assertGreater(nodes[0].connections, 0)

    def test_not_disque(self) -> None:
        """A server with another reply to HELLO is not used."""
        for reply in (b"*2\r\n+server\r\n+other\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"):
            ping = self.client(self.node(HELLO=reply), patience_s=0).ping()
            self.assertIn("HELLO", str(self.failure(ping, CannotConnect)))

    def test_password_refused(self) -> None:
        """A refused password is not tried again, and not shown in errors."""
        for reply in (b"-ERR invalid password\r\n", b"-WRONGPASS no\r\n"):
            client = self.client(self.node(AUTH=reply), password="s3cret")
            error = self.failure(client.ping(), AuthenticationRefused)
            self.assertNotIn("s3cret", str(error) + repr(error) + repr(client))

    def test_password_corrected(self) -> None:
        """A node that refused the password is well: with the right one it is used at once."""
        node = self.node(AUTH=[b"-WRONGPASS no\r\n", b"+OK\r\n"], PING=PONG)
        client = self.client(node, password="wrong")
        self.failure(client.ping(), AuthenticationRefused)
        client._session.set_password("right")
        ping = client.ping()
        self.network.settle()
        self.assertEqual("PONG", self.successResultOf(ping))

    def test_password_missing(self) -> None:
        """A missing password is reported by the first request."""
        client = self.client(self.node(HELLO=b"-NOAUTH Authentication required.\r\n"))
        self.failure(client.ping(), AuthenticationRefused)

    def test_auth(self) -> None:
        """A password can be set later."""
        node = self.node(AUTH=b"+OK\r\n", PING=PONG)
        client = self.client(node)
        self.result(client.ping())
        self.assertIsNone(self.result(client.auth("late")))
        self.assertEqual([[b"PING"], [b"AUTH", b"late"], [b"PING"]], node.requests)
        self.assertEqual(1, len(node.wires))

    def test_max_clients(self) -> None:
        """A node that has reached its limit of clients is skipped."""
        full = self.node(HELLO=b"-ERR max number of clients reached\r\n")
        other = self.node(PING=PONG)
        for seed in range(8):
            self.assertEqual("PONG", self.result(self.client(full, other, seed=seed).ping()))
        self.assertGreater(full.connections, 0)
        error = self.failure(self.client(full, patience_s=0).ping(), Refused)
        self.assertIn("max number of clients", str(error))

    def test_discovered(self) -> None:
        """When the only configured node is down, the nodes it listed are used."""
        nodes = self.cluster(2, PING=PONG)
        client = self.client(nodes[0])
        self.result(client.ping())
        nodes[0].die()
        self.assertEqual("PONG", self.result(client.ping()))
        self.assertEqual(["PING"], nodes[1].commands())

    def test_many_move_at_once(self) -> None:
        """All requests made before the client learns of the low priority are sent to the better
        node, once each, and cancelled ones are not sent."""
        nodes = self.cluster(2, PING=PONG)
        nodes[0].priorities[nodes[0].id] = 100
        client = self.client(nodes[0])
        pings = [client.ping() for _ in range(5000)]
        for ping in pings[::2]:
            ping.addErrback(lambda _: None)
            ping.cancel()
        self.pass_s(1)
        self.assertEqual(["PONG"] * 2500, [self.successResultOf(ping) for ping in pings[1::2]])
        self.assertEqual([], nodes[0].commands())
        self.assertEqual(2500, len(nodes[1].commands()))

    def test_name(self) -> None:
        """A connection sends its name before any other request, also when the name is changed
        later; a node without that command still works."""
        for answer in (b"+OK\r\n", b"-ERR unknown command 'CLIENT'\r\n"):
            node = self.node(PING=PONG, CLIENT=answer)
            client = self.client(node)
            client.set_name("first")
            self.assertEqual("PONG", self.result(client.ping()))
            client.set_name("second")
            self.assertEqual("PONG", self.result(client.ping()))
            names = [words[2] for words in node.requests if words[0] == b"CLIENT"]
            self.assertEqual([b"first", b"second"], names)
            self.assertEqual(b"CLIENT", node.requests[0][0])

    def test_search_is_logged(self) -> None:
        """A search for a node is logged at once, with what is tried and for how long; only once for
        many requests, and again for the next search."""
        events = warnings(self)
        node = self.node(PING=PONG)
        client = self.client(node)
        for times in (1, 2):
            node.die()
            pings = [client.ping() for _ in range(10)]
            self.pass_s(1)
            self.assertEqual(times, len(events), events)
            self.assertIn("refused", events[-1])
            self.assertIn("for up to 20 s", events[-1])
            node.is_up = True
            self.pass_s(10)
            self.assertEqual(["PONG"] * 10, [self.successResultOf(ping) for ping in pings])

    def test_low_priority(self) -> None:
        """When a node lists itself with a low priority, the client moves to a better one."""
        nodes = self.cluster(2, PING=PONG)
        nodes[0].priorities[nodes[0].id] = 100
        self.result(self.client(nodes[0]).ping())
        self.assertEqual(([], ["PING"]), (nodes[0].commands(), nodes[1].commands()))

    def test_contradicting_priorities(self) -> None:
        """When two nodes each list the other as better, the client does not switch between them
        endlessly."""
        nodes = self.cluster(2, PING=PONG)
        for node in nodes:
            node.priorities[node.id] = 100
        self.assertEqual("PONG", self.result(self.client(nodes[0]).ping()))
        self.assertLess(sum(node.connections for node in nodes), 5)

    def test_invalid_addresses(self) -> None:
        """Invalid addresses in the reply of a node are ignored, and the node itself is used."""
        rows = [array(bulk(NODE_IDS[1]), bulk("no ip"), bulk("99999"), bulk("1"))] * 3000
        own = array(bulk(NODE_IDS[0]), bulk(""), bulk("7001"), bulk("1"))
        node = self.node(HELLO=array(b":1\r\n", bulk(NODE_IDS[0]), own, *rows), PING=PONG)
        client = self.client(node)
        self.assertEqual("PONG", self.result(client.ping()))
        self.assertEqual([node.address], [str(a) for a in self.result(client._session.addresses())])


class NameTests(NetworkTestCase):
    """A name stands for the nodes of a cluster."""

    def setUp(self) -> None:
        super().setUp()
        self.lookups = Lookups()
        self.patch(backoff, "resolve", self.lookups)
        self.patch(
            backoff, "deferToThreadPool", lambda _reactor, _pool, *call: maybeDeferred(*call)
        )
        self.network.getThreadPool = lambda: None  # type: ignore[attr-defined]

    def named(self, **options: Any) -> DisqueClient:
        """A client of the name."""
        client = DisqueClient([NAME], reactor=self.network, random=Random(1), **options)
        self._clients.append(client)
        return client

    def test_unknown(self) -> None:
        """A name that gives no address for ``patience_s`` is an error with the reason; a request
        that is cancelled meanwhile, or whose client is closed, does not wait."""
        client = self.named(patience_s=5)
        ping, cancelled = client.ping(), client.ping()
        self.pass_s(4)
        self.assertNoResult(ping)
        cancelled.cancel()
        error = self.failure(ping, CannotConnect, 2)
        self.assertEqual({NAME: "there is no such name"}, error.tried)
        self.failureResultOf(cancelled)
        waiting = client.ping()
        client.close()
        self.failure(waiting, ConnectionLost)

    def test_moved(self) -> None:
        """A request waits until the name gives an address; when all nodes have other addresses, the
        client finds them by the name."""
        before, after = self.node(PING=PONG), self.node(NODE_IDS[1], PING=PONG)
        client = self.named()
        ping = client.ping()
        self.pass_s(1)
        self.lookups.listed = [before.address]
        self.pass_s(2)
        self.successResultOf(ping)
        before.die()
        self.lookups.listed = [after.address]
        ping = client.ping()
        self.pass_s(3)
        self.successResultOf(ping)


class RepeatingTests(NetworkTestCase):
    """Repetition of requests after a lost connection, by command."""

    def test_reading(self) -> None:
        """Commands that only read are repeated on another node."""
        nodes = self.cluster(2, QLEN=b":7\r\n")
        nodes[0].answer("QLEN", HANG_UP)
        self.assertEqual(7, self.result(self.client(nodes[0]).queue_length("q")))

    def test_silence(self) -> None:
        """When a node does not reply before its timeout, and not earlier, the client moves to
        another one."""
        nodes = self.cluster(2, QLEN=b":7\r\n")
        nodes[0].answer("QLEN", NO_ANSWER)
        length = self.client(nodes[0], timeout_s=2).queue_length("q")
        self.pass_s(1.9)
        self.assertNoResult(length)
        self.pass_s(0.2)
        self.assertEqual(7, self.successResultOf(length))

    def test_silence_after_a_pause(self) -> None:
        """The time of a request begins when it is sent, not when the connection was used last."""
        node = self.node(QLEN=NO_ANSWER, PING=PONG)
        client = self.client(node, timeout_s=2, patience_s=0)
        self.result(client.ping())
        self.pass_s(60)
        length = client.queue_length("q")
        self.pass_s(1.9)
        self.assertNoResult(length)
        node.wires[-1].send(b":7\r\n")
        self.assertEqual(7, self.result(length))
        self.assertEqual(1, node.connections)

    def test_progress(self) -> None:
        """A slow reply does not shorten the time of the requests behind it."""
        node = self.node(ADDJOB=NO_ANSWER, PING=PONG)
        client = self.client(node, timeout_s=2)
        self.result(client.ping())
        added = [client.add_job("q", "b", timeout_ms=10_000) for _ in range(2)]
        self.pass_s(11)
        node.wires[-1].send(ADDED)
        self.assertEqual(JOB_ID, self.result(added[0]))
        self.pass_s(11)
        self.assertNoResult(added[1])
        self.assertIn("12.0 s", str(self.failure(added[1], OutcomeUnknown, 2)))

    def test_blocked_silence(self) -> None:
        """The same applies while a GETJOB waits on the unresponsive node."""
        nodes = self.cluster(2, GETJOB=array(job()))
        nodes[0].answer("GETJOB", NONE, NO_ANSWER)
        jobs = self.client(nodes[0], timeout_s=1).get_jobs("q", timeout_ms=3000)
        self.pass_s(3.5)
        self.assertNoResult(jobs)
        self.pass_s(1)
        self.assertEqual([JOB_ID], [found.id for found in self.successResultOf(jobs)])

    def test_add_lost(self) -> None:
        """ADDJOB is not repeated, because the job may have been added."""
        nodes = self.cluster(2, ADDJOB=HANG_UP)
        error = self.failure(self.client(nodes[0]).add_job("q", "b"), OutcomeUnknown)
        self.assertEqual(("ADDJOB", nodes[0].address), (error.command, error.address))
        self.assertEqual([], nodes[1].requests)

    def test_add_repeated(self) -> None:
        """ADDJOB is repeated if the caller prefers a duplicate to a lost job."""
        nodes = self.cluster(2, ADDJOB=ADDED)
        nodes[0].answer("ADDJOB", HANG_UP)
        client = self.client(nodes[0])
        self.assertEqual(JOB_ID, self.result(client.add_job("q", "b", retry_adds=True)))

    def test_add_unsent(self) -> None:
        """A job whose ADDJOB could not be sent is added on another node."""
        nodes = self.cluster(2, ADDJOB=ADDED, PING=PONG)
        client = self.client(nodes[0])
        self.result(client.ping())
        nodes[0].answer("HELLO", HANG_UP)
        self.assertEqual(JOB_ID, self.result(client.add_job("q", "b")))
        self.assertEqual(["ADDJOB"], nodes[1].commands())

    def test_add_after_restart(self) -> None:
        """A connection that was closed while idle is replaced by another one to the same node."""
        node = self.node(PING=PONG, ADDJOB=ADDED)
        client = self.client(node)
        self.result(client.ping())
        self.result(client.add_job("q", "b"))
        node.hang_up()
        self.assertEqual(JOB_ID, self.result(client.add_job("q", "b")))

    def test_changes_of_one_node(self) -> None:
        """Commands that change one node are not repeated on another one."""
        calls: dict[str, Callable[[DisqueClient], Any]] = {
            "NACK": lambda client: client.nack(JOB_ID),
            "PAUSE": lambda client: client.pause("q", "in"),
            "CLUSTER": lambda client: client.cluster_reset(),
        }
        for name, call in calls.items():
            nodes = self.cluster(2, **{name: HANG_UP})
            self.failure(call(self.client(nodes[0])), OutcomeUnknown)
            self.assertEqual([], nodes[1].requests)

    def test_many_under_way(self) -> None:
        """When a connection with many requests is lost, each is repeated or fails by its own
        rule."""
        nodes = self.cluster(2, QLEN=b":7\r\n", NACK=b":1\r\n", PING=PONG)
        nodes[0].answer("QLEN", NO_ANSWER)
        client = self.client(nodes[0])
        self.result(client.ping())
        lengths = [client.queue_length("q") for _ in range(5)]
        nack = client.nack(JOB_ID)
        self.network.settle()
        nodes[0].die()
        self.network.settle()
        self.assertEqual([7] * 5, [self.successResultOf(length) for length in lengths])
        self.failureResultOf(nack, OutcomeUnknown)
        self.assertEqual(["QLEN"] * 5, nodes[1].commands())

    def test_leaving(self) -> None:
        """A client moves to another node when its own is leaving, also for ADDJOB."""
        nodes = self.cluster(2, ADDJOB=ADDED, GETJOB=array(job()))
        nodes[0].answer("ADDJOB", LEAVING)
        nodes[0].answer("GETJOB", NONE, LEAVING)
        self.assertEqual(JOB_ID, self.result(self.client(nodes[0]).add_job("q", "b")))
        (delivered,) = self.result(self.client(nodes[0]).take("q"))
        self.assertEqual(nodes[1].address, str(delivered.address))
        self.assertEqual([], nodes[0].wires)

    def test_all_leave(self) -> None:
        """When all nodes are leaving or loading, the caller receives that error."""
        leaving = self.client(self.node(GETJOB=LEAVING), patience_s=1).get_jobs("q")
        self.failure(leaving, Leaving, 2)
        loading = self.client(self.node(QLEN=b"-LOADING soon\r\n"), patience_s=1)
        self.failure(loading.queue_length("q"), Loading, 2)

    def test_loading_ends(self) -> None:
        """When the only node is loading its log, the request is repeated until it is done."""
        node = self.node(QLEN=[b"-LOADING soon\r\n", b"-LOADING soon\r\n", b":3\r\n"])
        length = self.client(node).queue_length("q")
        self.pass_s(1)
        self.assertEqual(3, self.successResultOf(length))

    def test_refused(self) -> None:
        """Other error replies are final, and the connection stays open."""
        node = self.node(ADDJOB=[b"-MAXLEN Queue is already longer\r\n", ADDED])
        client = self.client(node)
        error = self.failure(client.add_job("q", "b", maxlen=1), QueueFull)
        self.assertEqual(("MAXLEN", "ADDJOB"), (error.code, error.command))
        self.result(client.add_job("q", "b"))
        self.assertEqual(1, node.connections)

    def test_broken(self) -> None:
        """A malformed reply, or one of the wrong type, raises an error that names the command, and
        closes the connection."""
        for reply in (b"hello\r\n", b"+text\r\n", array(), b":x\r\n", array(b"-LOADING\r\n")):
            node = self.node(QLEN=reply)
            error = self.failure(self.client(node).queue_length("q"), BrokenReply)
            self.assertIn(f"The answer of {node.address} to QLEN is not", str(error))
            self.network.settle()
            self.assertEqual([], node.wires)

    def test_unexpected_reply(self) -> None:
        """A reply without a request closes the connection, before it is mistaken for the next
        reply."""
        node = self.node(QLEN=b":1\r\n")
        client = self.client(node)
        self.result(client.queue_length("q"))
        node.wires[0].send(b":2\r\n")
        self.network.settle()
        self.assertEqual([], node.wires)
        self.assertEqual(1, self.result(client.queue_length("q")))

    def test_scan_lost(self) -> None:
        """A scan is not continued on another node, where its cursor is invalid."""
        page = array(bulk("5"), array(bulk("one")))
        nodes = self.cluster(2, QSCAN=[page, HANG_UP])
        self.failure(listed(self.client(nodes[0]).queue_scan()), ScanInterrupted)
        self.assertEqual([], nodes[1].requests)

    def test_delivering_node_lost(self) -> None:
        """When the node that delivered a job is down, requests about the job are sent to another;
        NACK only if it was not sent before."""
        nodes = self.cluster(2, GETJOB=array(job()), WORKING=b":5\r\n", NACK=HANG_UP)
        client = self.client(nodes[0])
        (delivered,) = self.result(client.take("q"))
        client._session.follow("b" * 8)
        self.assertEqual(5, self.result(delivered.working()))
        self.assertEqual(["GETJOB", "WORKING"], nodes[0].commands())
        self.failure(delivered.nack(), OutcomeUnknown)
        nodes[0].die()
        self.assertEqual(5, self.result(delivered.working()))
        self.assertEqual(["WORKING"], nodes[1].commands())


class ClosingTests(NetworkTestCase):
    """Closing a client, and using it again."""

    def test_under_way(self) -> None:
        """Every request, sent or queued, fails with an error that shows whether it was sent."""
        node = self.node(QLEN=NO_ANSWER, ADDJOB=NO_ANSWER, GETJOB=[NONE, NONE, NO_ANSWER])
        client = self.client(node, connections_max=1)
        takes = [client.take("q"), client.take("q")]
        self.network.settle()
        length, added = client.queue_length("q"), client.add_job("q", "b")
        self.network.settle()
        closed = client.close()
        self.network.settle()
        self.successResultOf(closed)
        self.failureResultOf(added, OutcomeUnknown)
        for lost in (length, *takes):
            self.assertIn("closed", str(self.failureResultOf(lost, ConnectionLost).value))

    def test_between_attempts(self) -> None:
        """A request that waits for its next attempt fails at once."""
        node = self.node()
        node.die()
        client = self.client(node)
        ping = client.ping()
        self.pass_s(1)
        client.close()
        self.failureResultOf(ping, ConnectionLost)
        self.assertEqual([], self.network.getDelayedCalls())

    def test_connecting(self) -> None:
        """A connection attempt does not delay closing."""
        node = self.node()
        self.network.swallowing.add(node.port)
        client = self.client(node)
        ping = client.ping()
        self.successResultOf(client.close())
        self.failureResultOf(ping, ConnectionLost)

    def test_again(self) -> None:
        """A later request opens new connections."""
        node = self.node(PING=PONG)
        client = self.client(node)
        self.result(client.ping())
        self.result(client.close())
        self.assertEqual([], node.wires)
        self.assertEqual("PONG", self.result(client.ping()))


class FollowingTests(NetworkTestCase):
    """Moving to the node where most jobs come from."""

    def commands_after(self, number: int, share: float) -> list[str]:
        """The requests to the first node, after it has delivered jobs of which this share was added
        on the second."""
        ids = [JOB_ID] * number
        for place in range(int(number * share)):
            ids[place] = JOB_ID.replace("aaaaaaaa", "b" * 8)
        nodes = self.cluster(2, GETJOB=array(*map(job, ids)), PING=PONG)
        client = self.client(nodes[0])
        self.result(client.get_jobs("q", count=100))
        self.result(client.ping())
        return nodes[0].commands()

    def test_most_from_elsewhere(self) -> None:
        """A consumer moves to the node where most of its jobs were added."""
        self.assertEqual(["GETJOB"], self.commands_after(100, 0.6))

    def test_few_from_elsewhere(self) -> None:
        """A consumer does not move because of a minority of jobs, or too few jobs."""
        self.assertEqual(["GETJOB", "PING"], self.commands_after(100, 0.4))
        self.assertEqual(["GETJOB", "PING"], self.commands_after(99, 1.0))

    def test_idle(self) -> None:
        """After moving, unused connections for waiting are closed."""
        nodes = self.cluster(2, PING=PONG)
        nodes[0].answer("GETJOB", NONE, array(job()))
        client = self.client(nodes[0])
        self.result(client.get_jobs("q"))
        self.assertEqual(2, len(nodes[0].wires))
        client._session.follow("b" * 8)
        self.result(client.ping())
        self.assertEqual((1, 1), (len(nodes[0].wires), len(nodes[1].wires)))
