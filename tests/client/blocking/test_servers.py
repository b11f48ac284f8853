"""Pipelined connections, and requests about jobs on several nodes."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from disque_tx.client.blocking.servers import _REQUEST_BYTES_MAX, PipelinedConnection, _portions
from disque_tx.client.errors import (
    AuthenticationRefused,
    BrokenReply,
    CannotConnect,
    ConnectionLost,
    Paused,
    Refused,
    TooLate,
    UnknownJob,
)
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import adding
from disque_tx.client.requests import encoding as requests
from tests.client.scripted import HANG_UP, NO_ANSWER, ScriptedNode, bulk
from tests.spark.nodes import GONE, IDS, NodesTestCase, address_of


class PipeTests(NodesTestCase):
    """One connection."""

    def connection(
        self, node: ScriptedNode, password: str | None = None, timeout_s: float = 5.0
    ) -> PipelinedConnection:
        """A connection that is closed at the end of the test."""
        pipe = PipelinedConnection(
            address_of(node), ConnectionOptions(password, timeout_s=timeout_s)
        )
        self.addCleanup(pipe.close)
        return pipe

    def test_in_order(self) -> None:
        """Replies, including errors, are assigned to requests in order, also when there are more
        requests than are sent at once."""
        node = self.node(ADDJOB=[bulk(IDS[0]), b"-PAUSED try later\r\n", bulk(IDS[1])])
        several = [adding.add_job("q", b"x" * 10_000) for _ in range(1200)]
        first, second, *others = self.connection(node).calls(several)
        self.assertEqual(IDS[0], first)
        self.assertIsInstance(second, Paused)
        self.assertEqual([IDS[1]] * 1198, others)
        self.assertEqual(1200, len(node.requests))

    @given(st.lists(st.integers(0, 600_000), max_size=30))
    def test_portions(self, sizes: list[int]) -> None:
        """Each portion is as large as allowed, also after large requests."""
        several = [adding.add_job("q", b"x" * size) for size in sizes]
        portions = list(_portions(several))
        self.assertEqual(several, [request for portion in portions for request, _ in portion])
        lengths = [sum(len(words) for _, words in portion) for portion in portions]
        for portion, length in zip(portions, lengths, strict=True):
            self.assertTrue(len(portion) == 1 or length <= _REQUEST_BYTES_MAX)
        for length, (_, behind) in zip(lengths, (p[0] for p in portions[1:]), strict=False):
            self.assertGreater(length + len(behind), _REQUEST_BYTES_MAX)

    def test_password(self) -> None:
        """The password is sent first; when it is wrong, nothing else is sent."""
        node = self.node(AUTH=[b"+OK\r\n", b"-ERR invalid password\r\n"], PING=b"+PONG\r\n")
        self.assertEqual("PONG", self.connection(node, "secret").call(requests.ping()))
        self.assertEqual(["AUTH", "PING"], node.commands())
        with self.assertRaises(AuthenticationRefused) as raised:
            self.connection(node, "secret")
        self.assertNotIn("secret", str(raised.exception))

    def test_closed_after_error(self) -> None:
        """A connection whose password is refused, that was silent, or whose reply is malformed is
        closed: nothing is kept open that nobody uses."""
        refused = self.node(AUTH=b"-ERR invalid password\r\n")
        self.assertRaises(AuthenticationRefused, self.connection, refused, "secret")
        refused.wait_for_end()
        for reply in (NO_ANSWER, b"HTTP/1.1 400\r\n", bulk("text")):
            node = self.node(QLEN=reply)
            pipe = self.connection(node, timeout_s=0.2)
            with contextlib.suppress(ConnectionLost, BrokenReply):
                pipe.call(requests.queue_length("q"))
            node.wait_for_end()
            self.assertEqual(-1, pipe._socket.fileno())

    def test_lost(self) -> None:
        """A lost connection, a timeout, and a node that is down are distinguished from an error
        reply."""
        for reply in (HANG_UP, NO_ANSWER):
            node = self.node(PING=reply)
            with self.assertRaises(ConnectionLost) as raised:
                self.connection(node, timeout_s=0.2).call(requests.ping())
            self.assertEqual(node.address, raised.exception.address)
        node.close()
        with self.assertRaises(ConnectionLost):
            self.connection(node)
        with self.assertRaises(Refused):
            self.connection(self.node()).call(requests.ping())

    def test_no_disque(self) -> None:
        """Malformed replies and replies of the wrong type are errors that name the server."""
        for reply in (b"HTTP/1.1 400\r\n", bulk("text")):
            node = self.node(QLEN=reply)
            with self.assertRaises(BrokenReply) as raised:
                self.connection(node).call(requests.queue_length("q"))
            self.assertIn(f"The answer of {node.address} to QLEN is not", str(raised.exception))


class ServersTests(NodesTestCase):
    """Nodes that have jobs, and nodes that are down."""

    def test_other_holder(self) -> None:
        """Only jobs that the delivering node does not know are requested from the others."""
        home = self.node(WORKING=[b":60\r\n", GONE, b":60\r\n"])
        other = self.node(WORKING=b":30\r\n")
        answers = self.servers(other, home).ask_holders(
            address_of(home),
            IDS[:3],
            requests.working,
            lambda answer: isinstance(answer, UnknownJob),
        )
        self.assertEqual([60, 30, 60], answers)
        self.assertEqual([[b"WORKING", IDS[1].encode()]], other.requests)

    def test_node_down(self) -> None:
        """When a node is down, the others are asked; when none knows the job, the first error
        counts."""
        home = self.node()
        home.close()
        servers = self.servers(home, self.node(WORKING=[b":30\r\n", GONE]))
        answers = servers.ask_holders(
            address_of(home),
            IDS[:2],
            requests.working,
            lambda answer: isinstance(answer, UnknownJob),
        )
        self.assertEqual(30, answers[0])
        self.assertIsInstance(answers[1], ConnectionLost)

    def test_postponed(self) -> None:
        """Many jobs are postponed at once: each answer belongs to its job, jobs that a node does
        not know are looked for at the others, and refusals are told."""
        home = self.node(WORKING=[b":60\r\n"] * 599 + [GONE, b"-TOOLATE Half of it is over.\r\n"])
        other = self.node(WORKING=b":30\r\n")
        ids = [f"{number:x}{IDS[0]}" for number in range(601)]
        answers = self.servers(home, other).postpone(address_of(home), ids)
        self.assertEqual([60] * 599 + [30], answers[:-1])
        self.assertIsInstance(answers[-1], TooLate)
        self.assertEqual([[b"WORKING", job_id.encode()] for job_id in ids], home.requests)
        self.assertEqual([[b"WORKING", ids[599].encode()]], other.requests)

    def test_postponed_alike(self) -> None:
        """Jobs whose IDs have the same size, as they do, are told apart; an answer that is not a
        number is an error of the node."""
        home = self.node(WORKING=[b":60\r\n", b":70\r\n", b":80\r\n", b"+OK\r\n"])
        servers = self.servers(home)
        self.assertEqual([60, 70], servers.postpone(address_of(home), IDS[:2]))
        self.assertEqual([[b"WORKING", job_id.encode()] for job_id in IDS[:2]], home.requests)
        self.assertRaises(BrokenReply, servers.postpone, address_of(home), IDS[:2])

    def test_idle_connection(self) -> None:
        """A connection that the node closed meanwhile is opened again."""
        node = self.node(PING=[b"+PONG\r\n", HANG_UP, b"+PONG\r\n"])
        servers = self.servers(node)
        for _ in range(2):
            self.assertEqual(["PONG"], servers.ask(address_of(node), [requests.ping()]))
        self.assertEqual(2, node.connections)

    def test_once(self) -> None:
        """Requests that must not be repeated are not, when the connection is lost between them:
        each without an answer says that it may have been executed. The next ones go on."""
        node = self.node(ADDJOB=[bulk(IDS[0]), HANG_UP, bulk(IDS[1])])
        servers = self.servers(node)
        several = [adding.add_job("q", b"x") for _ in range(4)]
        first, *lost = servers.ask_once(address_of(node), several)
        self.assertEqual(IDS[0], first)
        for answer in lost:
            assert isinstance(answer, ConnectionLost)
            self.assertTrue(answer.sent)
        self.assertEqual(3, len(lost))
        self.assertEqual([IDS[1]], servers.ask_once(address_of(node), several[:1]))
        self.assertEqual(2, node.connections)

    def test_once_unsent(self) -> None:
        """Of a node that cannot be reached the answers say that nothing was sent, so that the jobs
        may be added at another one."""
        node = self.node()
        node.close()
        servers = self.servers(node)
        for answer in servers.ask_once(address_of(node), [requests.ping()] * 2):
            assert isinstance(answer, ConnectionLost)
            self.assertFalse(answer.sent)
        self.assertEqual({}, servers._connections)

    def test_asked_again_once(self) -> None:
        """A request is repeated on a new connection, since the old one may have been idle for too
        long; if that is lost as well, that is the answer."""
        node = self.node(PING=[b"+PONG\r\n", HANG_UP])
        servers = self.servers(node)
        servers.ask(address_of(node), [requests.ping()])
        answers = servers.ask(address_of(node), [requests.ping()] * 2)
        self.assertEqual([ConnectionLost] * 2, [type(one) for one in answers])
        self.assertEqual((2, {}), (node.connections, servers._connections))

    def test_closed(self) -> None:
        """Closing closes every connection; they are opened again when they are needed."""
        nodes = self.cluster(3, PING=b"+PONG\r\n")
        servers = self.servers(*nodes)
        for _ in range(2):
            for node in nodes:
                self.assertEqual(["PONG"], servers.ask(address_of(node), [requests.ping()]))
            servers.close()
            for node in nodes:
                node.wait_for_end()
        self.assertEqual([2, 2, 2], [node.connections for node in nodes])

    def test_any(self) -> None:
        """Tasks use different nodes, and another one when theirs is down."""
        nodes = self.cluster(3)
        servers = self.servers(*nodes)
        self.assertEqual(address_of(nodes[1]), servers.any_connection(4).address)
        servers.close()
        nodes[1].close()
        self.assertEqual(address_of(nodes[2]), servers.any_connection(4).address)
        servers.close()
        nodes[0].close()
        nodes[2].close()
        with self.assertRaises(CannotConnect):
            servers.any_connection(0)
