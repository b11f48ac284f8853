"""Policies on real nodes: set at one, in force at all, and kept (cluster protocol, section
21.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from disque_tx.core.tables.registers import COUNTER_MAX
from disque_tx.messages.tables import Register
from disque_tx.wire.files.tables import render
from tests.acceptance.cluster.fleet import Fleet, FleetTestCase
from tests.acceptance.cluster.node import Node


def table(node: Node) -> Any:
    """The policies of a node."""
    return node.call("QPOLICY", "LIST")


def field(node: Node, name: str) -> bytes:
    """A field of INFO about policies."""
    lines: list[bytes] = node.call("INFO", "policies").split(b"\r\n")
    start = name.encode() + b":"
    return next(line for line in lines if line.startswith(start)).removeprefix(start)


class PolicyTests(FleetTestCase):
    """Three nodes."""

    size = 3

    def setUp(self) -> None:
        super().setUp()
        for row in table(self.nodes[0]):
            self.nodes[0].call("QPOLICY", "DEL", row[0])
        self.wait_until_same([])

    def wait_until_same(self, expected: list[Any]) -> None:
        """Wait until all running nodes have exactly these policies."""
        nodes = self.fleet.living()
        self.wait(lambda: all(table(node) == expected for node in nodes), "the same policies")

    def test_everywhere(self) -> None:
        """What is set, changed and deleted at any node is in force at all of them."""
        self.nodes[0].call("QPOLICY", "SET", "mail:*", "ttl", 60, "retry", 5)
        self.wait_until_same([[b"mail:*", [b"ttl", b"60", b"retry", b"5"]]])
        self.nodes[1].call("QPOLICY", "SET", "mail:*", "ttl", 70)
        self.wait_until_same([[b"mail:*", [b"ttl", b"70", b"retry", b"5"]]])
        self.nodes[2].call("QPOLICY", "DEL", "mail:*", "ttl")
        self.wait_until_same([[b"mail:*", [b"retry", b"5"]]])
        infos = [node.call("INFO", "policies") for node in self.nodes]
        digests = {
            line for info in infos for line in info.split(b"\r\n") if b"policies_digest" in line
        }
        self.assertEqual(1, len(digests))

    def test_killed(self) -> None:
        """A node that is killed at once after its answer has the policy when it is back, without
        any other node; what was changed meanwhile it gets from the others."""
        first, *others = self.nodes
        for number in range(1, 4):
            self.fleet.each(Node.kill, others)
            first.call("QPOLICY", "SET", "kept", "ttl", number)
            first.kill()
            first.boot()
            self.assertEqual([[b"kept", [b"ttl", b"%d" % number]]], table(first))
            self.fleet.each(Node.boot, others)
            self.wait_until_same([[b"kept", [b"ttl", b"%d" % number]]])
        first.kill()
        others[0].call("QPOLICY", "DEL", "kept")
        others[0].call("QPOLICY", "SET", "new", "retry", 7)
        first.boot()
        self.wait_until_same([[b"new", [b"retry", b"7"]]])

    def test_copies(self) -> None:
        """A job for several queues has its copies in each of them before the producer is answered;
        when it cannot have them there is none in any queue."""
        first, *others = self.nodes
        first.call("QPOLICY", "SET", "orders", "copy-to", "billing shipping")
        first.call("ADDJOB", "orders", "body", 5000, "REPLICATE", 3)
        queues = ("orders", "billing", "shipping")
        self.assertEqual([1, 1, 1], [first.call("QLEN", name) for name in queues])
        self.assertEqual([3, 3, 3], [node.jobs() for node in self.nodes])
        self.fleet.each(Node.kill, others)
        answer = first.error("ADDJOB", "orders", "body", 200, "REPLICATE", 3)
        self.assertIn("NOREPL", answer)
        self.assertEqual([1, 1, 1], [first.call("QLEN", name) for name in queues])
        self.fleet.each(Node.boot, others)
        for name in queues:
            (row,) = first.call("GETJOB", "FROM", name)
            first.call("ACKJOB", row[1])
        first.call("QPOLICY", "DEL", "orders")

    def test_joins(self) -> None:
        """A node that joins has all policies a moment after it has met one node, and both keep what
        they had."""
        for number in range(40):
            self.nodes[0].call("QPOLICY", "SET", f"q{number:02d}", "dead-queue", "d" * 1_000)
        fleet = Fleet(1)
        self.addCleanup(fleet.discard)
        (guest,) = fleet.nodes
        guest.boot()
        guest.call("QPOLICY", "SET", "zz", "ttl", 9)
        guest.call("CLUSTER", "MEET", self.nodes[1].ip, self.nodes[1].port, self.nodes[1].bus_port)
        wanted = [[b"q%02d" % n, [b"dead-queue", b"d" * 1_000]] for n in range(40)]
        wanted.append([b"zz", [b"ttl", b"9"]])
        nodes = [*self.nodes, guest]
        self.wait(lambda: all(table(node) == wanted for node in nodes), "the same policies")
        # The policies may have come from another node than the guest.
        self.wait(
            lambda: all(guest.id.encode() in node.call("CLUSTER", "NODES") for node in nodes),
            "all know the guest",
        )
        for node in self.nodes:
            node.call("CLUSTER", "FORGET", guest.id)

    def test_repair(self) -> None:
        """A table whose counters were run to their end, as far as only some nodes believe, is one
        table again that can be changed, also at a node that was away, and after restarts."""
        first, second, third = self.nodes
        first.call("QPOLICY", "SET", "kept", "ttl", 60)
        self.wait_until_same([[b"kept", [b"ttl", b"60"]]])
        self.fleet.each(Node.kill, self.nodes)
        for node in self.nodes:  # what other tests have deleted is not to be repaired, too
            (node.folder / "nodes.conf.policies").unlink(missing_ok=True)
        far = Register(b"kept", b"ttl", b"5", COUNTER_MAX, b"f" * 40)
        for node in (first, third):
            (node.folder / "nodes.conf.policies").write_bytes(render([far], COUNTER_MAX))
        self.fleet.each(Node.boot, [first, second])
        self.assertIn("at its end", first.error("QPOLICY", "SET", "kept", "ttl", 70))
        self.wait(lambda: field(second, "policies_changes_refused") != b"0", "refused changes")
        self.assertIn(first.id.encode() + b"=", field(second, "policies_refused_from"))
        self.assertEqual(1, first.call("QPOLICY", "REPAIR"))
        first.call("QPOLICY", "SET", "kept", "ttl", 70)
        third.boot()
        self.wait_until_same([[b"kept", [b"ttl", b"70"]]])
        third.call("QPOLICY", "SET", "kept", "retry", 9)
        wanted = [[b"kept", [b"ttl", b"70", b"retry", b"9"]]]
        self.wait_until_same(wanted)
        self.assertEqual(1, len({field(node, "policies_digest") for node in self.nodes}))
        self.fleet.each(Node.kill, self.nodes)
        self.fleet.each(Node.boot, self.nodes)
        self.wait_until_same(wanted)
        self.assertEqual({b"1"}, {field(node, "policies_generation") for node in self.nodes})

    def test_damaged(self) -> None:
        """A file that was damaged is set aside; the node starts, and gets the policies back."""
        self.nodes[0].call("QPOLICY", "SET", "mail:*", "ttl", 60)
        self.wait_until_same([[b"mail:*", [b"ttl", b"60"]]])
        first = self.nodes[0]
        first.kill()
        path: Path = first.folder / "nodes.conf.policies"
        whole = path.read_bytes()
        path.write_bytes(whole[:-20])
        first.boot()
        self.wait_until_same([[b"mail:*", [b"ttl", b"60"]]])
        (kept,) = first.folder.glob("nodes.conf.policies.damaged-*")
        self.assertEqual(whole[:-20], kept.read_bytes())
        kept.unlink()


class DirectiveTests(FleetTestCase):
    """A node with policies in its configuration."""

    size = 1
    directives = ("policy mail:* ttl 60",)

    def test_weakest(self) -> None:
        """What the configuration says is in force until the cluster says something else."""
        (node,) = self.nodes
        self.assertEqual([[b"ttl", b"60", b"mail:*"]], node.call("QPOLICY", "GET", "mail:x"))
        self.assertEqual([], table(node))
        node.call("QPOLICY", "SET", "*", "ttl", 5)
        self.assertEqual([[b"ttl", b"5", b"*"]], node.call("QPOLICY", "GET", "mail:x"))
        node.call("QPOLICY", "DEL", "*")
        self.assertEqual([[b"ttl", b"60", b"mail:*"]], node.call("QPOLICY", "GET", "mail:x"))
