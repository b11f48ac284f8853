"""Notes of protocols about jobs."""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.notes import Note
from disque_tx.errors import LocalError
from tests.core.bench import MemoryLog, NodeCase, add_request


class CountingNote(Note):
    """What a protocol notes. ``seen``: what it was told about its job."""

    def __init__(self, owner: bytes, text: bytes) -> None:
        super().__init__(owner, text)
        self.seen: list[tuple[bytes, str]] = []

    def begins(self, job: Job) -> None:
        self.seen.append((job.id, "begins"))

    def moved(self, job: Job, was: i64) -> None:
        self.seen.append((job.id, "moved"))

    def ended(self, job: Job) -> None:
        self.seen.append((job.id, "ended"))


class NotesTests(NodeCase):
    """A protocol can rely on its notes as on the jobs."""

    def noted(self, data: bytes = b"1") -> bytes:
        """The ID of a job with a note, added at a node with a log."""
        self.node.outbox.log = self.log = MemoryLog()
        request = add_request()
        request.note = Note(b"line", data)
        client = self.connect()
        self.node.add_job(client, request)
        return self.status(client)

    def test_recorded(self) -> None:
        """A note is recorded behind its job, and when it changes."""
        job_id = self.noted()
        self.assertEqual([("load", job_id), ("note", job_id)], self.log.lines)
        changed = Note(b"line", b"2")
        self.node.state.notes.put(job_id, changed)
        self.node.state.notes.record(job_id, changed)
        self.assertEqual({job_id: (b"line", b"2")}, self.log.notes)

    def test_begins(self) -> None:
        """A note knows its job before it is queued, delayed, or copied to other nodes: a protocol
        counts it from then on."""
        for delay_s in (0, 5):
            request = add_request(delay_s=delay_s)
            request.note = note = CountingNote(b"line", b"1")
            client = self.connect()
            self.node.add_job(client, request)
            self.assertEqual([(self.status(client), "begins")], note.seen[:1])
            self.assertEqual(1, [what for _, what in note.seen].count("begins"))

    def test_ends_with_the_job(self) -> None:
        """A job that is done leaves nothing behind."""
        before = self.node.used_memory()
        for end in (self.node.acknowledge, self.node.delete, self.node.fast_acknowledge):
            end([self.noted()])
            self.assertEqual({}, self.node.state.notes.by_job)
        self.noted()
        self.node.flush_all()
        self.assertEqual({}, self.node.state.notes.by_job)
        self.node.queues.forget_all()
        self.assertEqual(before, self.node.used_memory())

    def test_counted_once(self) -> None:
        """A note that changes often takes the memory of one."""
        job_id = self.noted()
        before = self.node.used_memory()
        for number in range(5):
            self.node.state.notes.put(job_id, Note(b"line", b"%d" % number))
        self.assertEqual(before, self.node.used_memory())

    def test_too_long(self) -> None:
        """What could not be read again is not written."""
        self.assertRaises(LocalError, self.noted, b"x" * 513)

    def test_read(self) -> None:
        """A protocol gets its notes, and no others, whether it comes before the log or after it."""
        job_id = self.noted()
        job = self.job(job_id)
        found: list[tuple[bytes, bytes]] = []

        def read(job: Job, data: bytes) -> Note | None:
            found.append((job.id, data))
            return None

        notes = self.node.state.notes
        notes.read_by(b"other", read, self.node.jobs.get)
        notes.read_by(b"line", read, self.node.jobs.get)
        notes.load(job, b"line", b"2")
        self.assertEqual([(job_id, b"1"), (job_id, b"2")], found)
        self.assertEqual({}, notes.by_job)
        notes.load(job, b"third", b"3")
        self.assertEqual(b"3", notes.by_job[job_id].data())


class PriorityTests(NodeCase):
    """Priorities of one node."""

    def test_order(self) -> None:
        """The whole range is kept in order; jobs of the same priority come in order of age."""
        bodies = []
        for priority in (4_294_967_295, 0, 1_024, 2_147_483_648, 1_024, 2_147_483_647):
            request = add_request(body=b"%d" % priority)
            request.priority = priority
            self.node.add_job(self.connect(), request)
        queue = self.node.queues.get(b"q")
        assert queue is not None
        self.assertEqual([1, 3, 5], [queue.jobs.count_before(p) for p in (1, 1_025, 1 << 31 | 1)])
        while (job := queue.jobs.pop()) is not None:
            self.assertEqual(b"%d" % job.priority, job.body)
            bodies.append(int(job.body))
        self.assertEqual([0, 1024, 1024, 2147483647, 2147483648, 4294967295], bodies)
