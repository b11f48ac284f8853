"""Connections to the nodes of a cluster."""

from __future__ import annotations

import os
import signal
from types import FrameType

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.connection import explained
from disque_tx.cli.options import parse
from disque_tx.cli.verbs.base.members import Members, NobodyAnswers, listed
from disque_tx.cli.verbs.base.survey import place
from disque_tx.client.blocking import Disque
from disque_tx.client.values import ClusterNode, Hello, NodeInfo
from tests.acceptance.daemon import free_port
from tests.cli.double import ScriptedServer

#: The reply to HELLO of a node that is alone.
HELLO = b"*3\r\n:1\r\n$1\r\na\r\n*4\r\n$1\r\na\r\n$0\r\n\r\n$4\r\n7711\r\n$1\r\n1\r\n"


class MembersTests(SynchronousTestCase):
    """``Members``."""

    def members(self, *addresses: str) -> Members:
        """The members with these addresses."""
        members = Members(parse([], {}), addresses or ("127.0.0.1:1",))
        self.addCleanup(members.close)
        return members

    def test_some_are_silent(self) -> None:
        """Replies of reachable nodes are returned; for the others, the reason is reported."""
        server = ScriptedServer(HELLO, b"+PONG\r\n")
        self.addCleanup(server.stop)
        here, dead, odd = str(server.address), f"127.0.0.1:{free_port()}", "no address:x"
        found = self.members().ask((here, dead, odd), lambda node: node.ping())
        self.assertEqual({here: "PONG"}, found.of)
        self.assertIn("refused", found.silent[dead])
        self.assertIn("is not the address of a node", found.silent[odd])

    def test_no_node_answers(self) -> None:
        """When no node answers, the error contains the reason for each."""
        address = f"127.0.0.1:{free_port()}"
        members = self.members()
        error = self.assertRaises(NobodyAnswers, members.ask, [address], lambda node: node.ping())
        self.assertIn(address, str(error))
        self.assertIn("refused", str(error))

    def test_signal(self) -> None:
        """A signal while nodes are asked takes effect when all have been: an interruption between
        the locks of threads would leave them waiting for each other."""
        asked: list[Disque] = []

        def question(node: Disque) -> None:
            if not asked:
                os.kill(os.getpid(), signal.SIGINT)
            asked.append(node)

        def interrupted(number: int, frame: FrameType | None) -> None:
            raise KeyboardInterrupt(len(asked))

        before = signal.signal(signal.SIGINT, interrupted)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        addresses = [f"127.0.0.1:{port}" for port in range(1, 9)]
        error = self.assertRaises(KeyboardInterrupt, self.members().ask, addresses, question)
        self.assertEqual((8,), error.args)

    def test_other_nodes_than_the_options(self) -> None:
        """A verb can use other nodes than the options give."""
        self.assertEqual(("a:1",), self.members("a:1").nodes)


class AddressTests(SynchronousTestCase):
    """Addresses in the replies of nodes."""

    def test_hello(self) -> None:
        """The node that replies has the address it was reached at; nodes without an address are
        left out."""
        nodes = (
            NodeInfo("a", "10.0.0.1", 7711, 1),
            NodeInfo("b", "::1", 7712, 1),
            NodeInfo("c", "", 0, 1),
        )
        self.assertEqual(["name:7711", "[::1]:7712"], listed(Hello("a", nodes), "name:7711"))

    def test_cluster_nodes(self) -> None:
        """IPv6 addresses in CLUSTER NODES have no brackets."""
        for given, expected in (("::1:7711", "[::1]:7711"), ("10.0.0.1:7711", "10.0.0.1:7711")):
            node = ClusterNode("a", given, frozenset(), 0, 0, True)
            self.assertEqual(expected, place(node))


class HintTests(SynchronousTestCase):
    """``explained``."""

    def test_known(self) -> None:
        """A message of the TLS library gets a hint that helps."""
        shown = explained("[SSL: WRONG_VERSION_NUMBER] wrong version number.")
        self.assertTrue(
            shown.endswith(
                "version number. The server does not use TLS on this port; try without --tls."
            )
        )

    def test_unknown(self) -> None:
        """Other messages stay unchanged."""
        self.assertEqual("Connection refused", explained("Connection refused"))
