"""The events of jobs that a node reports for the event log (docs/reference/events.md)."""

from __future__ import annotations

from disque_tx.core.eviction import evict
from disque_tx.messages.bus import JobSignal, QueueSignal
from disque_tx.messages.bustypes import DELJOB, GOTJOB, NEEDJOBS, YOURJOBS
from tests.core.bench import NodeCase, add_request, make_job
from tests.core.peerbench import B, C, PeerCase
from tests.core.recordedevents import RecordedEvents


class EventTests(NodeCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.events = RecordedEvents()
        self.node.outbox.events = self.events

    def test_life(self) -> None:
        """The events of a job are reported in order, with how long it waited and was processed."""
        job_id = self.add()
        self.pass_ms(40)
        self.get(b"q")
        self.pass_ms(300)
        self.node.acknowledge([job_id])
        expected = [
            ("added", "", 7, -1),
            ("queued", "", 0, -1),
            ("delivered", "", 7, 40),
            ("acked", "", 0, 300),
        ]
        self.assertEqual(expected, self.events.take())
        self.assertEqual({job_id}, set(self.events.ids))

    def test_time(self) -> None:
        """The events of a turn carry the time of the turn."""
        self.begin(self.now_ms + 5, 1_795_000_000_000_123)
        self.assertEqual(1_795_000_000_000_123, self.events.wall_us)

    def test_ttl(self) -> None:
        """The TTL of a new job is the requested one, even after the clock was set back."""
        self.add(ttl_s=600)
        self.begin(self.now_ms, self.wall_us - 3_600_000_000)
        self.add(ttl_s=600)
        self.assertEqual([600, 600], self.events.ttls_s)

    def test_blocked_client(self) -> None:
        """A job that goes directly to a waiting client has a delivered event, too."""
        self.wait(b"q")
        self.add()
        self.assertEqual(("delivered", "", 7, 0), self.events.take()[-1])

    def test_delay(self) -> None:
        """A delayed job is queued when its delay is over, for the first time."""
        self.add(delay_s=2)
        self.pass_ms(2_000)
        self.assertEqual(("queued", "delay", 0, -1), self.events.take()[-1])

    def test_comes_back(self) -> None:
        """The reason of a requeue distinguishes a slow worker from a failing one."""
        job_id = self.add(retry_s=10)
        self.get(b"q")
        self.events.take()
        self.pass_ms(10_000)
        self.assertEqual([("requeued", "retry", 0, -1)], self.events.take())
        self.get(b"q")
        self.pass_ms(5)
        self.events.take()
        self.node.enqueue([job_id], True)
        expected = [("nacked", "", 0, 5), ("requeued", "nack", 0, -1)]
        self.assertEqual(expected, self.events.take())
        self.node.dequeue([job_id])
        self.node.enqueue([job_id], False)
        self.assertEqual([("requeued", "command", 0, -1)], self.events.take())

    def test_refused_requeue(self) -> None:
        """What does not happen is not reported: a job with RETRY 0 is not queued again."""
        job_id = self.add(retry_s=0, replicate=1)
        self.get(b"q")
        self.events.take()
        self.node.enqueue([job_id], True)
        self.assertEqual([], self.events.take())

    def test_working(self) -> None:
        """WORKING is reported with the time since delivery."""
        job_id = self.add(retry_s=60)
        self.get(b"q")
        self.pass_ms(700)
        self.events.take()
        self.node.working(job_id)
        self.assertEqual([("working", "", 60, 700)], self.events.take())

    def test_ends(self) -> None:
        """Every other end of a job has its own event."""
        expired, in_queue, fast, deleted = (self.add(ttl_s=s) for s in (1, 2, 100, 100))
        self.events.take()
        self.node.fast_acknowledge([fast])
        self.node.delete([deleted])
        expected = [("fast-acked", "", 0, -1), ("deleted", "command", 0, -1)]
        self.assertEqual(expected, self.events.take())
        self.pass_ms(1_000)
        self.assertEqual([("expired", "", 0, -1)], self.events.take())
        self.begin(self.now_ms + 2_000, self.wall_us)
        self.get(b"q")
        self.assertEqual([("expired", "", 0, -1)], self.events.take())
        self.assertEqual([expired, in_queue], self.events.ids[-2:])

    def test_evicted(self) -> None:
        """The event of an evicted job says that it was not acknowledged."""
        job_id = self.add(retry_s=0, replicate=1)
        self.get(b"q")
        self.events.take()
        self.node.memory.limit = 1
        evict(self.node, True, lambda: 0.0)
        self.assertEqual(("evicted", "", 0, -1), self.events.take()[0])
        self.assertEqual(job_id, self.events.ids[-1])

    def test_queue_and_node(self) -> None:
        """Commands that affect many jobs at once have their own events."""
        self.add()
        self.events.take()
        self.node.pause(b"q", 3)
        self.node.flush_all()
        self.assertEqual([("paused", b"q", 3), ("flushed", 1)], self.events.take())

    def test_no_event_sink(self) -> None:
        """Without an event sink nothing is reported and everything else works."""
        self.node.outbox.events = None
        job_id = self.add()
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual([], self.events.take())


class ClusterEventTests(PeerCase):
    """Several nodes."""

    def setUp(self) -> None:
        super().setUp()
        self.events = RecordedEvents()
        self.node.outbox.events = self.events

    def started_job(self, replicate: int = 2) -> bytes:
        """An ADDJOB that waits for copies; the ID of its job."""
        request = add_request(replicate=replicate, ttl_s=100, timeout_ms=500)
        self.node.add_job(self.connect(), request)
        return self.events.ids[-1]

    def holder(self, job_id: bytes) -> bytes:
        """The other node that is asked to hold the job."""
        (holder,) = set(self.job(job_id).nodes) - {self.node.id}
        return holder

    def test_replicated(self) -> None:
        """The job is accepted, and then queued, when enough nodes have confirmed their copies."""
        job_id = self.started_job()
        self.receive_signal(self.holder(job_id), GOTJOB, job_id)
        expected = [("added", "", 7, -1), ("replicated", "", 2, -1), ("queued", "", 0, -1)]
        self.assertEqual(expected, self.events.take())

    def test_not_replicated(self) -> None:
        """A job that could not be replicated in time is reported as deleted."""
        self.started_job()
        self.pass_ms(500)
        self.assertEqual(("deleted", "not-replicated", 0, -1), self.events.take()[-1])

    def test_asynchronous(self) -> None:
        """An ASYNC job is reported as accepted at once, and as replicated later."""
        client = self.connect()
        self.node.add_job(client, add_request(replicate=2, ttl_s=100, asynchronous=True))
        job_id = self.status(client)
        expected = [("added", "async", 7, -1), ("queued", "", 0, -1)]
        self.assertEqual(expected, self.events.take())
        self.receive_signal(self.holder(job_id), GOTJOB, job_id)
        self.assertEqual([("replicated", "", 2, -1)], self.events.take())

    def test_moves(self) -> None:
        """Jobs that arrive from and go to other nodes are reported with the ID of the node."""
        self.receive_jobs(B, YOURJOBS, make_job(5))
        expected = [("imported", B), ("queued", "import", 0, -1)]
        self.assertEqual(expected, self.events.take())
        self.pass_ms(6_000)
        self.receive(C, QueueSignal(NEEDJOBS, b"q", 1))
        self.assertEqual([("exported", C)], self.events.take())

    def test_deleted_by_peer(self) -> None:
        """A job that another node deletes is reported as deleted by a peer."""
        self.receive_jobs(B, YOURJOBS, make_job(5))
        self.events.take()
        self.receive(B, JobSignal(DELJOB, make_job(5).id))
        self.assertEqual([("deleted", "peer", 0, -1)], self.events.take())

    def test_acknowledged_elsewhere(self) -> None:
        """An acknowledgement of a job that this node does not hold is reported here as well."""
        self.node.acknowledge([make_job(9).id])
        self.assertEqual([("acked", "not-held", 0, -1)], self.events.take())
