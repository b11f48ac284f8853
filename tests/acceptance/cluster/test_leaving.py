"""A node leaves the cluster in an orderly way (cluster protocol, section 8.9)."""

from __future__ import annotations

import time

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.cluster.test_acks import UNKNOWN
from tests.acceptance.resp import ReplyError

_LEAVING = "LEAVING This node is leaving the cluster, please connect to a different one"


class LeavingTests(FleetTestCase):
    """Three nodes, the first of which leaves."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3

    def leave(self) -> tuple[Node, list[Node]]:
        """Let the first node leave, and wait until the others know and no longer use it for
        copies."""
        leaver, *others = self.nodes
        self.assertEqual("OK", leaver.call("CLUSTER", "LEAVING", "yes"))
        self.wait(lambda: all("leaving" in o.flags(leaver) for o in others), "all nodes know")
        self.wait(lambda: all(o.reachable() == 1 for o in others), "no node uses it for copies")
        return leaver, others

    def test_adding(self) -> None:
        """A job added on a leaving node is kept by other nodes, and queued by one of them."""
        leaver, others = self.leave()
        job_id = leaver.add(self.queue, replicate=2)
        self.assertEqual(others, self.fleet.holders(job_id))
        self.wait(lambda: self.fleet.queued(self.queue) == 1, "the job is queued on one node")
        self.assertEqual([job_id], [i for _n, i in self.fleet.fetch(self.queue, 5, until=1)])
        self.assertEqual(0, leaver.jobs())

    def test_adding_async(self) -> None:
        """The same for ASYNC and for RETRY 0."""
        leaver, _others = self.leave()
        ids = [
            str(leaver.call("ADDJOB", self.queue, "b", 0, *words))
            for words in (("REPLICATE", 2, "ASYNC"), ("REPLICATE", 1, "RETRY", 0))
        ]
        got = [i for _n, i in self.fleet.fetch(self.queue, 10, until=2)]
        self.assertEqual(sorted(ids), sorted(got))
        self.assertEqual([], leaver.get(self.queue))

    def test_too_few_others(self) -> None:
        """When the leaving node would be needed as a holder, the error gives the reason."""
        leaver, _others = self.leave()
        self.assertEqual(
            "NOREPL Not enough reachable nodes for the requested replication level, since I'm"
            " unable to hold a copy of the message for the following reason: I'm leaving the"
            " cluster",
            leaver.error("ADDJOB", self.queue, "b", 0, "REPLICATE", 3),
        )

    def test_no_copies(self) -> None:
        """Other nodes send no new copies to the leaving node."""
        leaver, (one, _other) = self.leave()
        for _ in range(10):
            one.add(self.queue, replicate=2)
        self.assertEqual(0, leaver.jobs())

    def test_waiting_clients(self) -> None:
        """Clients that wait, and those that connect later, receive an error that asks them to use
        another node."""
        leaver = self.nodes[0]
        client = self.blocked_client(leaver, self.queue)
        leaver.call("CLUSTER", "LEAVING", "yes")
        self.assertEqual(_LEAVING, str(client.read()))
        self.assertEqual(_LEAVING, leaver.error("GETJOB", "FROM", self.queue))
        self.assertIsNone(leaver.call("GETJOB", "NOHANG", "FROM", self.queue))
        client.send("PING")
        self.assertEqual("PONG", client.read())

    def test_hello(self) -> None:
        """In the replies to HELLO of all nodes, the leaving node has the priority of a node to
        avoid."""
        leaver, others = self.leave()
        for node in self.nodes:
            priorities = {row[0].decode(): row[3].decode() for row in node.call("HELLO")[2:]}
            self.assertEqual({leaver.id: "100", **{other.id: "1" for other in others}}, priorities)

    def test_imports_nothing(self) -> None:
        """Clients of the leaving node do not cause imports of jobs."""
        leaver, (one, _other) = self.leave()
        job_id = one.add(self.queue, replicate=1)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            self.assertEqual([], leaver.get(self.queue))
            self.assertRaises(ReplyError, leaver.get, self.queue, 1000)
        self.assertEqual("", leaver.state(job_id))
        self.assertEqual("queued", one.state(job_id))

    def test_no_dummy_acks(self) -> None:
        """A leaving node does not keep acknowledgements of unknown jobs."""
        leaver, _others = self.leave()
        self.assertEqual(0, leaver.call("ACKJOB", UNKNOWN))
        self.assertEqual(0, leaver.jobs())

    def test_drains(self) -> None:
        """While consumers use other nodes, the leaving node becomes empty; then it can be stopped
        and forgotten."""
        leaver, *others = self.nodes
        ids = {leaver.add(self.queue, replicate=1 + n % 2) for n in range(200)}
        self.leave()
        got: set[str] = set()
        deadline = time.monotonic() + 60
        while leaver.jobs() and time.monotonic() < deadline:
            for node in others:
                fresh = node.get(self.queue, 100, count=20)
                node.call("ACKJOB", *fresh)
                got.update(fresh)
        self.assertEqual(0, leaver.jobs())
        self.assertEqual(ids, got)
        leaver.kill()
        for node in others:
            self.assertEqual("OK", node.call("CLUSTER", "FORGET", leaver.id))
        ids_left = {node.id for node in others}
        self.stays_true(
            lambda: all(set(n.table()) == ids_left for n in others), 3, "the node stays forgotten"
        )
        self.assertEqual(40, len(others[0].add(self.queue, replicate=2)))
        leaver.boot()
        for node in others:
            node.call("CLUSTER", "MEET", leaver.ip, leaver.port)

    def test_survives_restart(self) -> None:
        """A node that is leaving is still leaving after a restart."""
        leaver, others = self.leave()
        leaver.kill()
        leaver.boot()
        self.assertEqual("yes", leaver.call("CLUSTER", "LEAVING"))
        self.wait(lambda: all("leaving" in o.flags(leaver) for o in others), "all nodes know")
