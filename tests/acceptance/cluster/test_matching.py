"""Clients that wait by pattern, on several nodes."""

from __future__ import annotations

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S
from tests.acceptance.daemon import wait_for
from tests.acceptance.resp import Connection


class MatchingTests(FleetTestCase):
    """Three nodes; producers and consumers use different ones."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3

    def matching(self, number: int, *options: str | int) -> Connection:
        """A client of a node that is blocked by pattern."""
        node = self.nodes[number]
        before = int(node.info()["blocked_clients"])
        client = node.client()
        client.send("GETJOB", *options, "MATCH", f"{self.queue}:*")
        wait_for(lambda: int(node.info()["blocked_clients"]) > before, "the client is blocked")
        return client

    def test_from_elsewhere(self) -> None:
        """A job of a queue that only another node knows comes to whoever waits by pattern, whether
        it was there before or not."""
        names = [f"{self.queue}:{which}" for which in ("there", "later")]
        first = self.nodes[0].add(names[0], replicate=1)
        (job,) = self.nodes[1].call("GETJOB", "TIMEOUT", 30_000, "MATCH", f"{self.queue}:*")
        self.assertEqual([names[0].encode(), first.encode()], job[:2])
        client = self.matching(2, "TIMEOUT", 60_000)
        second = self.nodes[0].add(names[1], replicate=1)
        (job,) = client.read()
        self.assertEqual([names[1].encode(), second.encode()], job[:2])

    def test_once(self) -> None:
        """When clients wait by pattern on many nodes, a job that may be delivered once is
        delivered to one of them."""
        name = f"{self.queue}:a"
        clients = [self.matching(number, "TIMEOUT", 5_000) for number in (0, 1, 2)]
        job_id = self.nodes[0].call("ADDJOB", name, "x", 0, "REPLICATE", 1, "RETRY", 0)
        got = [client.read() for client in clients]
        ids = [reply[0][1].decode() for reply in got if reply]
        self.assertEqual([job_id], ids)

    def test_giver_dies(self) -> None:
        """A client keeps waiting while the node that has jobs is down, and gets copies of them
        from the others."""
        name = f"{self.queue}:a"
        victim = self.nodes[0]
        job_id = victim.call("ADDJOB", name, "x", 5_000, "REPLICATE", 2, "RETRY", 2)
        victim.kill()
        self.addCleanup(self.fleet.wait_until_agreed)
        self.addCleanup(victim.boot)
        client = self.matching(2, "TIMEOUT", 60_000)
        (job,) = client.read()
        self.assertEqual([name.encode(), job_id.encode()], job[:2])
        self.assertEqual(1, self.nodes[2].call("ACKJOB", job_id))

    def test_limits_of_each_node(self) -> None:
        """A limit of a policy holds on every node for its own clients, and jobs beyond the limit of
        one node are delivered by another."""
        name = f"{self.queue}:a"
        self.nodes[0].call("QPOLICY", "SET", f"{self.queue}:*", "concurrency", 1)
        self.wait(
            lambda: all(node.call("QPOLICY", "GET", name) for node in self.nodes),
            "all nodes have the policy",
        )
        for _ in range(4):
            self.nodes[0].add(name, replicate=1)
        words = ("GETJOB", "COUNT", 9, "TIMEOUT", 30_000, "MATCH", f"{self.queue}:*")
        jobs = [self.nodes[number].call(*words) for number in (0, 1)]
        self.assertEqual([1, 1], [len(some) for some in jobs])
        waiting = self.matching(0, "TIMEOUT", 60_000)
        self.nodes[0].call("ACKJOB", jobs[0][0][1])
        self.assertEqual(1, len(waiting.read()))
        self.nodes[0].call("QPOLICY", "DEL", f"{self.queue}:*")
