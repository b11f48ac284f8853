"""A node is away while jobs with keys are done, and others are added with their keys."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.cluster.proxy import between

_ROUNDS: Final = int(os.environ.get("DISQUE_TX_ROUNDS", "1"))
_KEYS: Final = 60
#: How long a node that is back might do harm.
_AFTER_S: Final = 6.0


class _ReturnTests(FleetTestCase):
    """``copies``: of each job."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 3
    copies = 3
    directives: tuple[str, ...] = ("appendonly yes", "appendfsync always")
    proxied = True

    def add_all(self, node: Node, copies: int) -> list[str]:
        """New jobs, one with each key."""
        answers: list[Any] = [
            node.call(
                *("ADDJOB", self.queue, "body", 20_000, "REPLICATE", copies, "RETRY", 300),
                *("UNIQUE", f"{self.queue}-{number}", "WITHNEW"),
            )
            for number in range(_KEYS)
        ]
        self.assertEqual({1}, {fresh for _, fresh in answers})
        return [job_id.decode() for job_id, _ in answers]

    def check(self, away: Callable[[Node], None], back: Callable[[Node], None]) -> None:
        """Second jobs are added while the last node is away; all of them are delivered."""
        first, last = self.nodes[0], self.nodes[-1]
        for _ in range(_ROUNDS):
            done = self.add_all(first, self.copies)
            away(last)
            for job_id in done:
                first.call("ACKJOB", job_id)
            wanted = self.add_all(first, 2)
            back(last)
            self.fleet.wait_until_agreed()
            time.sleep(_AFTER_S)
            self.fetch_all(set(wanted))
            dropped = [self.dropped(node) for node in self.nodes]
            self.assertEqual([0] * self.size, dropped)

    def fetch_all(self, wanted: set[str]) -> None:
        """Wait until these jobs are delivered."""
        found: set[str] = set()

        def fetch() -> bool:
            for node, job_id in self.fleet.fetch(self.queue, 0.5):
                node.call("ACKJOB", job_id)
                found.add(job_id)
            return wanted <= found

        self.wait(fetch, "every job that was answered as new is delivered", 60)

    @staticmethod
    def dropped(node: Node) -> int:
        """How many jobs the node has ended since they had the key of another one."""
        text = node.call("INFO", "policies").decode()
        return int(text.split("total_keys_dropped:")[1].split()[0])

    def unreachable(self) -> None:
        """Wait until the others have noticed that the last node is away."""
        others, last = self.nodes[:-1], self.nodes[-1]
        self.wait(
            lambda: all(other.flags(last) & {"fail", "fail?"} for other in others),
            "the others notice that a node is away",
        )


class ThreeTests(_ReturnTests):
    """Three nodes with three copies of each job."""

    def test_killed(self) -> None:
        """A node that was killed has its old keys in its log."""
        self.check(Node.kill, Node.boot)

    def test_stopped(self) -> None:
        """So has one that was stopped for some seconds."""

        def stop(node: Node) -> None:
            node.terminate()
            node.alive = False
            node._hang_up()
            time.sleep(3)

        self.check(stop, Node.boot)

    def test_suspended(self) -> None:
        """One that stood still has them in memory."""

        def suspend(node: Node) -> None:
            node.suspend()
            self.unreachable()

        self.check(suspend, Node.resume)

    def test_cut_off(self) -> None:
        """So has one that the others could not reach."""

        def cut(node: Node) -> None:
            self.proxy().reset(between([node.ip], [other.ip for other in self.nodes[:-1]]))
            self.unreachable()

        self.check(cut, lambda node: self.proxy().heal())

    def test_leaving(self) -> None:
        """A node that was told to leave looks after no keys until it is told to stay."""
        self.check(
            lambda node: node.call("CLUSTER", "LEAVING", "yes"),
            lambda node: node.call("CLUSTER", "LEAVING", "no"),
        )


class FiveTests(_ReturnTests):
    """Five nodes with three copies of each job."""

    size = 5
    proxied = False

    def test_killed(self) -> None:
        """Not every node that looks after a key holds its job."""
        self.check(Node.kill, Node.boot)
