"""``disque cluster`` with three nodes, and ``drain`` and ``move`` on them."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.acceptance.cluster.fleet import Fleet, FleetTestCase, sees
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.cluster.test_crashes import ALWAYS
from tests.acceptance.daemon import DaemonTestCase, free_port
from tests.acceptance.disque import disque, started


def addresses(*nodes: Node) -> list[str]:
    """The addresses of nodes."""
    return [f"{node.ip}:{node.port}" for node in nodes]


class CreateTests(DaemonTestCase):
    """Nodes that have not met any other."""

    def separate_nodes(self, size: int) -> list[Node]:
        """Running nodes that have not met each other."""
        fleet = Fleet(size)
        self.addCleanup(fleet.discard)
        fleet.each(Node.boot)
        return fleet.nodes

    def test_create_meet_forget(self) -> None:
        """A cluster can be created, extended and reduced; each step may be repeated and asks for
        confirmation."""
        nodes = self.separate_nodes(3)
        first, second, third = nodes
        status, _, error = disque("cluster", "create", *addresses(first, second))
        self.assertEqual(2, status)
        self.assertIn("--yes", error)
        status, output, error = disque("cluster", "create", *addresses(first, second), "--yes")
        self.assertEqual((0, "The 2 nodes know each other.\n"), (status, output), error)
        pair = {first.id, second.id}
        self.assertTrue(sees(first, pair) and sees(second, pair))
        status, output, _ = disque("cluster", "create", *addresses(first, second))
        self.assertEqual((0, "The 2 nodes already know each other.\n"), (status, output))

        status, _, error = disque("cluster", "create", *addresses(first, third), "--yes")
        self.assertEqual(1, status)
        self.assertIn("not named", error)
        status, output, error = disque("cluster", "meet", *addresses(second, third), "--yes")
        self.assertEqual((0, "The 3 nodes know each other.\n"), (status, output), error)
        self.assert_all_know(nodes, {node.id for node in nodes})

        third.kill()
        status, output, error = disque("cluster", "forget", *addresses(first), third.id, "--yes")
        self.assertEqual((0, f"{third.id} is forgotten by 2 nodes.\n"), (status, output), error)
        self.assertTrue(sees(first, pair) and sees(second, pair))
        status, _, error = disque("cluster", "forget", *addresses(first), third.id, "--yes")
        self.assertEqual(2, status)
        self.assertIn("No node knows", error)

    def assert_all_know(self, nodes: list[Node], ids: set[str]) -> None:
        """Assert that every node knows exactly these; success of the command means that it is so
        now."""
        for node in nodes:
            self.assertEqual(ids, set(node.table()))

    def test_bus_on_loopback(self) -> None:
        """When nodes let only their own host reach their bus, a cluster cannot be created: a note
        says so at once, with the remedy, and the error repeats it."""
        first, second = self.running(), self.running("bind 0.0.0.0")
        places = (f"127.0.0.1:{first.port}", f"127.0.0.3:{second.port}")
        status, _, error = disque("cluster", "create", *places, "--yes", "--timeout", 0.5)
        self.assertEqual(1, status)
        cause = f"The bus of {places[1]} listens on loopback only, and other nodes must reach it at"
        self.assertIn(f"Note: {cause} 127.0.0.3. Enable", error)
        self.assertIn(f"Likely cause: {cause}", error)
        self.assertIn("cluster-insecure yes", error)
        self.assertNotIn(places[0] + " listens", error)

    def test_bus_ports(self) -> None:
        """Nodes whose bus listens at a port of its own are joined as well."""
        nodes = [self.running(f"cluster-bus-port {free_port()}") for _ in range(3)]
        first, second, third = (f"127.0.0.1:{node.port}" for node in nodes)
        status, output, error = disque("cluster", "create", first, second, "--yes")
        self.assertEqual((0, "The 2 nodes know each other.\n"), (status, output), error)
        status, output, error = disque("cluster", "meet", first, third, "--yes")
        self.assertEqual((0, "The 3 nodes know each other.\n"), (status, output), error)

    def test_not_all_answer(self) -> None:
        """Nothing is changed when one node cannot be reached, or is given twice."""
        (node,) = self.separate_nodes(1)
        for other, reason in (("127.0.0.9:1", "127.0.0.9:1: "), (f"localhost:{node.port}", "same")):
            status, _, error = disque(
                *("cluster", "create", *addresses(node), other), "--yes", "--timeout", 0.5
            )
            self.assertEqual(1, status)
            self.assertIn(reason, error)
            self.assertIn("Nothing was changed", error)
        self.assertEqual({node.id}, set(node.table()))


class ThreeNodesTests(FleetTestCase):
    """A cluster of three nodes."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3

    def test_check_and_info(self) -> None:
        """From one address, all nodes are found, with the addresses they listen on; when one is
        killed, both commands report it, with status 1."""
        first, second, third = self.nodes
        status, output, _ = disque("cluster", "check", *addresses(first))
        *listening, verdict = output.splitlines()
        self.assertEqual((0, "3 nodes answered: no problem"), (status, verdict))
        expected = {
            f"{addresses(node)[0]}: listens for clients on {addresses(node)[0]};"
            f" for other nodes on {node.ip}:{node.bus_port}"
            for node in self.nodes
        }
        self.assertEqual(expected, set(listening))
        status, output, _ = disque("cluster", "info", *addresses(first), "--json")
        self.assertEqual(
            (0, set(addresses(*self.nodes))), (status, {row["node"] for row in json.loads(output)})
        )

        second.kill()
        status, output, _ = disque("cluster", "check", *addresses(first), "--json")
        found = json.loads(output)
        self.assertEqual((1, set(addresses(first, third))), (status, set(found["nodes"])))
        silent = [each for each in found["findings"] if each["node"] == addresses(second)[0]]
        self.assertEqual(["problem"], [each["severity"] for each in silent])
        self.assertIn("does not answer", silent[0]["what"])
        status, output, _ = disque("cluster", "info", *addresses(first))
        self.assertEqual(1, status)
        (row,) = [line for line in output.splitlines() if line.startswith(addresses(second)[0])]
        self.assertEqual("unreachable", row.split("\t")[2])

    def test_check_of_intended_states(self) -> None:
        """A leaving node and a paused queue are reported, but are no problem."""
        first, second, _ = self.nodes
        second.call("CLUSTER", "LEAVING", "yes")
        first.call("PAUSE", self.queue, "in")
        status, output, _ = disque("cluster", "check", *addresses(first))
        self.assertEqual(0, status, output)
        self.assertIn(f"note: {addresses(second)[0]}: is leaving", output)
        self.assertIn("has 1 paused queue among its first", output)
        first.call("PAUSE", self.queue, "none")

    def test_server_commands(self) -> None:
        """The server's own CLUSTER commands are sent unchanged, in upper or lower case."""
        first = self.nodes[0]
        for words in (("cluster", "nodes"), ("CLUSTER", "INFO"), ("cluster", "myid")):
            status, output, _ = disque("-h", first.ip, "-p", first.port, *words)
            self.assertEqual(0, status)
            wanted = {"nodes": first.id, "INFO": "cluster_state:ok", "myid": first.id}[words[1]]
            self.assertIn(wanted, output)

    def test_drain_all_nodes(self) -> None:
        """A queue is drained from all nodes, whichever node is given."""
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
        """A move continues with another node, and in the end each job is in the new queue."""
        first, second, third = self.nodes
        bodies = {str(number) for number in range(60)}
        for body in bodies:
            first.add(self.queue, body, replicate=3, retry=1)
        words = ("-h", first.ip, "-p", first.port, "move", self.queue, "moved", "--rate", 60)
        move = started(*words, "--timeout", 5, "--replicate", 2, stderr=subprocess.PIPE)
        self.wait(lambda: first.call("QLEN", "moved") > 10, "some jobs are moved")
        first.kill()
        _, error = move.communicate(timeout=60)
        self.assertEqual(0, move.returncode, error)
        first.boot()
        self.wait(lambda: sees(second, {node.id for node in self.nodes}), "the killed node is back")
        words = ("-h", third.ip, "-p", third.port, "drain", "moved", "--raw", "--timeout", 3)
        self.assertEqual(bodies, set(disque(*words)[1].split()))


