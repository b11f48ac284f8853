"""``disque cluster`` with three nodes, and ``drain`` and ``move`` over them."""

from __future__ import annotations

import json
import subprocess

from tests.acceptance.cluster.fleet import Fleet, FleetTestCase, sees
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.daemon import DaemonTestCase
from tests.acceptance.disque import disque, started


def at(*nodes: Node) -> list[str]:
    """The addresses of nodes."""
    return [f"{node.ip}:{node.port}" for node in nodes]


class CreateTests(DaemonTestCase):
    """Nodes that know nobody."""

    def strangers(self, size: int) -> list[Node]:
        """Nodes that run and have not met."""
        fleet = Fleet(size)
        self.addCleanup(fleet.discard)
        fleet.each(Node.boot)
        return fleet.nodes

    def test_create_meet_forget(self) -> None:
        """A cluster is made, grows and shrinks; each step may be repeated and asks before."""
        nodes = self.strangers(3)
        first, second, third = nodes
        status, _, error = disque("cluster", "create", *at(first, second))
        self.assertEqual(2, status)
        self.assertIn("--yes", error)
        status, output, error = disque("cluster", "create", *at(first, second), "--yes")
        self.assertEqual((0, "The 2 nodes know each other.\n"), (status, output), error)
        pair = {first.id, second.id}
        self.assertTrue(sees(first, pair) and sees(second, pair))
        status, output, _ = disque("cluster", "create", *at(first, second))
        self.assertEqual((0, "The 2 nodes already know each other.\n"), (status, output))

        status, _, error = disque("cluster", "create", *at(first, third), "--yes")
        self.assertEqual(1, status)
        self.assertIn("not named", error)
        status, output, error = disque("cluster", "meet", *at(second, third), "--yes")
        self.assertEqual((0, "The 3 nodes know each other.\n"), (status, output), error)
        self.wait_until_all_see(nodes, {node.id for node in nodes})

        third.kill()
        status, output, error = disque("cluster", "forget", *at(first), third.id, "--yes")
        self.assertEqual((0, f"2 nodes have forgotten {third.id}.\n"), (status, output), error)
        self.assertTrue(sees(first, pair) and sees(second, pair))
        status, _, error = disque("cluster", "forget", *at(first), third.id, "--yes")
        self.assertEqual(2, status)
        self.assertIn("No node knows", error)

    def wait_until_all_see(self, nodes: list[Node], ids: set[str]) -> None:
        """Success means that it is so now."""
        for node in nodes:
            self.assertEqual(ids, set(node.table()))

    def test_bus_on_loopback(self) -> None:
        """A cluster that cannot come about, since nodes let only their own host reach their bus:
        this is said at once, and what to do; and again in the end."""
        first, second = self.running(), self.running("bind 0.0.0.0")
        places = (f"127.0.0.1:{first.port}", f"127.0.0.3:{second.port}")
        status, _, error = disque("cluster", "create", *places, "--yes", "--timeout", 0.5)
        self.assertEqual(1, status)
        cause = f"The bus of {places[1]} listens on loopback only, and other nodes must reach it at"
        self.assertIn(f"Note: {cause} 127.0.0.3. Enable", error)
        self.assertIn(f"Likely cause: {cause}", error)
        self.assertIn("cluster-insecure yes", error)
        self.assertNotIn(places[0] + " listens", error)

    def test_not_all_answer(self) -> None:
        """Nothing is changed when one cannot be reached, or is named twice."""
        (node,) = self.strangers(1)
        for other, reason in (("127.0.0.9:1", "127.0.0.9:1: "), (f"localhost:{node.port}", "same")):
            status, _, error = disque("cluster", "create", *at(node), other, "--yes")
            self.assertEqual(1, status)
            self.assertIn(reason, error)
            self.assertIn("Nothing was changed", error)
        self.assertEqual({node.id}, set(node.table()))


