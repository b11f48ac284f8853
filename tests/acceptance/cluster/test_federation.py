"""Jobs move to where they are asked for (cluster protocol, section 11)."""

from __future__ import annotations

import select
import threading
import time

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import Node
from tests.acceptance.resp import Connection


class FederationTests(FleetTestCase):
    """Seven nodes; producers and consumers are on different ones."""

    def test_from_elsewhere(self) -> None:
        """A client gets the job of a node to which it is not connected."""
        job_id = self.nodes[0].add(self.queue, replicate=1)
        self.assertEqual([job_id], self.nodes[6].get(self.queue, 10_000))

    def test_waiting(self) -> None:
        """A client waits, and a job that is added elsewhere comes to it."""
        client = self.reader(self.nodes[6], self.queue, "TIMEOUT", 30_000)
        job_id = self.nodes[0].add(self.queue, replicate=1)
        self.assertEqual(job_id.encode(), client.read()[0][1])

    def test_all_waiting(self) -> None:
        """Clients wait on many nodes; a job comes to one of them, and to no other."""
        clients = [self.reader(n, self.queue, "TIMEOUT", 60_000) for n in self.nodes[1:]]
        job_id = self.nodes[0].add(self.queue, replicate=1)
        ready = self.wait(lambda: select.select([c.sock for c in clients], [], [], 0)[0], "it came")
        self.assertEqual(1, len(ready))
        (lucky,) = (client for client in clients if client.sock is ready[0])
        self.assertEqual(job_id.encode(), lucky.read()[0][1])
        others = [client.sock for client in clients if client is not lucky]
        self.assertEqual([], select.select(others, [], [], 2)[0])

    def test_many_jobs(self) -> None:
        """A thousand jobs of six nodes are delivered by the seventh, each once, at some speed."""
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
        self.fleet.drained()

    def stat(self, node: Node, queue: str) -> dict[str, int]:
        """The numbers of QSTAT."""
        flat = node.call("QSTAT", queue)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {name.decode(): value for name, value in pairs if isinstance(value, int)}

    def givers(self, node: Node, queue: str) -> set[str]:
        """QSTAT's import-from."""
        flat = node.call("QSTAT", queue)
        return {row.decode() for row in flat[flat.index(b"import-from") + 1]}

    def test_seen(self) -> None:
        """QSTAT tells from whom jobs come, and QSCAN finds the queues that import."""
        giver, consumer = self.nodes[0], self.nodes[6]
        count = 60
        for _ in range(count):
            giver.add(self.queue, replicate=1)
        consumer.add(f"{self.queue}-own", replicate=1)
        got = 0
        while got < count:
            fresh = consumer.get(self.queue, 10_000, count=10)
            self.assertNotEqual([], fresh)
            got += len(fresh)
        self.assertEqual({giver.id}, self.givers(consumer, self.queue))
        found = consumer.call("QSCAN", 0, "BUSYLOOP", "IMPORTRATE", 1)[1]
        self.assertEqual([self.queue.encode()], found)
        self.wait(
            lambda: consumer.call("QSCAN", 0, "BUSYLOOP", "IMPORTRATE", 1)[1] == [],
            "nothing is imported any more",
        )
        self.wait(lambda: not self.givers(consumer, self.queue), "nobody gives any more")

    def test_many_queues(self) -> None:
        """Fifty queues with producers on all nodes are emptied by clients that wait elsewhere."""
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
        self.fleet.drained()

    def test_at_most_once(self) -> None:
        """RETRY 0 jobs move, and are delivered once though clients ask everywhere."""
        ids = [self.nodes[n % 3].add(self.queue, replicate=1, retry=0) for n in range(150)]
        got: list[str] = []
        lock = threading.Lock()

        def consume(node: Node) -> None:
            silent = 0
            while silent < 4:
                fresh = node.get(self.queue, 500, count=3)
                silent = 0 if fresh else silent + 1
                with lock:
                    got.extend(fresh)

        self.fleet.each(consume, self.nodes[2:])
        got += [job_id for _node, job_id in self.fleet.fetch(self.queue, 1)]
        self.assertEqual(sorted(ids), sorted(got))
