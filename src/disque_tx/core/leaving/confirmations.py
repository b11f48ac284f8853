"""A leaving node drops its copy of a job when enough other nodes have confirmed theirs.

1. As many holders are asked as the job is to have copies. Nodes of ours are asked by HANDOVER, for
   many jobs at once; all others get the job once more (REPLJOB), and confirm it by GOTJOB.
2. A node that leaves itself confirms nothing: two that leave at once do not rely on each other.
3. A holder that has no copy any more, or never got one, is taken out of the list.
4. When the copy is dropped, the other holders take this node out of their lists.
5. What another node is to do with a job (to have it in its queue, to wait for its time) is promised
   until that node has confirmed it. If it has not done so, or fails, this node does it itself.
6. What was asked and confirmed before the evacuation was called off counts for nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.replication import life_s
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.job import LOADED, NOWHERE, Job
from disque_tx.core.leaving.takeovers import Takeovers
from disque_tx.core.queues.endings import MOVED
from disque_tx.core.state.state import State
from disque_tx.messages import events
from disque_tx.messages.bus import JobCopy
from disque_tx.messages.bustypes import CAN_HAND_OVER
from disque_tx.messages.handover import (
    ENTRIES_MAX,
    KEEP,
    NOT_HELD,
    READY,
    RELEASE,
    HandoverEntry,
    HandoverMessage,
)
from disque_tx.messages.limits import U32_MAX
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import ACTIVE

#: For how long nodes may take to confirm, before a job is tried anew.
CONFIRM_MS: Final = 3_000
#: Jobs that may wait for confirmations, and bytes of their bodies.
PENDING_MAX: Final = 10_000
PENDING_BYTES_MAX: Final = 16 * 1024 * 1024


#: What is promised besides DELAY and BACKOFF: that the job is in the queue there.
QUEUE: Final = -1


class Promise:
    """``receiver``: the node that is to do something with a job: to have it in its queue, or to
    wait for the end of a DELAY or backoff (``what``) until ``due_ms``."""

    __slots__ = ("due_ms", "receiver", "what")

    def __init__(self, receiver: bytes, what: i64, due_ms: i64 = 0) -> None:
        self.receiver: bytes = receiver
        self.what: i64 = what
        self.due_ms: i64 = due_ms


class Confirmation:
    """A job whose other holders were asked. ``missing``: IDs of those that did not confirm yet.
    ``walk``: of the table, in which it was asked."""

    __slots__ = ("asked_ms", "job", "missing", "walk")

    def __init__(self, job: Job, asked_ms: i64, walk: i64) -> None:
        self.job: Job = job
        self.missing: set[bytes] = set()
        self.asked_ms: i64 = asked_ms
        self.walk: i64 = walk


class Confirmations:
    """``pending``: those under way, by job ID, in the order in which they were asked; ``size``:
    bytes of their bodies. ``promises``: what other nodes are to do with jobs and have not confirmed
    yet, by job ID. ``number``: of the evacuation. ``walk``: of the table that is under way;
    ``released``: copies dropped, and ``released_in_walk``: those of jobs asked about in it."""

    def __init__(self, state: State, takeovers: Takeovers, delivery: Delivery) -> None:
        self.pending: OrderedDict[bytes, Confirmation] = OrderedDict()
        self.size: i64 = 0
        self.promises: dict[bytes, Promise] = {}
        self.number: i64 = 0
        self.walk: i64 = 0
        self.released: i64 = 0
        self.released_in_walk: i64 = 0
        self._turn = state.turn
        self._jobs = state.jobs
        self._peers = state.peers
        self._endings = state.endings
        self._unconfirmed = state.unconfirmed
        self._membership = state.membership
        self._takeovers = takeovers
        self._delivery = delivery
        # What goes out at the end of the turn, by node ID.
        self._asked: dict[bytes, list[HandoverEntry]] = {}
        self._dropped: dict[bytes, list[HandoverEntry]] = {}

    def begin(self) -> None:
        """An evacuation begins."""
        self.clear()
        self.released = 0
        self.number = max(self.number + 1, self._turn.wall_us // 1_000_000 & U32_MAX)

    def clear(self) -> None:
        """Nothing is under way any more."""
        self.pending.clear()
        self.promises.clear()
        self.size = 0
        self._asked.clear()
        self._dropped.clear()

    def is_full(self) -> bool:
        """Whether no more jobs should be asked about now."""
        return len(self.pending) >= PENDING_MAX or self.size >= PENDING_BYTES_MAX

    def has_news(self) -> bool:
        """Whether :meth:`send` has anything to do."""
        return bool(self._asked) or bool(self._dropped)

    # -- asking ------------------------------------------------------------------------------

    def ask(self, job: Job, holders: list[NodeEntry]) -> None:
        """Ask these holders; and the one that is to wait in the place of this node, to do so."""
        asked = Confirmation(job, self._turn.now_ms, self.walk)
        promise = self.promises.get(job.id)
        for entry in holders:
            link = entry.link
            if link is None:
                continue
            asked.missing.add(entry.id)
            if link.features & CAN_HAND_OVER:
                question = HandoverEntry(job.id, KEEP)
                if promise is not None and promise.receiver == entry.id and promise.what != QUEUE:
                    question.what = promise.what
                    question.left_ms = max(0, promise.due_ms - self._turn.now_ms)
                self._asked.setdefault(entry.id, []).append(question)
            else:
                self._peers.copy(entry.id, JobCopy(job, life_s(job, self._turn.now_ms)), 0)
        if job.id not in self.pending:
            self.size += job.body_bytes
        self.pending[job.id] = asked

    def send(self) -> None:
        """Send what was asked, and what was dropped."""
        if self._asked:
            asked, self._asked = self._asked, {}
            self._send(asked, 0)
        if self._dropped:
            dropped, self._dropped = self._dropped, {}
            self._send(dropped, RELEASE)

    def _send(self, by_node: dict[bytes, list[HandoverEntry]], mflags: i64) -> None:
        for node_id, entries in by_node.items():
            for first in range(0, len(entries), ENTRIES_MAX):
                part = entries[first : first + ENTRIES_MAX]
                self._peers.send(node_id, HandoverMessage(self.number, part, mflags))

    # -- answers -----------------------------------------------------------------------------

    def answered(self, sender: NodeEntry, message: HandoverMessage) -> None:
        """HANDOVER with ANSWER."""
        if message.number != self.number:
            return
        for entry in message.entries:
            asked = self.pending.get(entry.job_id)
            if asked is None or sender.id not in asked.missing:
                continue
            promise = self.promises.get(entry.job_id)
            if entry.what == NOT_HELD:
                self._not_held(asked, sender)
            elif entry.what == READY or promise is None or promise.receiver != sender.id:
                self._confirmed(asked, sender)
            else:
                self._end(asked)
                self.take_back(asked.job, promise)

    def confirmed(self, sender: NodeEntry, job_id: bytes) -> None:
        """GOTJOB."""
        asked = self.pending.get(job_id)
        if asked is not None and sender.id in asked.missing:
            self._confirmed(asked, sender)

    def _confirmed(self, asked: Confirmation, sender: NodeEntry) -> None:
        asked.missing.discard(sender.id)
        promise = self.promises.get(asked.job.id)
        if promise is not None and promise.receiver == sender.id:
            del self.promises[asked.job.id]
        if not asked.missing:
            self._end(asked)
            self._release(asked)

    def _not_held(self, asked: Confirmation, sender: NodeEntry) -> None:
        """The sender has no copy: another holder has to be asked."""
        self._end(asked)
        job = asked.job
        if self._jobs.get(job.id) is job and job.state == ACTIVE:
            self._takeovers.arrivals.remove_holder(job, sender.id)
            promise = self.promises.get(job.id)
            if promise is not None and promise.receiver == sender.id:
                self.take_back(job, promise)

    def take_back(self, job: Job, promise: Promise) -> None:
        """The other node does not do what it was to do: this node does it."""
        self.promises.pop(job.id, None)
        if promise.what != QUEUE:
            self._takeovers.wait(job, promise.what, promise.due_ms)
        elif job.state == ACTIVE and job.place == NOWHERE:
            self._delivery.enqueue_counted(job, events.BY_PEER)

    def _end(self, asked: Confirmation) -> None:
        if self.pending.pop(asked.job.id, None) is not None:
            self.size -= asked.job.body_bytes

    def _release(self, asked: Confirmation) -> None:
        """Drop this node's copy, unless something happened to the job meanwhile."""
        job = asked.job
        if self._jobs.get(job.id) is not job or job.state != ACTIVE:
            return
        if job.place != NOWHERE and job.place != LOADED:
            return
        self.count(asked.walk)
        self.promises.pop(job.id, None)
        self._endings.will_end(job, MOVED)
        self._unconfirmed.left(job.id)
        mine = self._membership.myself.id
        for node_id in job.nodes:
            entry = self._peers.entry(node_id)
            link = entry.link if entry is not None else None
            if node_id != mine and link is not None and link.features & CAN_HAND_OVER:
                self._dropped.setdefault(node_id, []).append(HandoverEntry(job.id, KEEP))
        self._jobs.discard(job)

    def count(self, walk: i64 = -1) -> None:
        """A job is gone that was found in this walk, or in an earlier one."""
        self.released += 1
        if walk < 0 or walk == self.walk:
            self.released_in_walk += 1

    def next_due_ms(self) -> i64:
        """When the first one has taken too long, -1 if none is under way."""
        for asked in self.pending.values():
            return asked.asked_ms + CONFIRM_MS
        return -1

    def expire(self) -> None:
        """Give up those that took too long; the jobs are tried anew in a later walk."""
        now_ms = self._turn.now_ms
        while self.pending:
            asked = next(iter(self.pending.values()))
            if asked.asked_ms + CONFIRM_MS > now_ms:
                return
            self._end(asked)