class DowngradeTests(FleetTestCase):
    """The way back to originals."""

    size = 3
    directives = ALWAYS

    def test_downgrade(self) -> None:
        """What originals do not know is listed for all nodes; policies and schedules can be
        deleted, and the log is written without keys."""
        first = self.nodes[0]
        at = addresses(first)
        self.assertEqual(0, disque("cluster", "downgrade", *at)[0])
        first.call("QPOLICY", "SET", "mail:*", "ttl", 60)
        first.call("SCHEDULE", "SET", "nightly", "@daily", "QUEUE", "q", "body")
        job_id = first.add("orders", retry=60)
        first.call("ADDJOB", "orders", "once", 5000, "REPLICATE", 3, "UNIQUE", "key-1")
        self.wait(
            lambda: all(b"policies_patterns:1" in n.call("INFO", "policies") for n in self.nodes),
            "the policy is everywhere",
        )
        status, output, error = disque("cluster", "downgrade", *at, "--check")
        self.assertEqual((1, ""), (status, error))
        for address in addresses(*self.nodes):
            self.assertIn(f"{address}: policies of 1 pattern: mail:*", output)
        self.assertIn("1 schedule: nightly", output)
        self.assertIn("1 key of jobs", output)
        self.assertEqual(2, disque("cluster", "downgrade", *at, "--do")[0])
        status, output, error = disque("cluster", "downgrade", *at, "--do", "--yes", "--json")
        self.assertEqual(1, status)
        self.assertIn("policies of 1 pattern, 1 schedule", error)
        left = json.loads(output)[addresses(first)[0]]
        self.assertEqual(([], [], True), (left["policies"], left["schedules"], left["keys_in_log"]))
        first.kill()
        log = first.folder / "disque.aof"
        program = [sys.executable, "-m", "disque_tx.cli.programs.check_aof", "--original", str(log)]
        made = subprocess.run(program, check=False, capture_output=True, text=True)
        self.assertEqual(0, made.returncode, made.stdout + made.stderr)
        self.assertIn("its jobs are the same, without their keys", made.stdout)
        data = log.with_name("disque.aof.original").read_bytes()
        self.assertEqual(0, data.count(b"HOLDKEY"))
        self.assertIn(job_id.encode(), data)
        first.boot()
