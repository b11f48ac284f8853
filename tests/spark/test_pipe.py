"""Many requests at once, on scripted nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disque_tx.client import requests
from disque_tx.client.errors import (
    AuthenticationRefused,
    BrokenReply,
    ConnectionLost,
    Paused,
    Refused,
)
from disque_tx.client.options import ConnectionOptions
from disque_tx.spark.pipe import _REQUEST_BYTES_MAX, Pipe, _portions
from tests.client.scripted import HANG_UP, NO_ANSWER, ScriptedNode, bulk
from tests.spark.nodes import IDS, NodesTestCase, at


class PipeTests(NodesTestCase):
    """One connection."""

    def pipe(self, node: ScriptedNode, password: str | None = None, timeout_s: float = 5.0) -> Pipe:
        """A connection that ends with the test."""
        pipe = Pipe(at(node), ConnectionOptions(password, timeout_s=timeout_s))
        self.addCleanup(pipe.close)
        return pipe

    def test_in_order(self) -> None:
        """Replies belong to requests by their order, refusals among them, also when there are more
        than are on their way at once."""
        node = self.node(ADDJOB=[bulk(IDS[0]), b"-PAUSED try later\r\n", bulk(IDS[1])])
        several = [requests.add_job("q", b"x" * 10_000) for _ in range(1200)]
        first, second, *others = self.pipe(node).calls(several)
        self.assertEqual(IDS[0], first)
        self.assertIsInstance(second, Paused)
        self.assertEqual([IDS[1]] * 1198, others)
        self.assertEqual(1200, len(node.requests))

    @given(st.lists(st.integers(0, 600_000), max_size=30))
    def test_portions(self, sizes: list[int]) -> None:
        """As much as may be on its way at once, and never less, after large requests, too."""
        several = [requests.add_job("q", b"x" * size) for size in sizes]
        portions = list(_portions(several))
        self.assertEqual(several, [request for portion in portions for request, _ in portion])
        lengths = [sum(len(words) for _, words in portion) for portion in portions]
        for portion, length in zip(portions, lengths, strict=True):
            self.assertTrue(len(portion) == 1 or length <= _REQUEST_BYTES_MAX)
        for length, (_, behind) in zip(lengths, (p[0] for p in portions[1:]), strict=False):
            self.assertGreater(length + len(behind), _REQUEST_BYTES_MAX)

    def test_password(self) -> None:
        """A password is said first, and when it is wrong nothing else is."""
        node = self.node(AUTH=[b"+OK\r\n", b"-ERR invalid password\r\n"], PING=b"+PONG\r\n")
        self.assertEqual("PONG", self.pipe(node, "secret").call(requests.ping()))
        self.assertEqual(["AUTH", "PING"], node.commands())
        with self.assertRaises(AuthenticationRefused) as raised:
            self.pipe(node, "secret")
        self.assertNotIn("secret", str(raised.exception))

    def test_lost(self) -> None:
        """A node that hangs up, says nothing, or is not there is told apart from one that
        refuses."""
        for said in (HANG_UP, NO_ANSWER):
            node = self.node(PING=said)
            with self.assertRaises(ConnectionLost) as raised:
                self.pipe(node, timeout_s=0.2).call(requests.ping())
            self.assertEqual(node.address, raised.exception.address)
        node.close()
        with self.assertRaises(ConnectionLost):
            self.pipe(node)
        with self.assertRaises(Refused):
            self.pipe(self.node()).call(requests.ping())

    def test_no_disque(self) -> None:
        """What is no reply ends the connection, and so does one of another kind."""
        for said in (b"HTTP/1.1 400\r\n", bulk("text")):
            with self.assertRaises(BrokenReply):
                self.pipe(self.node(QLEN=said)).call(requests.queue_length("q"))
