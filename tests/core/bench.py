"""A single node whose clock and random numbers are controlled by the test."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import Value, ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.job import Job
from disque_tx.core.node import DUE_PER_TURN, Node
from disque_tx.core.nodes.membership import Membership
from disque_tx.errors import CommandError
from disque_tx.messages.nodes import MYSELF, NodeEntry
from disque_tx.messages.records import IdSource, JobRecord, KeyEntry, LogSink
from disque_tx.wire.jobs.jobid import ttl_field

ME = b"a" * 40
NOW_MS = 50_000
UNIX_S = 1_795_176_084


class NumberedIds(IdSource):
    """Job IDs that count upwards and encode the TTL as all job IDs do."""

    def __init__(self) -> None:
        self.made = 0

    def next_id(self, node_id: bytes, ttl_s: int, retry_s: int) -> bytes:
        self.made += 1
        return b"D-%s-%024d" % (node_id[:8], self.made) + ttl_field(ttl_s, retry_s)


class MemoryLog(LogSink):
    """The records of a log, as a restarted node would find them. ``records``: by job ID, as they
    were written; ``notes``: by job ID; ``keys``: by key; ``lines``: every record in order."""

    def __init__(self) -> None:
        self.records: dict[bytes, JobRecord] = {}
        self.notes: dict[bytes, tuple[bytes, bytes]] = {}
        self.keys: dict[bytes, KeyEntry] = {}
        self.lines: list[tuple[str, bytes]] = []

    def load_job(self, job: JobRecord) -> None:
        self.records[job.id] = copied(job)
        self.lines.append(("load", job.id))

    def delete_job(self, job_id: bytes) -> None:
        self.records.pop(job_id, None)
        self.notes.pop(job_id, None)
        self.lines.append(("delete", job_id))

    def note_job(self, job_id: bytes, owner: bytes, data: bytes) -> None:
        self.notes[job_id] = (owner, data)
        self.lines.append(("note", job_id))

    def hold_key(self, entry: KeyEntry) -> None:
        self.keys[entry.key] = entry
        self.lines.append(("hold", entry.key))

    def count_job(self, job_id: bytes, nacks: int, deliveries: int) -> None:
        self.lines.append(("count", job_id))

    def free_key(self, key: bytes) -> None:
        del self.keys[key]
        self.lines.append(("free", key))


def copied(job: JobRecord) -> JobRecord:
    """A snapshot of the record; the job itself continues to change."""
    record = JobRecord(
        job.id,
        job.queue,
        job.body,
        job.nodes,
        job.ctime,
        job.etime_s,
        delay_s=job.delay_s,
        retry_s=job.retry_s,
        repl=int(job.repl),
    )
    record.state = job.state
    record.flags = job.flags
    record.nacks = job.nacks
    record.deliveries = job.deliveries
    return record


def new_membership() -> Membership:
    """A cluster of this node alone."""
    ids = [b"%040x" % number for number in range(9, 0, -1)]
    return Membership(NodeEntry(ME, b"", 7711, MYSELF, 0), ids.pop)


def add_request(queue: bytes = b"q", body: bytes = b"body", **options: int) -> AddRequest:
    """ADDJOB with these options; all others have their defaults."""
    request = AddRequest(queue, body)
    for name, value in options.items():
        setattr(request, name, value)
    return request


def make_job(number: int, ctime: int = 1, queue: bytes = b"q") -> Job:
    """A job that is not registered anywhere."""
    job_id = b"D-aaaaaaaa-%024d-05a1" % number
    return Job(
        job_id, queue, b"body", (ME,), ctime, UNIX_S + 86_400, delay_s=0, retry_s=300, repl=1
    )


class NodeCase(SynchronousTestCase):
    """Calls the node as the commands do. Jitter is zero because every random number is 0.5."""

    def setUp(self) -> None:
        self.chance = 0.5
        self.node = self.new_node()
        self.begin(NOW_MS, UNIX_S * 1_000_000)
        self.log = MemoryLog()
        self.node.outbox.log = self.log
        self.client = self.connect()

    def new_node(self) -> Node:
        """An empty node."""
        return Node(new_membership(), NumberedIds(), lambda: self.chance)

    def begin(self, now_ms: int, wall_us: int) -> None:
        """Set both clocks."""
        self.now_ms = now_ms
        self.wall_us = wall_us
        self.node.begin(now_ms, wall_us)

    def pass_ms(self, ms: int) -> None:
        """Let time pass and run what became due.

        The next deadline is in the future, unless one turn could not handle all due jobs: otherwise
        the node would spin and use a whole processor.
        """
        self.begin(self.now_ms + ms, self.wall_us + ms * 1000)
        self.node.run_due()
        due_ms = self.node.next_due_ms()
        if due_ms != -1 and len(self.node.jobs) < DUE_PER_TURN:
            self.assertGreater(due_ms, self.now_ms)

    def connect(self) -> Client:
        """A client, connected now."""
        return Client(7, ValueReplies(), b"127.0.0.1:5001", self.now_ms)

    def replies(self, client: Client) -> list[Value]:
        """The replies that a client received since the last call."""
        collected = client.replies
        assert isinstance(collected, ValueReplies)
        values = collected.values
        collected.clear()
        return values

    def add(self, queue: bytes = b"q", body: bytes = b"body", **options: int) -> bytes:
        """ADDJOB; the ID of the job."""
        client = self.connect()
        self.node.add_job(client, add_request(queue, body, **options))
        self.node.serve()
        return self.status(client)

    def status(self, client: Client) -> bytes:
        """The single status reply that a client received."""
        (value,) = self.replies(client)
        text: bytes = getattr(value, "text", b"")
        self.assertNotEqual(b"", text)
        return text

    def refusal(self, **options: int) -> tuple[str, str]:
        """Code and text of the error with which ADDJOB is refused."""
        with self.assertRaises(CommandError) as caught:
            self.add(**options)  # type: ignore[arg-type]
        return caught.exception.code, caught.exception.text

    def get(self, *names: bytes, count: int = 1) -> list[bytes]:
        """GETJOB NOHANG; the IDs of the delivered jobs."""
        self.node.get_jobs(self.client, list(names), count, 0, True, False)
        (jobs,) = self.replies(self.client)
        return [] if jobs is None else [job[1] for job in jobs]  # type: ignore

    def wait(self, *names: bytes, timeout_ms: int = 0, count: int = 1) -> Client:
        """GETJOB of a new client that blocks."""
        client = self.connect()
        self.node.get_jobs(client, list(names), count, timeout_ms, False, False)
        self.assertEqual([], self.replies(client))
        return client

    def job(self, job_id: bytes) -> Job:
        """A job that must be in the job table."""
        job = self.node.jobs.get(job_id)
        assert job is not None
        return job

    def length(self, name: bytes = b"q") -> int:
        """Number of jobs in a queue."""
        queue = self.node.queues.get(name)
        return 0 if queue is None else queue.jobs.size
