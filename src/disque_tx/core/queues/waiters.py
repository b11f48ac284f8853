"""Blocked clients: who waits for what, until when (client protocol, section 20).

1. A client that waits for jobs stands in the line of every queue it named, once each.
2. A client that waits for keys or copies waits for one job, or for several that it added at once,
   each of which waits for it: neither is there alone.
3. It leaves all lines at once: when it is served, when its time is over, when it goes away.
4. A queue whose line may be served stands in ``ready`` until the node has looked at it.
"""

from __future__ import annotations

from collections import OrderedDict

from mypy_extensions import i64

from disque_tx.core.base.answerline import AnswerLine
from disque_tx.core.base.client import (
    BLOCKED_ADDJOB,
    BLOCKED_GETJOB,
    BLOCKED_QMOVE,
    BLOCKED_TASK,
    BLOCKED_WAITJOB,
    NOT_BLOCKED,
    REPLY_OFF,
    Client,
)
from disque_tx.core.base.outbox import Outbox
from disque_tx.core.base.part import Turn
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.jobs.job import IN_FLIGHT, Job
from disque_tx.core.jobs.observer import JobObserver
from disque_tx.core.policies.policies import Policies
from disque_tx.core.queues.copieswait import CopiesWait, CopiesWatcher
from disque_tx.core.queues.index import Matching
from disque_tx.core.queues.queues import PAUSE_OUT, Queue, Queues
from disque_tx.core.queues.refusedqueues import RefusedQueues
from disque_tx.core.queues.selector import Selector
from disque_tx.errors import CommandError

#: Time-outs above this mean none (about 100 years, in milliseconds).
NO_TIMEOUT_MS = 100 * 366 * 86_400_000


