"""Protocols that work within the turns of the node, as RESP does: for those that must be fast.

A :class:`DirectProtocol` gets the bytes of one connection as they are received, and executes what
is complete when the node has time for it. What it does is a part of the turn: the log is written
before its replies leave, all replies of a turn leave in one piece, and the node does not wait for
it anywhere. :class:`DirectNode` is what it may do; each of its methods that changes something
counts as the command of the node that does the same, in INFO, in the slow log and for MONITOR.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.commands.base.context import Command, Server
from disque_tx.commands.base.stats import ProtocolStats
from disque_tx.core.base.client import Client
from disque_tx.core.base.slices import SlicedTask
from disque_tx.core.getting.leases import NEVER_MS
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.job import IN_FLIGHT, Job
from disque_tx.core.jobs.notes import Note, NoteReader
from disque_tx.core.jobs.tallies import Tally
from disque_tx.core.node import Node
from disque_tx.core.queues.queues import PAUSE_NONE, PAUSE_OUT, Queue
from disque_tx.messages.records import QUEUED, JobRecord, ReplySink
from disque_tx.messages.replies import Output

#: Jobs of a client that is gone that go back in one part.
_PER_PART: Final = 200
#: Commands as which the operations count.
_COMMANDS: Final = (b"addjob", b"getjob", b"ackjob", b"nack", b"enqueue", b"working", b"pause")


@mypyc_attr(allow_interpreted_subclasses=True)
class CommandGate:
    """What every operation passes before and after it is executed."""

    def permit(self, client: Client, command: Command) -> None:
        """Raise ``CommandError`` when the node cannot execute this now."""
        raise NotImplementedError

    def account(self, client: Client, command: Command, words: list[bytes]) -> None:
        """Count an executed operation, and serve clients that wait."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class DirectProtocol(Output):
    """One connection. ``client``: its row in the table of clients, set before anything else.
    ``stats``: the counters of its protocol, in which it counts what it refuses. ``unread_max``: how
    many bytes may be fed and not executed; a client that sends more while it waits is disconnected.

    While the client waits for jobs or copies, nothing is executed. What it gets then comes by the
    methods of a reply sink: :meth:`jobs` for a job, :meth:`null_array` when the time is over,
    :meth:`status` with the ID when the copies of a job are made, :meth:`error` otherwise.
    """

    def __init__(self) -> None:
        super().__init__()
        self.client: Client | None = None
        self.stats = ProtocolStats()
        self.unread_max: i64 = 1 << 20

    def feed(self, data: bytes) -> None:
        """Keep received bytes until they are executed."""
        raise NotImplementedError

    def step(self) -> bool:
        """Execute one request; ``False`` when none is complete."""
        raise NotImplementedError

    def unread(self) -> int:
        """Bytes that were received and not executed."""
        raise NotImplementedError

    def closed(self) -> None:
        """The connection is gone: return what the client had."""
        raise NotImplementedError

    def speaking(self, version: int) -> ReplySink:
        return self


