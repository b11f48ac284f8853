"""Machines are lost with all they have, one after the other, and replaced by new ones; and nodes
that are started again without their jobs."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from typing import Final

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.cluster.totalqueue import TotalQueue

#: How many machines are lost.
LOSSES: Final = int(os.environ.get("DISQUE_TX_LOSSES", "5"))
_PARKED: Final = 100


class LossTests(FleetTestCase):
    """Five nodes without a log."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 5
    directives = ("appendonly no", "replicate-again-after 1")

    def test_replaced_one_by_one(self) -> None:
        """No job with several copies is lost when every machine is replaced, one at a time."""

        def lose(node: Node, parked: list[str]) -> None:
            old = node.id
            node.lose()
            self.wait(lambda: self.whole(parked), "all jobs have two copies again", 240)
            self.replace(node, old)

        self.check_that_no_job_is_lost(lose)

    def test_started_again_one_by_one(self) -> None:
        """No job with several copies is lost when every node is killed and started again without
        its jobs, one after the other."""

        def start_again(node: Node, parked: list[str]) -> None:
            node.kill()
            node.boot()
            self.fleet.wait_until_agreed()
            self.wait(lambda: self.whole(parked), "all jobs have two copies again", 240)
            self.wait(self.is_settled, "no node asks another for its copies", 60)

        self.check_that_no_job_is_lost(start_again)

    def check_that_no_job_is_lost(self, hurt: Callable[[Node, list[str]], None]) -> None:
        """Neither of those that wait all the time, nor of producers and consumers meanwhile."""
        parked = [
            random.choice(self.nodes).add(f"{self.queue}-parked", f"{n}", replicate=2, retry=3600)
            for n in range(_PARKED)
        ]
        load = TotalQueue(self.nodes, self.queue, 3, 2)
        load.begin()
        try:
            for loss in range(LOSSES):
                hurt(self.nodes[loss % self.size], parked)
        finally:
            load.end()
        load.drain(20, 180)
        print(f"\n      {load.report()}", file=sys.stderr, flush=True)
        self.assertEqual((set(), set()), (load.lost, load.unexpected))
        found: set[str] = set()

        def fetch() -> bool:
            for node, job_id in self.fleet.fetch(f"{self.queue}-parked", 0.5):
                node.call("ACKJOB", job_id)
                found.add(job_id)
            return set(parked) <= found

        # A job that was queued at a lost node would be queued again when RETRY is over.
        for job_id in parked:
            self.enqueue(job_id)
        self.wait(fetch, "every job that waited is delivered", 120)
        self.assertEqual(set(parked), found)

    def is_settled(self) -> bool:
        """Whether all nodes know that no copies are lacking."""
        fields = ("jobs_lacking_copies", "copies_under_way", "holders_asked")
        figures = [node.figures("copies") for node in self.nodes]
        return all(figure[field] == "0" for figure in figures for field in fields)

    def whole(self, jobs: list[str]) -> bool:
        """Whether every job has two copies on nodes that run."""
        return all(len(self.fleet.holders(job_id)) >= 2 for job_id in jobs)

    def enqueue(self, job_id: str) -> None:
        """Queue a job at one of its holders, unless some node has it in its queue."""
        holders = self.fleet.holders(job_id)
        if not any(node.state(job_id) == "queued" for node in holders):
            holders[0].call("ENQUEUE", job_id)

    def replace(self, node: Node, old: str) -> None:
        """Start a new node in the place of a lost one, which all others forget."""
        others = self.fleet.living()
        for other in others:
            other.call("CLUSTER", "FORGET", old)
        node.boot()
        others[0].call("CLUSTER", "MEET", node.ip, node.port, node.bus_port)
        self.fleet.wait_until_agreed()
