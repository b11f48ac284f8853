"""Nodes of which some are lost, and what the others hold afterwards."""

from __future__ import annotations

from disque_tx.core.jobs.job import Job
from disque_tx.core.nodes import failure
from disque_tx.messages.nodes import LEAVING
from disque_tx.messages.records import ACKED
from tests.core.flowbench import Direction, FlowTestCase

#: For how long nodes fail here before they are lost, and long enough for all that follows.
AFTER_MS = 12_000
LONG_MS = 60_000


class HealCase(FlowTestCase):
    """Tests with nodes that are lost for good."""

    nodes = 5

    def setUp(self) -> None:
        super().setUp()
        self.dead: set[int] = set()
        for node in self.flow.nodes:
            node.healing.nodes.after_ms = AFTER_MS

    def add_job(self, at: int, replicate: int = 2, **options: int) -> bytes:
        """A job with copies, added at one node; its ID."""
        before = {job.id for job in self.flow.nodes[at].jobs.table.values()}
        options.setdefault("retry_s", 600)
        self.add(at, b"q", 1, replicate=replicate, **options)
        (job,) = [j for j in self.flow.nodes[at].jobs.table.values() if j.id not in before]
        return job.id

    def job(self, at: int, job_id: bytes) -> Job:
        """The job as one node knows it."""
        job = self.flow.nodes[at].jobs.get(job_id)
        assert job is not None
        return job

    def holders(self, job_id: bytes) -> list[int]:
        """The nodes that live and have a copy of the job that is not done."""
        found = []
        for at, node in enumerate(self.flow.nodes):
            job = node.jobs.get(job_id)
            if at not in self.dead and job is not None and job.state != ACKED:
                found.append(at)
        return found

    def other_holder(self, at: int, job_id: bytes) -> int:
        """A node, other than ``at``, with a copy."""
        return next(here for here in self.holders(job_id) if here != at)

    def kill(self, dead: int) -> None:
        """A node stops for good, and the others know that it fails."""
        self.dead.add(dead)
        self.cut(dead)
        for here, node in enumerate(self.flow.nodes):
            if here not in self.dead:
                failure.mark_failed(self.flow.entry(here, dead), self.flow.now_ms)
                node.membership.refresh()
        self.flow.stop(dead)

    def mark_failed(self, at: int) -> None:
        """A node cannot be reached for a time."""
        self.cut(at)
        for here, node in enumerate(self.flow.nodes):
            if here not in self.dead and here != at:
                failure.mark_failed(self.flow.entry(here, at), self.flow.now_ms)
                node.membership.refresh()

    def recover(self, at: int) -> None:
        """A node that could not be reached can be again."""
        for here in range(len(self.flow.nodes)):
            if here not in self.dead and here != at:
                failure.clear_failure(self.flow.entry(here, at))
                self.flow.connect(here, at)
                self.flow.connect(at, here)

    def cut(self, at: int) -> None:
        """No message reaches this node, or comes from it, any more."""
        for here in range(len(self.flow.nodes)):
            if here == at:
                continue
            for pair in ((here, at), (at, here)):
                link = self.flow.entry(*pair).link
                if link is not None:
                    assert isinstance(link.sink, Direction)
                    link.sink.cut = True
                    self.flow.disconnect(*pair)

    def announce_leaving(self, at: int) -> None:
        """A node says that it leaves the cluster."""
        self.flow.nodes[at].membership.set_leaving(True)
        self.flow.nodes[at].membership.refresh()
        for here in range(len(self.flow.nodes)):
            if here != at and here not in self.dead:
                self.flow.entry(here, at).flags |= LEAVING
                self.flow.nodes[here].membership.refresh()

    def pass_ms(self, ms: int) -> None:
        """Let time pass; nodes look at each other once a second."""
        end_ms = self.flow.now_ms + ms
        while self.flow.now_ms < end_ms:
            self.flow.tick()
            self.flow.run(min(960, end_ms - self.flow.now_ms))

    def made(self) -> list[int]:
        """How many copies each node has made again."""
        return [int(node.totals.copies_made) for node in self.flow.nodes]
