"""Schedules on real nodes: no occurrence is lost, and none is made twice, while nodes are killed.

``DISQUE_TX_KILLS``: how often that is done, 3 by default.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

from disque_tx.core.recurring.occurrences import id_start, occurrence_key
from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node

KILLS = int(os.environ.get("DISQUE_TX_KILLS", "3"))
_NAME = b"tick"


class ScheduleTests(FleetTestCase):
    """Three nodes, and a schedule that is due every second."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3

    def setUp(self) -> None:
        super().setUp()
        self.taken: Counter[bytes] = Counter()
        self.origin = self.nodes[0].id.encode()
        self.set_s = int(time.time())
        self.call("SET", _NAME, "EVERY", 1, "MISSED", "all", *self.job())
        # A second may end before the answer: then this is later than the first occurrence.
        self.start_s = self.shown()["next"][0] - 1
        self.addCleanup(self.delete)

    def delete(self) -> None:
        """The schedule of this test is gone from all nodes before the next one."""
        self.call("DEL", _NAME)
        self.wait(lambda: not any(node.call("SCHEDULE", "LIST") for node in self.living()), "gone")

    def living(self) -> list[Node]:
        """The nodes that run."""
        return self.fleet.living()

    def job(self) -> list[Any]:
        """The job of the schedule, with a copy on another node."""
        return ["QUEUE", self.queue, "body", "REPLICATE", 2, "RETRY", 5]

    def call(self, *words: Any) -> Any:
        """SCHEDULE, at a node that runs."""
        return self.living()[0].call("SCHEDULE", *words)

    def shown(self) -> dict[str, Any]:
        """The schedule as a node shows it."""
        flat = self.call("GET", _NAME)
        return {key.decode(): value for key, value in zip(flat[::2], flat[1::2], strict=True)}

    def collect(self) -> int:
        """Take all jobs that can be had now; how many there were."""
        count = 0
        for node in self.living():
            jobs = node.call("GETJOB", "NOHANG", "COUNT", 100, "FROM", self.queue) or []
            for job in jobs:
                node.call("ACKJOB", job[1])
                self.taken[job[1][:35]] += 1
            count += len(jobs)
        return count

    def wait_for_last(self, last_s: int) -> None:
        """Take jobs until the occurrence at this time has been made, and all before it are here."""

        def there() -> bool:
            self.collect()
            return bool(self.shown()["last"] >= last_s and not self.missing(last_s))

        self.wait(there, f"the occurrence at {last_s}")

    def missing(self, last_s: int) -> list[int]:
        """Times whose jobs are not here yet."""
        return [
            time_s
            for time_s in range(self.start_s + 1, last_s + 1)
            if id_start(occurrence_key(_NAME, time_s), self.origin) not in self.taken
        ]

    def wait_for_other(self, maker: str) -> None:
        """Wait until another node makes the jobs."""
        self.wait(lambda: self.shown()["node"].decode() != maker, "another node takes over")

    def test_killed(self) -> None:
        """When the node that makes the jobs is killed, another one goes on where it ended, and it
        begins again when it is back; each time every second has its job, and one only."""
        self.wait_for_last(self.start_s + 3)
        for _ in range(KILLS):
            maker = self.shown()["node"].decode()
            victim = next(node for node in self.nodes if node.id == maker)
            self.wait(lambda: self.collect() == 0, "no job is under way")
            victim.kill()
            killed_s = int(time.time())
            self.wait_for_other(maker)
            self.wait_for_last(killed_s + 2)
            victim.boot()
            self.fleet.wait_until_agreed()
            self.wait_for_last(int(time.time()) + 1)
        self.assertEqual([], [job_id for job_id, count in self.taken.items() if count > 1])
        last_s = self.shown()["last"] + 60
        expected = {
            id_start(occurrence_key(_NAME, time_s), self.origin)
            for time_s in range(self.set_s + 1, last_s)
        }
        self.assertEqual(set(), set(self.taken) - expected)

    def test_everywhere(self) -> None:
        """What is set, paused and resumed at one node holds at all of them, and a node that was
        away gets it."""
        away = self.nodes[2]
        away.kill()
        self.nodes[1].call("SCHEDULE", "PAUSE", _NAME)
        away.boot()

        def states() -> set[bytes]:
            return {dict(self.pairs(node))[b"state"] for node in self.nodes}

        self.wait(lambda: states() == {b"paused"}, "paused everywhere")
        away.call("SCHEDULE", "RESUME", _NAME)
        self.wait(lambda: states() == {b"on"}, "resumed everywhere")

    @staticmethod
    def pairs(node: Node) -> list[tuple[bytes, Any]]:
        """The fields of the schedule at a node; without any, its state is empty."""
        rows = node.call("SCHEDULE", "LIST")
        flat = rows[0] if rows else [b"state", b""]
        return list(zip(flat[::2], flat[1::2], strict=True))
