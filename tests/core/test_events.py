"""What a node tells about its jobs, for the event log (docs/reference/events.md)."""

from __future__ import annotations

from disque_tx.busmessages import DELJOB, GOTJOB, NEEDJOBS, YOURJOBS, JobSignal, QueueSignal
from disque_tx.core.memory import evict
from tests.core.bench import NodeCase, add_request, make_job
from tests.core.notes import Notes
from tests.core.peerbench import B, C, PeerCase


class EventTests(NodeCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.notes = Notes()
        self.node.outbox.events = self.notes

    def test_life(self) -> None:
        """The way of a job is told in order, with how long it waited and was worked on."""
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
        self.assertEqual(expected, self.notes.take())
        self.assertEqual({job_id}, set(self.notes.ids))

    def test_time(self) -> None:
        """Events of a turn have the time of the turn."""
        self.begin(self.now_ms + 5, 1_795_000_000_000_123)
        self.assertEqual(1_795_000_000_000_123, self.notes.wall_us)

    def test_ttl(self) -> None:
        """The TTL of a new job is what was asked for, after the clock was set back too."""
        self.add(ttl_s=600)
        self.begin(self.now_ms, self.wall_us - 3_600_000_000)
        self.add(ttl_s=600)
        self.assertEqual([600, 600], self.notes.ttls_s)

    def test_blocked_client(self) -> None:
        """A job that goes to a client who waits for it is delivered all the same."""
        self.wait(b"q")
        self.add()
        self.assertEqual(("delivered", "", 7, 0), self.notes.take()[-1])

    def test_delay(self) -> None:
        """A delayed job is queued when its delay is over, for the first time."""
        self.add(delay_s=2)
        self.pass_ms(2_000)
        self.assertEqual(("queued", "delay", 0, -1), self.notes.take()[-1])

    def test_comes_back(self) -> None:
        """Why a job is queued again is what tells a slow worker from a failing one."""
        job_id = self.add(retry_s=10)
        self.get(b"q")
        self.notes.take()
        self.pass_ms(10_000)
        self.assertEqual([("requeued", "retry", 0, -1)], self.notes.take())
        self.get(b"q")
        self.pass_ms(5)
        self.notes.take()
        self.node.enqueue([job_id], True)
        expected = [("nacked", "", 0, 5), ("requeued", "nack", 0, -1)]
        self.assertEqual(expected, self.notes.take())
        self.node.dequeue([job_id])
        self.node.enqueue([job_id], False)
        self.assertEqual([("requeued", "command", 0, -1)], self.notes.take())

    def test_refused_requeue(self) -> None:
        """What does not happen is not told: RETRY 0 is not queued again."""
        job_id = self.add(retry_s=0, replicate=1)
        self.get(b"q")
        self.notes.take()
        self.node.enqueue([job_id], True)
        self.assertEqual([], self.notes.take())

    def test_working(self) -> None:
        """Somebody goes on working."""
        job_id = self.add(retry_s=60)
        self.get(b"q")
        self.pass_ms(700)
        self.notes.take()
        self.node.working(job_id)
        self.assertEqual([("working", "", 60, 700)], self.notes.take())

    def test_ends(self) -> None:
        """Every other end of a job has its name."""
        expired, in_queue, fast, deleted = (self.add(ttl_s=s) for s in (1, 2, 100, 100))
        self.notes.take()
        self.node.fast_acknowledge([fast])
        self.node.delete([deleted])
        expected = [("fast-acked", "", 0, -1), ("deleted", "command", 0, -1)]
        self.assertEqual(expected, self.notes.take())
        self.pass_ms(1_000)
        self.assertEqual([("expired", "", 0, -1)], self.notes.take())
        self.begin(self.now_ms + 2_000, self.wall_us)
        self.get(b"q")
        self.assertEqual([("expired", "", 0, -1)], self.notes.take())
        self.assertEqual([expired, in_queue], self.notes.ids[-2:])

    def test_evicted(self) -> None:
        """A job that made room was not acknowledged by anybody."""
        job_id = self.add(retry_s=0, replicate=1)
        self.get(b"q")
        self.notes.take()
        self.node.memory.limit = 1
        evict(self.node, True, lambda: 0.0)
        self.assertEqual(("evicted", "", 0, -1), self.notes.take()[0])
        self.assertEqual(job_id, self.notes.ids[-1])

    def test_queue_and_node(self) -> None:
        """What stops or forgets many jobs at once explains what happens to each."""
        self.add()
        self.notes.take()
        self.node.pause(b"q", 3)
        self.node.flush_all()
        self.assertEqual([("paused", b"q", 3), ("flushed", 1)], self.notes.take())

    def test_nobody_listens(self) -> None:
        """Without a sink nothing is told and everything works."""
        self.node.outbox.events = None
        job_id = self.add()
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual([], self.notes.take())


class ClusterEventTests(PeerCase):
    """Several nodes."""

    def setUp(self) -> None:
        super().setUp()
        self.notes = Notes()
        self.node.outbox.events = self.notes

    def begun(self, replicate: int = 2) -> bytes:
        """An ADDJOB that waits for copies; the ID of its job."""
        request = add_request(replicate=replicate, ttl_s=100, timeout_ms=500)
        self.node.add_job(self.connect(), request)
        return self.notes.ids[-1]

    def holder(self, job_id: bytes) -> bytes:
        """The other node that is asked to hold the job."""
        (holder,) = set(self.job(job_id).nodes) - {self.node.id}
        return holder

    def test_replicated(self) -> None:
        """The job is accepted when enough nodes hold it, and queued then."""
        job_id = self.begun()
        self.receive_signal(self.holder(job_id), GOTJOB, job_id)
        expected = [("added", "", 7, -1), ("replicated", "", 2, -1), ("queued", "", 0, -1)]
        self.assertEqual(expected, self.notes.take())

    def test_not_replicated(self) -> None:
        """A job that was refused after all is told to be gone."""
        self.begun()
        self.pass_ms(500)
        self.assertEqual(("deleted", "not-replicated", 0, -1), self.notes.take()[-1])

    def test_asynchronous(self) -> None:
        """ASYNC: accepted at once, replicated later."""
        client = self.connect()
        self.node.add_job(client, add_request(replicate=2, ttl_s=100, asynchronous=True))
        job_id = self.status(client)
        expected = [("added", "async", 7, -1), ("queued", "", 0, -1)]
        self.assertEqual(expected, self.notes.take())
        self.receive_signal(self.holder(job_id), GOTJOB, job_id)
        self.assertEqual([("replicated", "", 2, -1)], self.notes.take())

    def test_moves(self) -> None:
        """Jobs that come from and go to other nodes are told with the node."""
        self.receive_jobs(B, YOURJOBS, make_job(5))
        expected = [("imported", B), ("queued", "import", 0, -1)]
        self.assertEqual(expected, self.notes.take())
        self.pass_ms(6_000)
        self.receive(C, QueueSignal(NEEDJOBS, b"q", 1))
        self.assertEqual([("exported", C)], self.notes.take())

    def test_deleted_by_peer(self) -> None:
        """Another node said that nobody needs the job."""
        self.receive_jobs(B, YOURJOBS, make_job(5))
        self.notes.take()
        self.receive(B, JobSignal(DELJOB, make_job(5).id))
        self.assertEqual([("deleted", "peer", 0, -1)], self.notes.take())

    def test_acknowledged_elsewhere(self) -> None:
        """An acknowledgement that came to a node without the job is told there, too."""
        self.node.acknowledge([make_job(9).id])
        self.assertEqual([("acked", "not-held", 0, -1)], self.notes.take())
