"""Jobs with keys on three real nodes, of which one is killed again and again."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any, Final

from disque_tx.core.keys.owners import ranking
from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.resp import ClosedError, Connection, ReplyError

#: How often the node that looks after a key is killed.
KILLS: Final = int(os.environ.get("DISQUE_TX_KILLS", "3"))
_KEYS: Final = 40
_COPIES: Final = ("REPLICATE", 2, "RETRY", 2, "TTL", 3600)


class KeyTests(FleetTestCase):
    """Three nodes that write a log."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3
    directives = ("appendonly yes", "appendfsync always")

    def add(self, key: str) -> tuple[str, int]:
        """ADDJOB UNIQUE at any living node, again and again until there is an answer."""
        while True:
            node = random.choice(self.fleet.living())
            try:
                connection = Connection((node.ip, node.port), timeout_s=10)
                try:
                    words = (*_COPIES, "UNIQUE", key, "FOR", 3600, "WITHNEW")
                    connection.send("ADDJOB", self.queue, key, 5000, *words)
                    answer: Any = connection.read()
                finally:
                    connection.close()
            except (OSError, ClosedError):
                continue
            if not isinstance(answer, ReplyError):
                job_id, fresh = answer
                return job_id.decode(), fresh

    def test_owner_is_killed(self) -> None:
        """While nodes are killed one at a time, producers that repeat what had no answer make one
        job per key."""
        answers: dict[str, set[str]] = {}
        for turn in range(KILLS):
            keys = [f"{turn}-{number}" for number in range(_KEYS)]
            owner = self.owner(keys[0])
            killer = threading.Thread(target=self.kill, args=(owner,))
            killer.start()
            for key in keys:
                answers.setdefault(key, set()).add(self.add(key)[0])
                again = random.choice(list(answers))
                answers[again].add(self.add(again)[0])
            killer.join()
            self.fleet.wait_until_agreed()
            for key, ids in answers.items():
                ids.add(self.add(key)[0])
        self.assertEqual({}, {key: ids for key, ids in answers.items() if len(ids) > 1})
        jobs = {job_id for ids in answers.values() for job_id in ids}
        found: set[str] = set()

        def fetch() -> bool:
            for node, job_id in self.fleet.fetch(self.queue, 0.5):
                node.call("ACKJOB", job_id)
                found.add(job_id)
            return jobs <= found

        self.wait(fetch, "every job whose ID was answered is delivered", 60)
        self.assertEqual(jobs, found)

    def kill(self, node: Node) -> None:
        """Kill a node while jobs are added, and start it when the others have noticed."""
        time.sleep(0.05)
        node.kill()
        time.sleep(2 * NODE_TIMEOUT_S)
        node.boot()

    def owner(self, key: str) -> Node:
        """The node that is asked first for the key."""
        ids = [node.id.encode() for node in self.nodes]
        first = ranking(key.encode(), ids)[0].decode()
        return next(node for node in self.nodes if node.id == first)

    def test_restart(self) -> None:
        """After all nodes were killed at once, their logs have the keys."""
        answers = {f"k{number}": self.add(f"k{number}") for number in range(20)}
        self.assertEqual({1}, {fresh for _, fresh in answers.values()})
        self.fleet.each(Node.kill)
        self.fleet.each(Node.boot)
        self.fleet.wait_until_agreed()
        for key, (job_id, _) in answers.items():
            self.assertEqual((job_id, 0), self.add(key))
