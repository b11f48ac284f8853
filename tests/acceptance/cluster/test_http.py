"""HTTP at one node, about all of them."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from threading import Thread
from typing import Any

from tests.acceptance.cluster.fleet import AGREE_S, Fleet
from tests.acceptance.cluster.node import Node
from tests.acceptance.daemon import DaemonTestCase, free_port, wait_for


class ClusterTests(DaemonTestCase):
    """Three nodes with HTTP."""

    def setUp(self) -> None:
        super().setUp()
        self.fleet = Fleet(3)
        self.addCleanup(self.fleet.discard)
        self.nodes = self.fleet.nodes
        self.ports = [free_port() for _ in self.nodes]
        for node, port in zip(self.nodes, self.ports, strict=True):
            node.words += ["--listen", "http", f"tcp:{port}:interface={node.ip}"]
        self.fleet.start()

    def http(self, number: int, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the answer of a node."""
        connection = HTTPConnection(self.nodes[number].ip, self.ports[number], timeout=AGREE_S)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1/{path}", data, headers)
            response = connection.getresponse()
            value = json.load(response)
            self.assertLess(response.status, 300, value)
            return value
        finally:
            connection.close()

    def add(self, number: int, **members: Any) -> Any:
        """Add a job at a node, which keeps it alone."""
        return self.http(number, "POST", "queues/q/jobs", {"body": "x", "replicate": 1, **members})

    def everywhere(self, path: str, member: str) -> list[Any]:
        """A member of what each node answers."""
        return [self.http(number, "GET", path)[member] for number in range(len(self.nodes))]

    def test_counts(self) -> None:
        """The sums of all nodes come from any of them, and say who is missing when a node is
        killed; a queue is emptied on all of them."""
        for number in (0, 1, 2, 2):
            self.add(number)
        counts = self.http(0, "GET", "counts/q?cluster=1")
        self.assertEqual((4, 3, []), (counts["queued"], counts["nodes"], counts["nodes_missing"]))
        self.assertEqual(4, self.http(1, "GET", "queues/q/scale?cluster=1")["ready"])
        (row,) = self.http(0, "GET", "counts?match=q&cluster=1")["queues"]
        self.assertEqual(4, row["queued"])
        lost: Node = self.nodes[2]
        lost_id = lost.id
        lost.kill()
        counts = self.http(0, "GET", "counts/q?cluster=1")
        self.assertEqual((2, [lost_id]), (counts["queued"], counts["nodes_missing"]))
        done = self.http(0, "POST", "queues/q/flush", {"queue": "q", "everywhere": True})
        self.assertEqual((2, [lost_id]), (done["count"], done["nodes_missing"]))

    def test_tables(self) -> None:
        """Policies and schedules that are set at one node are those of all others."""
        self.http(0, "POST", "policies/q*", {"settings": {"ttl": 77}})
        new = {"every_s": 3600, "queue": "q", "body": "x"}
        self.http(1, "PUT", "schedules/hourly", new)
        wait_for(lambda: all(self.everywhere("queues/q/policy", "settings")), "all have the policy")
        wait_for(lambda: all(self.everywhere("schedules", "total")), "all have the schedule")
        self.http(2, "DELETE", "schedules/hourly")
        wait_for(lambda: not any(self.everywhere("schedules", "total")), "no schedule is left")

    def test_jobs(self) -> None:
        """A request that is repeated at another node adds nothing, and a producer learns of the end
        of its job at another node, whichever node it asks."""
        key = {"unique": "order-7", "replicate": 2}
        first, again = self.add(0, **key), self.add(1, **key)
        self.assertEqual((first["id"], False), (again["id"], again["new"]))
        holders = [n for n, node in enumerate(self.nodes) if node.state(first["id"])]
        ended: list[str] = []
        path = first["url"].removeprefix("/api/v1/")
        waiting = Thread(
            target=lambda: ended.append(
                self.http(holders[0], "GET", f"{path}/wait?wait_ms=60000")["ended"]
            )
        )
        waiting.start()
        self.addCleanup(waiting.join)
        node = self.nodes[holders[0]]
        wait_for(lambda: int(node.info()["blocked_clients"]) > 0, "the producer waits")
        self.http(holders[1], "POST", f"{path}/ack")
        waiting.join(AGREE_S)
        self.assertEqual(["acked"], ended)

    def test_wait_elsewhere(self) -> None:
        """A node that has no copy of a job waits for its end all the same."""
        added = self.add(0)
        path = added["url"].removeprefix("/api/v1/")
        ended: list[str] = []
        waiting = Thread(
            target=lambda: ended.append(self.http(2, "GET", f"{path}/wait?wait_ms=60000")["ended"])
        )
        waiting.start()
        self.addCleanup(waiting.join)
        wait_for(lambda: int(self.nodes[0].info()["blocked_clients"]) > 0, "the producer waits")
        self.http(0, "DELETE", path)
        waiting.join(AGREE_S)
        self.assertEqual(["deleted"], ended)
        path = self.add(0)["url"].removeprefix("/api/v1/")
        self.assertIsNone(self.http(1, "GET", f"{path}/wait?wait_ms=1")["ended"])
