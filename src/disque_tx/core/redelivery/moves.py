"""QMOVE: jobs of this node go from one queue to another, here or, as letters, to where they were.

1. Each becomes a new job, which takes the place of the old one as soon as it has its copies (see
   ``replacements``). It keeps body, RETRY, REPLICATE and the rest of its TTL; DELAY is over.
2. A dead letter can be unwrapped instead: the job in it is added as it once was, with its whole
   TTL. Jobs that are not dead letters stay, and so do letters whose queue has too long a name.
3. The client is blocked while jobs are under way. Some are begun per turn, and their number under
   way at a time is limited. If the client goes away no more are begun.
4. Jobs come from the queue as it was at the beginning, or are named by ID; those in flight stay.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import REPLY_OFF, Client
from disque_tx.core.base.part import Part
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.letters import read_letter
from disque_tx.core.queues.endings import MOVED
from disque_tx.core.redelivery.replacements import ReplacementReason, Replacements
from disque_tx.core.state.state import State
from disque_tx.errors import CommandError
from disque_tx.messages import events
from disque_tx.messages.limits import QUEUE_BYTES_MAX
from disque_tx.messages.records import QUEUED

#: Jobs looked at per turn, and bytes of their bodies.
SLICE: Final = 100
SLICE_BYTES: Final = 4 * 1024 * 1024
#: A letter is read and decoded: that takes longer than to copy it.
_LETTER_PRICE: Final = 4
#: Jobs of one request that wait for their copies at a time.
WINDOW: Final = 200
_NO_LIMIT: Final = 1 << 62


class MoveRequest:
    """What QMOVE asks for. ``target``: empty for the queue that each letter names. ``count``: how
    many jobs at the most, -1 for all. ``ids``: these jobs only, ``None`` for any. ``dead``: unwrap
    dead letters."""

    __slots__ = ("count", "dead", "ids", "source", "target")

    def __init__(self, source: bytes, target: bytes) -> None:
        self.source: bytes = source
        self.target: bytes = target
        self.count: i64 = -1
        self.ids: list[bytes] | None = None
        self.dead: bool = False


class _Move(ReplacementReason):
    """One QMOVE in progress. ``left``: how many jobs may still be begun. ``seen``: how many may
    still be looked at. ``at``: of the IDs. ``last``: the job of the queue that was looked at last.
    ``under_way``: jobs that wait for copies. ``error``: why one could not be added."""

    def __init__(
        self, state: State, delivery: Delivery, request: MoveRequest, client: Client
    ) -> None:
        super().__init__(events.BY_MOVE)
        self._endings = state.endings
        self._outbox = state.outbox
        self._totals = state.totals
        self._delivery = delivery
        self.request: MoveRequest = request
        self.client: Client = client
        self.left: i64 = request.count if request.count >= 0 else _NO_LIMIT
        self.seen: i64 = 0
        self.at: i64 = 0
        self.last: Job | None = None
        self.under_way: i64 = 0
        self.moved: i64 = 0
        self.error: CommandError | None = None

    def replaced(self, old: Job, new_id: bytes) -> None:
        """The job is in its new queue."""
        self._endings.will_end(old, MOVED)
        self.moved += 1
        self._totals.moved += 1
        self._outbox.record_event_text(events.MOVED, old, events.BY_MOVE, 0, new_id)
        self.under_way -= 1

    def kept(self, old: Job) -> None:
        """Put the job back to where it was: the copies of its replacement could not be made."""
        self.under_way -= 1
        self.left = 0
        self.error = CommandError("NOREPL", "Not enough nodes confirmed copies of the moved jobs")
        self._delivery.enqueue_counted(old, events.BY_MOVE)

    def cancelled(self, old: Job) -> None:
        """The job was acknowledged meanwhile."""
        self.under_way -= 1


class Moves(Part):
    """Every QMOVE in progress."""

    def __init__(self, state: State, delivery: Delivery, replacements: Replacements) -> None:
        self._turn = state.turn
        self._state = state
        self._jobs = state.jobs
        self._queues = state.queues
        self._waiters = state.waiters
        self._outbox = state.outbox
        self._delivery = delivery
        self._replacements = replacements
        self._active: list[_Move] = []
        # What may still be done in this turn.
        self._jobs_left: i64 = 0
        self._bytes_left: i64 = 0

    def begin(self, client: Client, request: MoveRequest) -> None:
        """QMOVE: answer the client with how many were moved, now or later.

        Raises ``CommandError`` when the first job already cannot be added.
        """
        move = _Move(self._state, self._delivery, request, client)
        if request.ids is not None:
            move.seen = len(request.ids)
        else:
            queue = self._queues.get(request.source)
            move.seen = queue.jobs.size if queue is not None else 0
        self._new_slice()
        self._go_on(move)
        if not _is_over(move):
            self._waiters.block(client)
            self._active.append(move)
        elif move.error is not None and move.moved == 0:
            raise move.error
        else:
            client.replies.integer(move.moved)

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for not before a job has its copies."""
        now_ms = self._turn.now_ms
        for move in self._active:
            if _is_over(move) or (_has_more(move) and move.under_way < WINDOW):
                return now_ms + 1
        return -1

    def run_due(self) -> None:
        """Go on with each, and answer the clients of those that are over."""
        if not self._active:
            return
        self._new_slice()
        still: list[_Move] = []
        served: list[_Move] = []
        for move in self._active:
            if move.client not in self._waiters.blocked:
                move.left = 0
            before = self._jobs_left
            self._go_on(move)
            if not _is_over(move):
                # Those that were not reached in this turn come first in the next one.
                (served if self._jobs_left < before else still).append(move)
            elif move.client in self._waiters.blocked:
                self._answer(move)
        self._active = still + served

    def release(self, client: Client) -> bool:
        """Answer a client at once, because all jobs are about to be forgotten; ``False`` when it
        moves none."""
        for move in self._active:
            if move.client is client:
                self._answer(move)
                return True
        return False

    def forget_all(self) -> None:
        """All jobs are gone."""
        self._active.clear()

    def _answer(self, move: _Move) -> None:
        client = move.client
        if client.reply_mode != REPLY_OFF:
            if move.error is not None and move.moved == 0:
                client.replies.error(move.error.reply())
            else:
                client.replies.integer(move.moved)
        self._waiters.leave(client)
        self._outbox.touch(client)

    def _new_slice(self) -> None:
        self._jobs_left = SLICE
        self._bytes_left = SLICE_BYTES

    def _go_on(self, move: _Move) -> None:
        now_ms = self._turn.now_ms
        while self._jobs_left > 0 and self._bytes_left > 0:
            if not _has_more(move) or move.under_way >= WINDOW:
                break
            self._jobs_left -= 1
            move.seen -= 1
            job = self._next(move)
            if job is None:
                if move.request.ids is None:
                    move.seen = 0
                continue
            self._bytes_left -= job.body_bytes * (_LETTER_PRICE if move.request.dead else 1)
            request = _new_job(job, move.request, now_ms)
            if request is None:
                continue
            move.left -= 1
            move.under_way += 1
            try:
                self._replacements.begin(job, request, move)
            except CommandError as error:
                move.under_way -= 1
                move.left = 0
                move.error = error

    def _next(self, move: _Move) -> Job | None:
        """The next job; ``None`` for one that is not there or cannot be moved."""
        source, ids = move.request.source, move.request.ids
        if ids is None:
            queue = self._queues.get(source)
            if queue is None:
                return None
            last = move.last
            move.last = queue.jobs.first() if last is None else queue.jobs.after(last)
            return move.last
        move.at += 1
        job = self._jobs.get(ids[move.at - 1])
        if job is None or job.queue != source:
            return None
        waits = job.state == QUEUED or (job.backoff and not self._replacements.is_pending(job))
        return job if waits else None


def _has_more(move: _Move) -> bool:
    return move.left > 0 and move.seen > 0


def _is_over(move: _Move) -> bool:
    return move.under_way == 0 and not _has_more(move)


def _new_job(job: Job, request: MoveRequest, now_ms: i64) -> AddRequest | None:
    """The job to add in the place of this one; ``None`` if it stays."""
    left_s = max(1, (job.expire_ms - now_ms) // 1000)
    if not request.dead:
        new = AddRequest(request.target, job.body)
        new.ttl_s, new.retry_s, new.replicate = left_s, job.retry_s, i64(job.repl)
        return new
    letter = read_letter(job.body)
    if letter is None:
        return None
    target = request.target if request.target else letter.queue
    if len(target) > QUEUE_BYTES_MAX:
        return None  # it must not be in the way of the others
    new = AddRequest(target, letter.body)
    new.ttl_s = letter.ttl_s if letter.ttl_s > 0 else left_s
    new.retry_s = letter.retry_s
    new.replicate = letter.replicate if letter.replicate > 0 else i64(job.repl)
    return new
