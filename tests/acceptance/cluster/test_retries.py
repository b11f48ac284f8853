"""Jobs in a backoff, dead letters and moves, while nodes are killed.

``DISQUE_TX_KILLS``: how often each is done, 3 by default.
"""

from __future__ import annotations

import os
import threading
from unittest import SkipTest

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.resp import ReplyError

KILLS = int(os.environ.get("DISQUE_TX_KILLS", "3"))
_JOBS = 40


class KilledTests(FleetTestCase):
    """Three nodes, one of which dies."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3

    def kill_while(self, victim: Node, *words: str | int) -> None:
        """Send a request to a node, and kill the node while it works on it."""

        def send() -> None:
            try:
                victim.call(*words)
            except (OSError, ReplyError, EOFError):
                pass  # the node was killed before it answered

        sender = threading.Thread(target=send)
        sender.start()
        victim.kill()
        sender.join()

    def revive(self, victim: Node) -> None:
        """Start the node again, for the next round."""
        victim.boot()
        self.fleet.wait_until_agreed()

    def collect(self, queues: tuple[str, ...], wanted: set[bytes]) -> set[bytes]:
        """The bodies that come from the living nodes until all wanted ones are there."""
        found: set[bytes] = set()

        def complete() -> bool:
            for node in self.fleet.living():
                for queue in queues:
                    jobs = node.call("GETJOB", "NOHANG", "COUNT", 100, "FROM", queue) or []
                    found.update(job[2] for job in jobs)
                    for job in jobs:
                        node.call("ACKJOB", job[1])
            return wanted <= found

        self.wait(complete, "every job comes back")
        return found

    def test_backoff(self) -> None:
        """The node that holds jobs back is killed: other holders deliver them after RETRY."""
        for kill in range(KILLS):
            victim = self.nodes[kill % 3]
            bodies = {b"b%d-%d" % (kill, number) for number in range(_JOBS)}
            for body in bodies:
                victim.add(self.queue, body.decode(), replicate=2, retry=2)
            ids = victim.get(self.queue, count=_JOBS)
            self.assertEqual(_JOBS, len(ids))
            self.assertEqual(_JOBS, victim.call("NACK", "DELAY", 3600, *ids))
            victim.kill()
            self.assertEqual(bodies, self.collect((self.queue,), bodies) & bodies)
            self.revive(victim)

    def test_held_back(self) -> None:
        """While the node lives no holder delivers the job before its time, though RETRY is
        shorter."""
        node = self.nodes[0]
        job_id = node.add(self.queue, replicate=3, retry=1)
        self.assertEqual([job_id], node.get(self.queue, 5_000))
        self.assertEqual(1, node.call("NACK", "DELAY", 5, "REASON", "later", job_id))
        got = self.fleet.fetch(self.queue, 4.0, until=1)
        self.assertEqual([], got)
        self.wait(lambda: self.fleet.fetch(self.queue, 1.0, until=1), "it comes back")

    def test_moves(self) -> None:
        """A node is killed in the middle of QMOVE: every job is in one of the two queues."""
        for kill in range(KILLS):
            victim = self.nodes[kill % 3]
            bodies = {b"m%d-%d" % (kill, number) for number in range(_JOBS)}
            for body in bodies:
                victim.add(self.queue, body.decode(), replicate=2, retry=2)
            target = f"{self.queue}-moved"
            self.kill_while(victim, "QMOVE", self.queue, target)
            self.assertEqual(bodies, self.collect((self.queue, target), bodies) & bodies)
            self.revive(victim)

    def test_letters(self) -> None:
        """A node is killed while jobs become dead letters: each job, or its letter, is there."""
        dead = f"dead-{self.queue}"
        try:
            for node in self.nodes:
                node.call("QPOLICY", "SET", self.queue, "max-deliveries", 1, "dead-queue", dead)
        except ReplyError as error:
            raise SkipTest(f"these nodes have no policies: {error}") from None
        for kill in range(KILLS):
            victim = self.nodes[kill % 3]
            ids = {
                victim.add(self.queue, f"l{kill}-{number}", replicate=2, retry=2).encode()
                for number in range(_JOBS)
            }
            taken = victim.get(self.queue, count=_JOBS)
            self.kill_while(victim, "NACK", *taken)
            found: set[bytes] = set()

            def complete(found: set[bytes] = found, ids: set[bytes] = ids) -> bool:
                for node in self.fleet.living():
                    jobs = node.call("GETJOB", "NOHANG", "COUNT", 100, "FROM", self.queue) or []
                    found.update(job_id for _, job_id, _ in jobs)
                    if jobs:
                        node.call("ACKJOB", *(job_id for _, job_id, _ in jobs))
                    # A letter that the victim had queued is queued elsewhere after its own RETRY.
                    letters = node.call("JSCAN", 0, "COUNT", 100_000, "QUEUE", dead, "REPLY", "all")
                    bodies = [str(letter) for letter in letters[1]]
                    found.update(one for one in ids if any(one.decode() in body for body in bodies))
                return ids <= found

            self.wait(complete, "every job comes, or has its letter")
            self.revive(victim)