class ThreeNodesTests(FleetTestCase):
    """A cluster of three."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3

    def test_check_and_info(self) -> None:
        """From one address all are found, and where they listen; with one killed both say so, with
        status 1."""
        first, second, third = self.nodes
        status, output, _ = disque("cluster", "check", *at(first))
        *listening, verdict = output.splitlines()
        self.assertEqual((0, "3 nodes answered: no problem"), (status, verdict))
        expected = {
            f"{at(node)[0]}: listens for clients on {at(node)[0]};"
            f" for other nodes on {node.ip}:{node.bus_port}"
            for node in self.nodes
        }
        self.assertEqual(expected, set(listening))
        status, output, _ = disque("cluster", "info", *at(first), "--json")
        self.assertEqual(
            (0, set(at(*self.nodes))), (status, {row["node"] for row in json.loads(output)})
        )

        second.kill()
        status, output, _ = disque("cluster", "check", *at(first), "--json")
        found = json.loads(output)
        self.assertEqual((1, set(at(first, third))), (status, set(found["nodes"])))
        silent = [each for each in found["findings"] if each["node"] == at(second)[0]]
        self.assertEqual(["problem"], [each["severity"] for each in silent])
        self.assertIn("does not answer", silent[0]["what"])
        status, output, _ = disque("cluster", "info", *at(first))
        self.assertEqual(1, status)
        (row,) = [line for line in output.splitlines() if line.startswith(at(second)[0])]
        self.assertEqual("unreachable", row.split("\t")[2])

    def test_check_of_what_is_meant(self) -> None:
        """A leaving node and a paused queue are told, and are no problem."""
        first, second, _ = self.nodes
        second.call("CLUSTER", "LEAVING", "yes")
        first.call("PAUSE", self.queue, "in")
        status, output, _ = disque("cluster", "check", *at(first))
        self.assertEqual(0, status, output)
        self.assertIn(f"note: {at(second)[0]}: is leaving", output)
        self.assertIn("1 of its first", output)
        first.call("PAUSE", self.queue, "none")

    def test_names_of_nodes_are_no_verbs(self) -> None:
        """The server's own CLUSTER commands are sent as they are, in either case."""
        first = self.nodes[0]
        for words in (("cluster", "nodes"), ("CLUSTER", "INFO"), ("cluster", "myid")):
            status, output, _ = disque("-h", first.ip, "-p", first.port, *words)
            self.assertEqual(0, status)
            wanted = {"nodes": first.id, "INFO": "cluster_state:ok", "myid": first.id}[words[1]]
            self.assertIn(wanted, output)

    def test_drain_all_nodes(self) -> None:
        """A queue is emptied wherever its jobs lie, from any node."""
        bodies = set()
        for number, node in enumerate(self.nodes):
            for body in (f"{number}-{each}" for each in range(30)):
                node.add(self.queue, body)
                bodies.add(body)
        first = self.nodes[0]
        words = ("-h", first.ip, "-p", first.port, "drain", self.queue, "--raw")
        status, output, _ = disque(*words)
        self.assertEqual((0, bodies), (status, set(output.split())))
        _, output, _ = disque("-h", first.ip, "-p", first.port, "tail", self.queue, "-n", 1000)
        self.assertEqual("", output)

    def test_node_dies_under_a_move(self) -> None:
        """It goes on at another node, and in the end each job is in the new queue."""
        first, second, third = self.nodes
        bodies = {str(number) for number in range(60)}
        for body in bodies:
            first.add(self.queue, body, replicate=3, retry=1)
        words = ("-h", first.ip, "-p", first.port, "move", self.queue, "moved", "--rate", 60)
        move = started(*words, "--timeout", 5, "--replicate", 2, stderr=subprocess.PIPE)
        self.wait(lambda: first.call("QLEN", "moved") > 10, "it has begun")
        first.kill()
        _, error = move.communicate(timeout=60)
        self.assertEqual(0, move.returncode, error)
        first.boot()
        self.wait(lambda: sees(second, {node.id for node in self.nodes}), "it is back")
        words = ("-h", third.ip, "-p", third.port, "drain", "moved", "--raw", "--timeout", 3)
        self.assertEqual(bodies, set(disque(*words)[1].split()))
