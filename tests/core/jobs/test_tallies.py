"""Kept counts: delayed jobs, and jobs in flight, by queue."""

from __future__ import annotations

from random import Random

from disque_tx.core import recovery
from disque_tx.core.base.totals import Totals
from disque_tx.core.jobs.job import BACKOFF, DELAYED, IN_FLIGHT, NOWHERE
from disque_tx.core.jobs.tallies import Tallies
from disque_tx.core.node import Node
from disque_tx.core.queues.queues import IDLE_MS
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import ENQUEUE, GOTJOB, QUEUED, REPLJOB
from tests.core.bench import ME, NodeCase
from tests.core.peerbench import B, PeerCase, peer_job


def tally(node: Node, name: bytes = b"q") -> tuple[int, int, int]:
    """Delayed, in backoff, in flight."""
    found = node.state.tallies.get(name)
    if found is None:
        return 0, 0, 0
    return int(found.delayed), int(found.backoff), int(found.in_flight)


def walked(node: Node, name: bytes = b"q") -> tuple[int, int, int]:
    """The same by a walk over all jobs."""
    places = [job.place for job in node.jobs.table.values() if job.queue == name]
    return places.count(DELAYED), places.count(BACKOFF), places.count(IN_FLIGHT)


class TallyTests(NodeCase):
    """One node."""

    def test_in_flight(self) -> None:
        """A job is in flight from its delivery until it is acknowledged, returned, deleted, or
        expired."""
        jobs = [self.add(ttl_s=100, retry_s=10) for _ in range(4)]
        self.get(b"q", count=4)
        self.assertEqual((0, 0, 4), tally(self.node))
        self.node.acknowledge(jobs[:1])
        self.node.enqueue(jobs[1:2], True)
        self.node.delete(jobs[2:3])
        self.assertEqual((0, 0, 1), tally(self.node))
        self.pass_ms(200_000)
        self.assertEqual((0, 0, 0), tally(self.node))
        self.assertEqual(0, self.node.totals.in_flight)

    def test_delayed(self) -> None:
        """A job is delayed until it is queued, however that comes about, or gone."""
        first = self.add(delay_s=5)
        second = self.add(delay_s=6)
        third = self.add(delay_s=7)
        self.assertEqual((3, 0, 0), tally(self.node))
        self.pass_ms(5_000)
        self.assertEqual([first], self.get(b"q"))
        self.assertEqual((2, 0, 1), tally(self.node))
        self.node.enqueue([second], False)
        self.assertEqual((1, 0, 1), tally(self.node))
        self.node.delete([third])
        self.assertEqual((0, 0, 1), tally(self.node))

    def test_idle_queue(self) -> None:
        """The counts of a queue outlive the queue, which is forgotten when it is idle."""
        self.add(delay_s=4_000)
        self.node.queues.obtain(b"q", self.now_ms)
        self.node.queues.sweep(self.now_ms + IDLE_MS[0], 100)
        self.assertIsNone(self.node.queues.get(b"q"))
        self.assertEqual((1, 0, 0), tally(self.node))

    def test_flushed(self) -> None:
        """DEBUG FLUSHALL leaves nothing to count."""
        self.add()
        self.get(b"q")
        self.node.flush_all()
        self.assertEqual((0, 0, 0), tally(self.node))

    def test_bounded(self) -> None:
        """Queues that come and go leave no more than some empty tallies behind."""
        tallies = Tallies(Totals())
        for number in range(3_000):
            for by in (1, -1):
                tallies.change(b"q%d" % number, IN_FLIGHT, by)
        self.assertEqual(1_000, tallies.table.count)

    def test_in_use_again(self) -> None:
        """A tally that is in use again is not forgotten with the empty ones."""
        tallies = Tallies(Totals())
        for by in (1, -1, 1):
            tallies.change(b"q", DELAYED, by)
        for number in range(2_000):
            for by in (1, -1):
                tallies.change(b"q%d" % number, BACKOFF, by)
        found = tallies.get(b"q")
        assert found is not None
        self.assertEqual((1, 0, 0), tuple(found.of(place) for place in (DELAYED, BACKOFF, NOWHERE)))

    def test_empty_again_and_again(self) -> None:
        """A queue that is empty after every job has one tally, and costs other queues nothing."""
        tallies = Tallies(Totals())
        for name in (b"other", *[b"q"] * 3_000):
            for by in (1, -1):
                tallies.change(name, IN_FLIGHT, by)
        self.assertEqual(2, tallies.table.count)

    def test_restart(self) -> None:
        """Delays that go on after a restart are counted again."""
        job_id = self.add(delay_s=50)
        records = self.log.records
        self.node = self.new_node()
        self.node.begin(self.now_ms, self.wall_us)
        self.assertTrue(recovery.load(self.node, records[job_id], False))
        self.assertEqual((1, 0, 0), tally(self.node))

    def test_any_history(self) -> None:
        """After any sequence of commands the kept counts are those of a walk."""
        random = Random(5)
        known: list[bytes] = []
        for _ in range(3_000):
            act = random.randrange(8)
            some = [random.choice(known)] if known else []
            if act <= 1:
                delay_s = random.choice((0, 0, 3))
                known.append(self.add(ttl_s=60, retry_s=random.choice((2, 9)), delay_s=delay_s))
            elif act == 2:
                self.get(b"q")
            elif act == 3:
                self.node.enqueue(some, random.random() < 0.5)
            elif act == 4:
                random.choice((self.node.acknowledge, self.node.delete, self.node.dequeue))(some)
            elif act == 5 and some:
                try:
                    self.node.working(some[0])
                except CommandError:
                    known.remove(some[0])
            else:
                self.pass_ms(random.randrange(2_000))
            self.assertEqual(walked(self.node), tally(self.node))


class PeerTallyTests(PeerCase):
    """Jobs of several nodes: one of them counts each."""

    peers = (B,)

    def test_copy(self) -> None:
        """A copy of another node's delayed job is not counted here."""
        self.receive_jobs(B, REPLJOB, peer_job(1, (B, ME), delay_s=9))
        self.assertEqual((0, 0, 0), tally(self.node))

    def test_delayed_with_copies(self) -> None:
        """The node that made a job counts it as delayed, once it has its copies."""
        client = self.begin_add(2, delay_s=9)
        (wait,) = self.node.waiters.copies.values()
        self.assertEqual((0, 0, 0), tally(self.node))
        self.receive_signal(B, GOTJOB, wait.job.id)
        self.status(client)
        self.assertEqual((1, 0, 0), tally(self.node))

    def test_ordered(self) -> None:
        """A node that is ordered to queue a job later counts it meanwhile."""
        job = peer_job(1, (B, ME))
        self.receive_jobs(B, REPLJOB, job)
        self.receive_signal(B, ENQUEUE, job.id, aux=9)
        self.assertEqual((1, 0, 0), tally(self.node))

    def test_queued_elsewhere(self) -> None:
        """A delayed job that another node has queued is counted there."""
        job = self.replicated(B, delay_s=9)
        self.receive_signal(B, QUEUED, job.id)
        self.assertEqual((0, 0, 0), tally(self.node))
