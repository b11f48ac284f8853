"""Jobs move to the nodes whose clients wait for them (cluster protocol, section 11)."""

from __future__ import annotations

import select
import threading
import time

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import Node
from tests.acceptance.resp import Connection


class FederationTests(FleetTestCase):
    """Seven nodes; producers and consumers use different ones."""

    def test_from_elsewhere(self) -> None:
        """A client receives a job from a node to which it is not connected."""
        job_id = self.nodes[0].add(self.queue, replicate=1)
        self.assertEqual([job_id], self.nodes[6].get(self.queue, 10_000))

    def test_waiting(self) -> None:
        """A waiting client receives a job that is added on another node."""
        client = self.blocked_client(self.nodes[6], self.queue, "TIMEOUT", 30_000)
        job_id = self.nodes[0].add(self.queue, replicate=1)
        self.assertEqual(job_id.encode(), client.read()[0][1])

    def test_all_waiting(self) -> None:
        """When clients wait on many nodes, a job is delivered to exactly one of them."""
        clients = [self.blocked_client(n, self.queue, "TIMEOUT", 60_000) for n in self.nodes[1:]]
        job_id = self.nodes[0].add(self.queue, replicate=1)
        ready = self.wait(
            lambda: select.select([c.sock for c in clients], [], [], 0)[0],
            "a client receives the job",
        )
        self.assertEqual(1, len(ready))
        (lucky,) = (client for client in clients if client.sock is ready[0])
        self.assertEqual(job_id.encode(), lucky.read()[0][1])
        others = [client.sock for client in clients if client is not lucky]
        self.assertEqual([], select.select(others, [], [], 2)[0])

    def test_many_jobs(self) -> None:
        """A thousand jobs of six nodes are delivered by the seventh, each once, and with a positive
        import rate."""
        ids = sorted(
            job_id
            for some in self.fleet.each(
                lambda node: [node.add(self.queue, replicate=1) for _ in range(200)], self.nodes[:6]
            )
            for job_id in some
        )
        consumer = self.nodes[6]
        got: list[str] = []
        rates: list[int] = []
        deadline = time.monotonic() + 60
        while len(got) < len(ids) and time.monotonic() < deadline:
            fresh = consumer.get(self.queue, 500, count=20)
            consumer.call("ACKJOB", *fresh)
            got += fresh
            rates.append(self.stat(consumer, self.queue)["import-rate"])
        self.assertEqual(ids, sorted(got))
        self.assertGreater(max(rates), 2)
        self.fleet.wait_until_empty()

    def stat(self, node: Node, queue: str) -> dict[str, int]:
        """The numbers in the reply of QSTAT."""
        flat = node.call("QSTAT", queue)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {name.decode(): value for name, value in pairs if isinstance(value, int)}

    def sources(self, node: Node, queue: str) -> set[str]:
        """The field import-from of QSTAT."""
        flat = node.call("QSTAT", queue)
        return {row.decode() for row in flat[flat.index(b"import-from") + 1]}

    def test_seen(self) -> None:
        """QSTAT names the nodes from which jobs are imported, and QSCAN finds queues with
        imports."""
        source, consumer = self.nodes[0], self.nodes[6]
        count = 60
        for _ in range(count):
            source.add(self.queue, replicate=1)
        consumer.add(f"{self.queue}-own", replicate=1)
        got = 0
        while got < count:
            fresh = consumer.get(self.queue, 10_000, count=10)
            self.assertNotEqual([], fresh)
            got += len(fresh)
        self.assertEqual({source.id}, self.sources(consumer, self.queue))
        found = consumer.call("QSCAN", 0, "BUSYLOOP", "IMPORTRATE", 1)[1]
        self.assertEqual([self.queue.encode()], found)
        self.wait(
            lambda: consumer.call("QSCAN", 0, "BUSYLOOP", "IMPORTRATE", 1)[1] == [],
            "the import rate is zero",
        )
        self.wait(lambda: not self.sources(consumer, self.queue), "there are no sources any more")

    def test_many_queues(self) -> None:
        """Fifty queues with producers on all nodes are emptied by clients on three of them."""
        queues = [f"{self.queue}-{n}" for n in range(50)]
        wanted = {self.nodes[n % 7].add(queue, replicate=1) for n, queue in enumerate(queues * 4)}
        got: list[str] = []
        lock = threading.Lock()

        def consume(node: Node) -> None:
            connection = Connection((node.ip, node.port))
            deadline = time.monotonic() + 60
            try:
                while len(got) < len(wanted) and time.monotonic() < deadline:
                    jobs = connection.call("GETJOB", "TIMEOUT", 200, "FROM", *queues) or []
                    with lock:
                        got.extend(job[1].decode() for job in jobs)
                    connection.call("ACKJOB", *[job[1] for job in jobs])
            finally:
                connection.close()

        self.fleet.each(consume, self.nodes[:3])
        self.assertEqual(sorted(wanted), sorted(got))
        self.fleet.wait_until_empty()

    def test_at_most_once(self) -> None:
        """Jobs with RETRY 0 move between nodes, and are delivered once although many clients
        wait."""
        ids = [self.nodes[n % 3].add(self.queue, replicate=1, retry=0) for n in range(150)]
        got: list[str] = []
        lock = threading.Lock()

        def consume(node: Node) -> None:
            empty_replies = 0
            while empty_replies < 4:
                fresh = node.get(self.queue, 500, count=3)
                empty_replies = 0 if fresh else empty_replies + 1
                with lock:
                    got.extend(fresh)

        self.fleet.each(consume, self.nodes[2:])
        got += [job_id for _node, job_id in self.fleet.fetch(self.queue, 1)]
        self.assertEqual(sorted(ids), sorted(got))