class Waiters(JobObserver):
    """``blocked``: clients that wait; ``ready``: queues with a line and, lately, a job; ``copies``:
    by the ID of the job; ``endings``: clients that wait for the end of a job, by its ID.
    ``watched``: who watches the copies of jobs without a client, by ID; those that have them, or
    will not, stand in ``settled`` until :meth:`notify_watchers`. ``matching``: the selectors of
    clients that wait at all queues that match.

    ``demanding``: there are nodes that are told what clients wait for; ``demanded``: queues of
    which they may have to be told at the end of the turn, ``patterns``: the same of selectors.
    ``wanted``, ``wanted_patterns``: queues with jobs that other nodes can use, and selectors with
    such queues, until the end of the turn."""

    def __init__(
        self,
        turn: Turn,
        queues: Queues,
        outbox: Outbox,
        matching: Matching,
        policies: Policies,
    ) -> None:
        self.blocked: dict[Client, None] = {}
        self.ready: list[Queue] = []
        self.copies: dict[bytes, CopiesWait] = {}
        self.endings: dict[bytes, list[Client]] = {}
        self.timeouts: Schedule[Client] = Schedule()
        self.watched: dict[bytes, CopiesWatcher] = {}
        self.settled: list[tuple[CopiesWatcher, bytes, bool]] = []
        self.matching = matching
        self.demanding: bool = False
        self.refused: RefusedQueues = RefusedQueues()
        self.demanded: list[Queue] = []
        self.patterns: list[Selector] = []
        self.wanted: list[Queue] = []
        self.wanted_patterns: list[Selector] = []
        self._turn = turn
        self._policies = policies
        self._queues = queues
        self._outbox = outbox

    def wait_for_jobs(
        self, client: Client, names: list[bytes], counters: bool, timeout_ms: i64
    ) -> None:
        """Put ``client`` into the wait list of every queue named; 0 waits forever."""
        now_ms = self._turn.now_ms
        client.blocked = BLOCKED_GETJOB
        client.blocked_queues = names
        client.blocked_counters = counters
        for name in names:
            queue = self._queues.obtain(name, now_ms)
            if queue.waiters is None:
                queue.waiters = OrderedDict()
            queue.waiters[client] = None
            if self.demanding:
                self.note_demand(queue)
        self._block(client, timeout_ms, now_ms)

    def wait_for_copies(self, client: Client | None, job: Job, timeout_ms: i64) -> None:
        """Let ``client`` wait for the copies of ``job``; 0 waits forever."""
        job_id = job.id
        self.copies[job_id] = wait = CopiesWait(client, job, self._turn.now_ms)
        if client is not None:
            if 0 < timeout_ms < NO_TIMEOUT_MS:
                wait.due_ms = wait.created_ms + timeout_ms
            self.wait_to_add(client, job_id, wait.due_ms)

    def wait_to_add(self, client: Client, job_id: bytes, due_ms: i64) -> None:
        """Let ``client`` wait for a job to be added, until this time; 0 for no time-out here."""
        if client.line is not None:
            client.line.wait_for(job_id, self._turn.now_ms)
            self.reschedule(client, client.line, due_ms)
            return
        client.blocked = BLOCKED_ADDJOB
        client.blocked_job = job_id
        self.blocked[client] = None
        if due_ms > 0:
            self.timeouts.add(client, due_ms)

    def awaited(self, client: Client) -> list[CopiesWait]:
        """The copies that the client waits for, in the order of its requests."""
        waits = [self.copies[job] for job in client.awaited_jobs() if job in self.copies]
        return [wait for wait in waits if wait.client is client]

    def begin_line(self, client: Client) -> AnswerLine:
        """A client that waits for a key or copies adds another job: its answers stand in a line."""
        line = AnswerLine(client.blocked_job, self._turn.now_ms, 0)
        for wait in self.awaited(client):
            line = AnswerLine(client.blocked_job, wait.created_ms, wait.due_ms)
        client.line = line
        client.blocked_job = b""
        return line

    def reschedule(self, client: Client, line: AnswerLine, due_ms: i64) -> None:
        """The client's time-out is over at this time, 0 for never, or at an earlier one."""
        if due_ms > 0 and (line.due_ms == 0 or due_ms < line.due_ms):
            self.timeouts.remove(client)
            self.timeouts.add(client, due_ms)
            line.due_ms = due_ms

    def wait_for_ending(self, client: Client, job_id: bytes, timeout_ms: i64) -> None:
        """Let ``client`` wait for the end of a job; 0 waits forever."""
        client.blocked = BLOCKED_WAITJOB
        client.blocked_job = job_id
        self.endings.setdefault(job_id, []).append(client)
        self._block(client, timeout_ms, self._turn.now_ms)

    def wait_longer(self, client: Client, timeout_ms: i64) -> None:
        """Let a client that waits for at most some time wait for so long from now on."""
        self.timeouts.remove(client)
        self.timeouts.add(client, self._turn.now_ms + timeout_ms)

    def wait_for_task(self, client: Client) -> i64:
        """Let ``client`` wait until a long request is done; the number of this wait."""
        client.blocked = BLOCKED_TASK
        client.blocked_number += 1
        self._block(client, 0, 0)
        return client.blocked_number

    def _block(self, client: Client, timeout_ms: i64, now_ms: i64) -> None:
        self.blocked[client] = None
        if 0 < timeout_ms < NO_TIMEOUT_MS:
            self.timeouts.add(client, now_ms + timeout_ms)

    def copies_made(self, job: Job) -> None:
        """Answer the client of ``job``, if there is one, with its ID."""
        self._decide(job.id, None)

    def copies_failed(self, job: Job, error: CommandError) -> None:
        """Refuse the client of ``job``, if there is one."""
        self._decide(job.id, error)

    def _decide(self, job_id: bytes, error: CommandError | None) -> None:
        """The wait for the copies of a job is over: notify its client, and who watches it."""
        wait = self.copies.get(job_id) if error else self.copies[job_id]  # made: it has waited
        if wait is not None:
            del self.copies[job_id]
        watcher = self.watched.pop(job_id, None) if self.watched else None
        if watcher is not None:
            self.settled.append((watcher, job_id, error is None))
        client = wait.client if wait is not None else None
        if client is not None:
            mark = client.begin_answer()
            if client.reply_mode != REPLY_OFF:
                if error is None:
                    client.replies.status(job_id)
                else:
                    client.replies.error(error.reply())
            self.add_answered(client, job_id, mark)

    def add_answered(self, client: Client, job_id: bytes, mark: int) -> None:
        """The answer about this job was written after ``mark``; the client goes on, unless it waits
        for others."""
        line = client.line
        if line is None:
            client.blocked_job = b""
            self.answered(client)
            return
        was_full = line.is_full()
        line.decided(job_id, client.replies, mark)
        self._line_moved(client, line, was_full)

    def end_ahead(self, client: Client, line: AnswerLine, mark: int) -> None:
        """The client's next request was executed; unless it is in the line, its answer was written
        after ``mark``, and belongs there."""
        if client.replies.mark() > mark:
            line.known(client.replies.cut(mark))
        line.executing = False
        line.give(client.replies)
        self._line_moved(client, line, False)

    def _line_moved(self, client: Client, line: AnswerLine, was_full: bool) -> None:
        """Answers were given, as far as they are known."""
        if len(line) == 0:
            client.line = None
            self.answered(client)
        else:
            self._outbox.touch(client)
            if was_full and not line.is_full():
                self._outbox.resumed.append(client)

    def notify_watchers(self) -> None:
        """Notify those who watch copies."""
        while self.settled:
            settled, self.settled = self.settled, []
            for watcher, job_id, made in settled:
                watcher.copies_settled(job_id, made)

    def watch_nothing(self) -> None:
        """All jobs are gone."""
        self.watched.clear()
        self.settled.clear()

    def block(self, client: Client) -> None:
        """Let ``client`` wait for jobs that are moved, for as long as it takes."""
        client.blocked = BLOCKED_QMOVE
        self._block(client, 0, 0)

    def answered(self, client: Client) -> None:
        """The client has its reply: it goes on."""
        self.leave(client)
        self._outbox.touch(client)

    def leave(self, client: Client) -> None:
        """The client waits no more; its further requests are executed again."""
        if client.blocked == NOT_BLOCKED:
            return
        if client.blocked == BLOCKED_ADDJOB:
            if client.line is not None or client.blocked_job:
                for wait in self.awaited(client):
                    del self.copies[wait.job.id]
            client.blocked_job = b""
            client.line = None
        elif client.blocked == BLOCKED_WAITJOB:
            clients = self.endings[client.blocked_job]
            clients.remove(client)
            if not clients:
                del self.endings[client.blocked_job]
            client.blocked_job = b""
        for name in client.blocked_queues:
            queue = self._queues.get(name)
            if queue is not None and queue.waiters is not None:
                queue.waiters.pop(client, None)
                if queue.standing is not None:
                    self.note_demand(queue)
        if client.blocked_selector != 0:
            selector = self.matching.of_client(client)
            self.matching.leave(client)
            if selector.standing is not None:
                self.note_pattern(selector)
        self.timeouts.remove(client)
        client.blocked = NOT_BLOCKED
        client.blocked_queues = []
        del self.blocked[client]
        self._outbox.resumed.append(client)

    def expired(self, limit: i64) -> list[Client]:
        """Clients whose time-out is over, out of the schedule but still in wait lists."""
        return self.timeouts.due(self._turn.now_ms, limit)

    def note_ready(self, queue: Queue) -> None:
        """Jobs came, or a pause began or ended: clients that wait at the queue may be served."""
        if self.demanding:
            self._note_demands(queue)
        if queue.paused & PAUSE_OUT:
            return
        wanted = bool(queue.waiters)
        if self.matching.active and queue.jobs.size > 0:
            if self.matching.offer(queue):
                wanted = True
            for selector in self.matching.of(queue):
                if selector.wanted is not None:
                    self.note_wanted(selector)
        if wanted:
            self.look_at(queue)
        peers = queue.wanted
        if peers is not None and not peers.ready and queue.jobs.size > 0:
            peers.ready = True
            self.wanted.append(queue)

    def note_wanted(self, selector: Selector) -> None:
        """A queue of a selector with which other nodes can use jobs has some."""
        peers = selector.wanted
        if peers is not None and not peers.ready:
            peers.ready = True
            self.wanted_patterns.append(selector)

    def _note_demands(self, queue: Queue) -> None:
        """What may be delivered of a queue has changed."""
        if queue.standing is not None or queue.waiters:
            self.note_demand(queue)
        self.may_deliver_more(queue.name)

    def may_deliver_more(self, name: bytes) -> None:
        """By its limits: other nodes may send jobs of it again for clients that wait by pattern."""
        for selector in self.refused.take(name):
            self.note_pattern(selector)

    def note_pattern(self, selector: Selector) -> None:
        """Let other nodes be told, if what is demanded of queues that match has changed."""
        if not selector.demand_noted:
            selector.demand_noted = True
            self.patterns.append(selector)

    def note_demand(self, queue: Queue) -> None:
        """Let other nodes be told, if what is demanded of the queue has changed by the end of the
        turn."""
        if not queue.demand_noted:
            queue.demand_noted = True
            self.demanded.append(queue)

    def job_moved(self, job: Job, was: i64) -> None:
        if was == IN_FLIGHT and (self.matching.active or self._policies.limited):
            self.fewer_in_flight(job.queue)

    def fewer_in_flight(self, name: bytes) -> None:
        """A job of this queue is not in flight any more: the queue may deliver another one, and has
        a better place among those that match."""
        queue = self._queues.get(name)
        if queue is not None and (queue.jobs.size > 0 or queue.waiters):
            self.note_ready(queue)
        else:
            self.may_deliver_more(name)

    def look_at(self, queue: Queue) -> None:
        """Let the node serve the queue before the next request."""
        if not queue.ready:
            queue.ready = True
            self.ready.append(queue)
