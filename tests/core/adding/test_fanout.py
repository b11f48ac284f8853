"""ADDJOB to a queue whose jobs are added to other queues, too."""

from __future__ import annotations

from disque_tx.commands.base.values import Error, Status
from disque_tx.core.base.client import BLOCKED_TASK, NOT_BLOCKED, Client
from disque_tx.core.jobs.addrequest import AddRequest, Unique
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.errors import CommandError
from disque_tx.messages.bus import JobSignal
from disque_tx.messages.bustypes import DELJOB, GOTJOB
from tests.core.bench import NodeCase
from tests.core.peerbench import B, C, PeerCase


def request(queue: bytes = b"a", **options: object) -> AddRequest:
    """ADDJOB with these options."""
    made = AddRequest(queue, b"body")
    made.retry_s = 5
    for name, value in options.items():
        setattr(made, name, value)
    return made


class FanoutTests(NodeCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.node.policies.set(b"a", b"copy-to", b"b c")

    def added(self, wanted: AddRequest) -> object:
        """The reply to ADDJOB."""
        client = self.connect()
        self.node.add_job(client, wanted)
        (value,) = self.replies(client)
        return value

    def test_all_queues(self) -> None:
        """Each queue gets a job of its own; the producer gets the ID of the one that it named."""
        answer = self.added(request())
        assert isinstance(answer, Status)
        (job_id,) = self.get(b"a")
        self.assertEqual(answer, Status(job_id))
        copies = [self.job(self.get(name)[0]) for name in (b"b", b"c")]
        self.assertEqual([(b"body", 5)] * 2, [(job.body, job.retry_s) for job in copies])
        self.assertEqual((3, 2), (self.node.totals.added, self.node.totals.copied))

    def test_options(self) -> None:
        """Options of the request hold in every queue; what it leaves open is up to each queue."""
        self.node.policies.set(b"b", b"ttl", b"60")
        self.added(request(delay_s=3))
        self.assertEqual([0, 0, 0], [self.length(name) for name in (b"a", b"b", b"c")])
        lives = {job.queue: job.life_ms for job in self.node.jobs.table.values()}
        self.assertEqual({b"a": 86_400_000, b"b": 60_000, b"c": 86_400_000}, lives)

    def test_no_chain(self) -> None:
        """A copy is not copied on: two nodes may have made a circle at once."""
        self.node.policies.set(b"b", b"copy-to", b"a c")
        self.added(request())
        self.assertEqual([1, 1, 1], [self.length(name) for name in (b"a", b"b", b"c")])

    def test_own_queue(self) -> None:
        """A pattern whose copies go to one of its own queues adds one job to that."""
        self.node.policies.set(b"log*", b"copy-to", b"logs")
        self.added(request(b"logs"))
        self.assertEqual(1, self.length(b"logs"))

    def test_all_or_none(self) -> None:
        """If one queue takes no jobs the producer gets its error, and no queue has a job."""
        self.node.pause(b"c", PAUSE_IN)
        client = self.connect()
        error = self.assertRaises(CommandError, self.node.add_job, client, request())
        self.assertEqual("PAUSED", error.code)
        self.assertEqual(0, len(self.node.jobs))

    def test_keys(self) -> None:
        """A key is for one job: it is refused where several are added."""
        wanted = request(unique=Unique(b"key"))
        error = self.assertRaises(CommandError, self.node.add_job, self.connect(), wanted)
        self.assertIn("UNIQUE is not possible in a queue", str(error.text))
        self.assertEqual(0, len(self.node.jobs))

    def test_lengths(self) -> None:
        """MAXLEN is about the queue that is named; the others have ``max-length``."""
        self.added(request(b"b"))
        self.added(request(maxlen=1))
        self.node.policies.set(b"b", b"max-length", b"2")
        error = self.assertRaises(CommandError, self.added, request())
        self.assertEqual("MAXLEN", error.code)
        self.assertEqual([1, 2], [self.length(b"a"), self.length(b"b")])


class CopiesTests(PeerCase):
    """Several nodes."""

    peers = (B, C)

    def setUp(self) -> None:
        super().setUp()
        self.node.policies.set(b"a", b"copy-to", b"b")

    def ask(self, **options: int) -> Client:
        """ADDJOB with a copy on another node for each of the two jobs."""
        client = self.connect()
        wanted = request(replicate=2)
        for name, value in options.items():
            setattr(wanted, name, value)
        self.node.add_job(client, wanted)
        return client

    def confirm(self, queue: bytes) -> bytes:
        """The other node has the job of this queue, whose ID is returned."""
        (wait,) = [w for w in self.node.waiters.copies.values() if w.job.queue == queue]
        job = wait.job
        holder = next(node for node in job.nodes if node in self.peers)
        self.receive_signal(holder, GOTJOB, job.id)
        return job.id

    def deleted(self, peer: bytes) -> set[bytes]:
        """The jobs that this node was told to delete, as a set of IDs."""
        signals = [one for one in self.sent_to(peer) if isinstance(one, JobSignal)]
        return {one.job_id for one in signals if one.type == DELJOB}

    def test_waits_for_all(self) -> None:
        """The producer is answered when the jobs of all queues have their copies."""
        client = self.ask()
        job_id = self.confirm(b"a")
        self.assertEqual((BLOCKED_TASK, []), (client.blocked, self.replies(client)))
        self.confirm(b"b")
        self.assertEqual([Status(job_id)], self.replies(client))
        self.assertEqual(NOT_BLOCKED, client.blocked)

    def test_answered_in_time(self) -> None:
        """What was confirmed in time is not withdrawn when the time that was given is over."""
        client = self.ask(timeout_ms=1_000)
        ids = {self.confirm(b"a"), self.confirm(b"b")}
        self.assertEqual(1, len(self.replies(client)))
        self.pass_slowly(2_000)
        self.assertEqual(ids, {job.id for job in self.node.jobs.table.values()})
        self.assertEqual((1, 1), (self.length(b"a"), self.length(b"b")))

    def test_time_over(self) -> None:
        """If one has no copies in time all are withdrawn, from every node that got one."""
        client = self.ask(timeout_ms=1_000)
        self.confirm(b"b")
        jobs = list(self.node.jobs.table.values())
        self.clear_sent()
        self.pass_slowly(1_100)
        (answer,) = self.replies(client)
        assert isinstance(answer, Error)
        self.assertIn("NOREPL Timeout reached", str(answer))
        self.assertEqual((0, 0), (len(self.node.jobs), self.length(b"b")))
        for peer in self.peers:
            got = {job.id for job in jobs if peer in job.nodes}
            self.assertEqual(got, self.deleted(peer))

    def test_withdrawn(self) -> None:
        """A job that is deleted while it waits for copies takes the others with it."""
        client = self.ask()
        (wait,) = [w for w in self.node.waiters.copies.values() if w.job.queue == b"b"]
        self.node.delete([wait.job.id])
        self.node.serve()
        (answer,) = self.replies(client)
        self.assertIn("NOREPL job removed", str(answer))
        self.assertEqual(0, len(self.node.jobs))

    def test_asynchronous(self) -> None:
        """ASYNC waits for no copies."""
        client = self.ask(asynchronous=True)
        (answer,) = self.replies(client)
        assert isinstance(answer, Status)
        self.assertEqual((1, 1), (self.length(b"a"), self.length(b"b")))

    def test_client_gone(self) -> None:
        """Without its client the jobs are added all the same, or withdrawn when it takes too
        long; nobody is answered."""
        client = self.ask(timeout_ms=1_000)
        self.node.client_gone(client)
        self.confirm(b"a")
        self.confirm(b"b")
        self.assertEqual(([], 2), (self.replies(client), len(self.node.jobs)))

    def test_flushed(self) -> None:
        """FLUSHALL in the middle answers the producer, and leaves nothing behind."""
        client = self.ask()
        self.node.flush_all()
        (answer,) = self.replies(client)
        self.assertIn("NOREPL", str(answer))
        self.assertEqual(({}, 0), (self.node.waiters.watched, len(self.node.jobs)))
