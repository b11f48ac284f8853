"""The addresses of nodes, and how nodes meet (cluster protocol, sections 8.3 and 9)."""

from __future__ import annotations

import socket

from tests.acceptance.cluster.fleet import sees
from tests.acceptance.cluster.node import Node
from tests.acceptance.cluster.proxy import Proxy
from tests.acceptance.daemon import DaemonTestCase, free_port, wait_for


class PairTestCase(DaemonTestCase):
    """Two nodes that do not know each other yet."""

    def node(self, *directives: str, ip: str = "127.0.0.1") -> Node:
        """A running node."""
        node = Node(self.folder(), ip, *directives)
        self.addCleanup(node.discard)
        node.boot()
        return node

    def join(self, one: Node, other: Node, *address: str | int) -> None:
        """Let one node meet the other, and check that both can copy jobs to each other."""
        self.assertEqual("OK", one.call("CLUSTER", "MEET", *address))
        self.wait_until_joined(one, other)
        self.assertEqual(40, len(one.add("q", replicate=2)))

    def wait_until_joined(self, one: Node, other: Node) -> None:
        """Wait until both know each other, and no other node."""
        ids = {one.id, other.id}
        wait_for(lambda: sees(one, ids) and sees(other, ids), "they know each other")

    def address(self, one: Node, other: Node) -> list[str]:
        """The address of the other node that clients of the first one receive."""
        rows = one.call("HELLO")[2:]
        (row,) = (row for row in rows if row[0].decode() == other.id)
        return [part.decode() for part in row[1:]]


class AddressTests(PairTestCase):
    """CLUSTER MEET and FORGET, and the addresses that other nodes receive."""

    def test_host_name(self) -> None:
        """Operators can give host names; other nodes receive the address."""
        one, other = self.node(), self.node()
        self.join(one, other, "localhost", other.port)
        self.assertEqual(["127.0.0.1", str(other.port), "1"], self.address(one, other))

    def test_ipv6(self) -> None:
        """A cluster can use IPv6."""
        try:
            with socket.socket(socket.AF_INET6) as sock:
                sock.bind(("::1", 0))
        except OSError:
            self.skipTest("this machine has no ::1")
        one, other = self.node(ip="::1"), self.node(ip="::1")
        self.join(one, other, "::1", other.port)
        self.assertEqual(["::1", str(other.port), "1"], self.address(one, other))
        self.assertEqual(["::1", str(one.port), "1"], self.address(other, one))

    def test_own_address(self) -> None:
        """HELLO never shows an empty address for the node that replies."""
        node = self.node(ip="127.0.0.2")
        self.assertEqual(["127.0.0.2", str(node.port), "1"], self.address(node, node))

    def test_announced(self) -> None:
        """A node behind a port mapping announces its public address, and other nodes connect to it
        there."""
        other = self.node()
        proxy = Proxy()
        self.addCleanup(proxy.close)
        one = Node(
            self.folder(),
            "127.0.0.1",
            "cluster-announce-ip 127.0.0.9",
            "cluster-announce-port 7799",
        )
        self.addCleanup(one.discard)
        one.announce(proxy.front(one.ip, one.bus_port, outside="127.0.0.9"))
        one.boot()
        self.join(one, other, other.ip, other.port)
        self.assertEqual(["127.0.0.9", "7799", "1"], self.address(other, one))
        self.assertEqual(["127.0.0.9", "7799", "1"], self.address(one, one))

    def test_bus_port(self) -> None:
        """The bus may use another port, which MEET can give; it survives a restart."""
        one = self.node()
        port = free_port()
        other = self.node(f"cluster-bus-port {port}")
        self.join(one, other, other.ip, other.port, port)
        one.kill()
        one.boot()
        self.wait_until_joined(one, other)

    def test_forgotten(self) -> None:
        """A node that was forgotten by all others stays out until it meets one again."""
        one, other = self.node(), self.node()
        self.join(one, other, other.ip, other.port)
        self.assertEqual("OK", one.call("CLUSTER", "FORGET", other.id))
        self.assertEqual({one.id}, set(one.table()))
        self.assertEqual("OK", other.call("CLUSTER", "FORGET", one.id))
        self.assertEqual({other.id}, set(other.table()))
        self.join(other, one, one.ip, one.port)


class NodesFileTests(PairTestCase):
    """What a node knows about others after a restart."""

    def setUp(self) -> None:
        """Start two nodes that know each other."""
        self.one, self.other = self.node(), self.node()
        self.join(self.one, self.other, self.other.ip, self.other.port)

    def restart(self, text: bytes) -> str:
        """Restart the first node with this nodes file; returns what it logs."""
        self.one.kill()
        before = self.one.log()
        (self.one.folder / "nodes.conf").write_bytes(text)
        self.one.boot()
        return self.one.log()[len(before) :]

    def text(self) -> bytes:
        """The nodes file of the first node."""
        return (self.one.folder / "nodes.conf").read_bytes()

    def test_kept(self) -> None:
        """The node ID and the other nodes survive a kill."""
        self.restart(self.text())
        self.wait_until_joined(self.one, self.other)

    def test_damaged(self) -> None:
        """With a damaged nodes file the node still starts with its ID and the readable entries."""
        damaged = self.text() + b"rubbish \x00\xff\n"
        log = self.restart(damaged)
        self.assertIn("is damaged", log)
        (copy,) = self.one.folder.glob("nodes.conf.damaged-*")
        self.assertEqual(damaged, copy.read_bytes())
        self.wait_until_joined(self.one, self.other)

    def test_empty(self) -> None:
        """With an empty nodes file it is a new node, which others do not confuse with the old
        one."""
        old = self.one.id
        self.restart(b"")
        fresh = self.one.call("CLUSTER", "MYID").decode()
        self.assertNotEqual(old, fresh)
        self.assertEqual({fresh}, set(self.one.table()))
        self.assertIn(old, self.other.table())