class DirectNode:
    """The node, for protocols within its turns. The methods must be called within a turn, and raise
    ``CommandError`` when the node refuses."""

    def __init__(self, server: Server, guard: CommandGate) -> None:
        self._node = server.node
        self._guard = guard
        table = {command.name: command for command in server.registry.table}
        self._add, self._get, self._ack, self._nack = (table[name] for name in _COMMANDS[:4])
        self._enqueue, self._working, self._pause = (table[name] for name in _COMMANDS[4:])

    # -- facts -------------------------------------------------------------------------------

    def now_ms(self) -> i64:
        """The steady clock of the turn."""
        return self._node.now_ms

    def wall_ms(self) -> i64:
        """Unix time of the turn, in milliseconds."""
        return self._node.wall_us // 1000

    def id(self) -> bytes:
        """The ID of the node."""
        return self._node.id

    def is_leaving(self) -> bool:
        """Whether the node is to be taken out of the cluster."""
        return self._node.membership.leaving

    def is_alone(self, job: Job) -> bool:
        """Whether no other node has a copy of the job."""
        return job.nodes is self._node.membership.only_me or len(job.nodes) < 2

    def queue(self, name: bytes) -> Queue | None:
        """The queue of this name, if it exists."""
        return self._node.queues.get(name)

    def queues(self, cursor: int) -> tuple[int, list[Queue]]:
        """Some queues, and the cursor for the next call; from 0 to 0."""
        return self._node.queues.table.scan(cursor)

    def queued(self) -> i64:
        """Jobs in all queues."""
        return self._node.totals.queued

    def tally(self, name: bytes) -> Tally | None:
        """The numbers of delayed jobs and of those in flight, for a queue that has any."""
        return self._node.state.tallies.get(name)

    def totals(self) -> tuple[i64, i64, i64]:
        """Jobs in flight; jobs that wait for another attempt, those from the log
        among them; delayed ones."""
        totals = self._node.totals
        return totals.in_flight, totals.in_backoff + totals.loaded, totals.delayed

    # -- jobs --------------------------------------------------------------------------------

    def add(self, client: Client, request: AddRequest) -> None:
        """ADDJOB: the client gets a status, now or when the copies are made."""
        self._guard.permit(client, self._add)
        self._node.add_job(client, request)
        self._guard.account(client, self._add, [b"ADDJOB", request.queue, request.body])

    def take(self, client: Client, names: list[bytes]) -> Job | None:
        """A job of these queues, the first by priority and age, with a lease of its RETRY."""
        self._guard.permit(client, self._get)
        job = self._node.leases.take(client, names)
        self._guard.account(client, self._get, [b"GETJOB", b"FROM", *names])
        return job

    def take_this(self, client: Client, job: Job) -> bool:
        """This very job, with a lease; ``False`` when a client has it."""
        self._guard.permit(client, self._get)
        taken = self._node.leases.take_this(client, job)
        self._guard.account(client, self._get, [b"GETJOB", b"FROM", job.queue])
        return taken

    def is_ready(self, names: list[bytes]) -> bool:
        """Whether :meth:`take` would find a job."""
        return self._node.leases.is_ready(names)

    def wait(self, client: Client, names: list[bytes], timeout_ms: i64) -> None:
        """Let the client wait for a job, 0 for as long as it takes."""
        self._node.leases.wait(client, names, timeout_ms)

    def begin_lease(self, job: Job) -> None:
        """The lease of a job that came to a client that waited begins."""
        self._node.leases.renew(job)

    def renew(self, client: Client, job: Job) -> None:
        """WORKING: the lease begins again."""
        self._guard.permit(client, self._working)
        self._node.leases.renew(job)
        self._guard.account(client, self._working, [b"WORKING", job.id])

    def check_nack(self, client: Client) -> None:
        """Raises ``CommandError`` if :meth:`give_back` and :meth:`hold` would: for those who note
        something before."""
        self._guard.permit(client, self._nack)

    def give_back(self, client: Client, job: Job, delay_ms: i64) -> bool:
        """NACK: back to the queue, now or later; ``False`` when the job must not return."""
        job_id = job.id
        self._guard.permit(client, self._nack)
        count = self._node.enqueue([job_id], True, delay_ms)
        self._guard.account(client, self._nack, [b"NACK", job_id])
        return count == 1

    def hold(self, client: Client, job: Job) -> bool:
        """Hold back a job until :meth:`make_ready`; ``False`` when it must not return."""
        self._guard.permit(client, self._nack)
        now_ms = self._node.now_ms
        held = self._node.leases.hold(job, now_ms + NEVER_MS)
        self._guard.account(client, self._nack, [b"NACK", job.id])
        return held

    def check_enqueue(self, client: Client) -> None:
        """Raise ``CommandError`` when :meth:`make_ready` cannot be executed now."""
        self._guard.permit(client, self._enqueue)

    def make_ready(self, client: Client, job: Job) -> bool:
        """ENQUEUE: a job that is delayed or held back goes into its queue."""
        job_id = job.id
        self._guard.permit(client, self._enqueue)
        count = self._node.enqueue([job_id], False)
        self._guard.account(client, self._enqueue, [b"ENQUEUE", job_id])
        return count == 1

    def finish(self, client: Client, job: Job) -> None:
        """ACKJOB: the job is done."""
        ids = [job.id]
        self._guard.permit(client, self._ack)
        self._node.acknowledge(ids)
        self._guard.account(client, self._ack, [b"ACKJOB", ids[0]])

    def pause(self, client: Client, name: bytes, paused: bool) -> None:
        """PAUSE: nothing of this queue is delivered, until it is called again."""
        self._guard.permit(client, self._pause)
        self._node.pause(name, PAUSE_OUT if paused else PAUSE_NONE)
        self._guard.account(client, self._pause, [b"PAUSE", name, b"out" if paused else b"none"])

    def resume(self, name: bytes) -> None:
        """The pause of a queue is over; for timers."""
        self._node.pause(name, PAUSE_NONE)

    def urgent(self, name: bytes, priority: i64) -> i64:
        """Jobs in a queue whose priority is smaller."""
        queue = self._node.queues.get(name)
        return 0 if queue is None else queue.jobs.count_before(priority)

    def return_all(self, jobs: list[Job]) -> None:
        """The client of these jobs is gone: they go back to their queues, some in each turn."""
        returning = _Returning(self._node, jobs)
        if not returning.step(self._node.now_ms):
            self._node.state.slices.add(returning)

    # -- notes -------------------------------------------------------------------------------

    def note(self, job: Job, note: Note) -> None:
        """Keep a note about a job, or record that it says something else now."""
        self._node.state.notes.put(job.id, note)
        self._node.state.notes.record(job.id, note)

    def note_of(self, job: JobRecord) -> Note | None:
        """The note about a job."""
        return self._node.state.notes.get(job.id)

    def read_notes(self, owner: bytes, reader: NoteReader) -> None:
        """Give the notes of this protocol to ``reader``: those of jobs that are here, and later
        those that come from the log."""
        find: Callable[[bytes], Job | None] = self._node.jobs.get
        self._node.state.notes.read_by(owner, reader, find)

    def unqueue(self, job: Job) -> bool:
        """Take a job that comes from the log out of its queue; ``False`` if it is in none."""
        if job.state != QUEUED:
            return False
        self._node.delivery.dequeue(job)
        return True

    def hold_restored(self, job: Job, delay_ms: i64) -> None:
        """Hold back a job that comes from the log, for so long; 0: until :meth:`make_ready`."""
        now_ms = self._node.now_ms
        self._node.leases.hold(job, now_ms + (delay_ms if delay_ms > 0 else NEVER_MS))

    def restart(self, job: Job) -> None:
        """Queue a job that comes from the log at once, for no client can have it."""
        self._node.leases.restart(job)


class _Returning(SlicedTask):
    """Puts back the jobs of a client."""

    __slots__ = ("_at", "_jobs", "_node")

    def __init__(self, node: Node, jobs: list[Job]) -> None:
        self._node: Node = node
        self._jobs: list[Job] = jobs
        self._at: i64 = 0

    def step(self, now_ms: i64) -> bool:
        end = min(self._at + _PER_PART, len(self._jobs))
        while self._at < end:
            job = self._jobs[self._at]
            self._at += 1
            if job.place == IN_FLIGHT:
                self._node.enqueue([job.id], True, 0)
        self._node.serve()
        return self._at >= len(self._jobs)
