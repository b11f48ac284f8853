"""Clients that wait by pattern, on several nodes.

``DISQUE_TX_KILLS``: how often a node is killed, 3 by default.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.daemon import wait_for
from tests.acceptance.resp import ClosedError, Connection, ReplyError

KILLS: Final = int(os.environ.get("DISQUE_TX_KILLS", "3"))
#: Jobs for each kill, each in a queue of its own.
_JOBS: Final = 20


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


class KilledTests(FleetTestCase):
    """Three nodes that write a log, of which one is killed again and again."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3
    directives = ("appendonly yes", "appendfsync always")

    def test_killed_again_and_again(self) -> None:
        """While nodes are killed one after the other, every job comes to a client that waits by
        pattern, whichever node it was added to."""
        found: set[str] = set()
        stop = threading.Event()
        workers = [threading.Thread(target=self.work, args=(n, found, stop)) for n in (0, 1, 2)]
        for worker in workers:
            worker.start()
        jobs: set[str] = set()
        try:
            for turn in range(KILLS):
                victim, *others = self.nodes[turn % 3 :] + self.nodes[: turn % 3]
                for number in range(_JOBS):
                    if number == _JOBS // 2:
                        victim.kill()
                    giver = others[number % 2] if number >= _JOBS // 2 else self.nodes[number % 3]
                    jobs.add(self.add(giver, f"{self.queue}:{turn}-{number}"))
                victim.boot()
                self.fleet.wait_until_agreed()
            self.wait(lambda: jobs <= found, "every job whose ID was answered is delivered")
        finally:
            stop.set()
            for worker in workers:
                worker.join()

    def add(self, node: Node, queue: str) -> str:
        """A job with a copy on another node, which may have to be found first."""
        words = ("ADDJOB", queue, "x", 1_000, "REPLICATE", 2, "RETRY", 2)
        ids: list[str] = []

        def added() -> bool:
            try:
                ids.append(node.call(*words))
            except ReplyError:
                return False  # the copy was to be made by the node that was just killed
            return True

        self.wait(added, "the job is added")
        return ids[0]

    def work(self, number: int, found: set[str], stop: threading.Event) -> None:
        """Wait by pattern at one node, again and again, and acknowledge what comes."""
        node = self.nodes[number]
        while not stop.is_set():
            try:
                connection = Connection((node.ip, node.port), timeout_s=10)
            except OSError:
                stop.wait(0.05)
                continue
            try:
                while not stop.is_set():
                    pattern = f"{self.queue}:*"
                    connection.send("GETJOB", "TIMEOUT", 500, "COUNT", 10, "MATCH", pattern)
                    jobs = connection.read()
                    for _, job_id, _ in jobs if isinstance(jobs, list) else ():
                        connection.send("ACKJOB", job_id)
                        connection.read()
                        found.add(job_id.decode())
            except (OSError, ClosedError):
                pass
            finally:
                connection.close()
