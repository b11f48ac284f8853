"""Messages between the holders of a job about its delivery (cluster protocol, sections 7.5 to 7.8).

1. QUEUED: the sender has the job in its queue. Of two nodes that have it there, one takes it out
   again; which one depends on the job, so that no node always loses. All others wait for a RETRY.
2. WORKING: a client works on it. No holder keeps it in a queue, all wait for a RETRY.
3. WILLQUEUE: the sender is about to queue it. A holder that has it in its queue replies QUEUED.
4. ENQUEUE: the receiver is to queue it; sent once, to one node.
5. A job that is held back here stays so, unless the sender holds it back, too, and wins (see
   ``backoff``).
6. When RETRY is over at two holders in the same moment, both queue the job and count it. It is one
   delivery more: a holder whose own RETRY has just begun again does not count the other's.
7. About an acknowledged job the answer is always that it is acknowledged.
8. A node that gave the job to a third one, of which the sender does not know, forwards WILLQUEUE
   and WORKING to it: those carry how many holders the sender knows.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.backoff import RetryBackoff
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.job import DELAYED, IN_FLIGHT, LOADED, NOWHERE, Job
from disque_tx.core.state.state import State
from disque_tx.messages import bustypes, events
from disque_tx.messages.bus import BY_RETRY, INCR_DELIV, JobSignal
from disque_tx.messages.bustypes import ENQUEUE, WILLQUEUE, WORKING
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import ACKED, ACTIVE, BCAST_QUEUED, QUEUED, WAIT_REPL


def wins(sender: bytes, mine: bytes, job_id: bytes) -> bool:
    """Whether the sender keeps the job in its queue, rather than this node (section 7.7)."""
    for place in range(len(mine)):
        mask = job_id[11 + place % 24]
        theirs, ours = sender[place] ^ mask, mine[place] ^ mask
        if theirs != ours:
            return theirs > ours
    return False


#: Two holders queue a job for the same reason when the second one asked before the first one did:
#: half a second before its RETRY is over, and by clocks with a jitter.
_SAME_MS: Final = 750


def _same_ms(job: Job) -> i64:
    """How old the RETRY of a job is at most when another holder's is over in the same moment."""
    return min(_SAME_MS, job.retry_s * 500)


def _begun_ms(job: Job, now_ms: i64) -> i64:
    """How long ago the RETRY of a job began here, give or take the jitter."""
    if job.backoff or job.qtime_ms == 0:
        return job.retry_s * 1000
    return now_ms - job.qtime_ms + job.retry_s * 1000


class Holders:
    """Processes messages of other holders. ``acks``: the part for acknowledgements."""

    def __init__(self, state: State, delivery: Delivery, backoff: RetryBackoff, acks: Acks) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._peers = state.peers
        self._delivery = delivery
        self._backoff = backoff
        self.acks = acks
        self._membership = state.membership
        self._received = state.received

    def receive(self, sender: NodeEntry, message: JobSignal) -> None:
        """Handle QUEUED, WORKING, WILLQUEUE or ENQUEUE of another holder."""
        job = self._jobs.get(message.job_id)
        if job is None:
            if message.type == bustypes.QUEUED:
                self._delivery.early_counts.unknown(message.job_id, message.mflags)
            return
        if message.type == ENQUEUE:
            self._enqueue(job, message)
        elif job.state == ACKED:
            self.acks.send_setack(job, sender.id)
        elif message.type == WILLQUEUE:
            self._forward(job, sender.id, message)
            self._asked(job, sender.id)
        else:
            if message.type == WORKING:
                self._forward(job, sender.id, message)
            self._postponed(job, sender.id, message)

    def _forward(self, job: Job, sender: bytes, message: JobSignal) -> None:
        """Let the holders that the sender may not know have the message, too."""
        if 0 < message.aux < len(job.nodes):  # with a greater number, so this comes to an end
            self._peers.notify_holders(job, message.type, sender)

    def _postponed(self, job: Job, sender: bytes, message: JobSignal) -> None:
        """QUEUED, WORKING."""
        queued_there = message.type == bustypes.QUEUED
        by_retry = queued_there and message.mflags == INCR_DELIV and message.aux == BY_RETRY
        if queued_there and not (by_retry and self._is_same(job)):
            why = self._delivery.early_counts.uncounted(job.id, message.mflags)
            self._delivery.count(job, why)
        if job.state == WAIT_REPL:
            return
        if job.retry_s > 0:
            # It may have got the job from a third node. The original learns of such a holder by
            # WILLQUEUE only, and sends it no WORKING before.
            self._jobs.merge_holders(job, (sender,))
        if job.backoff:
            if queued_there:
                self._backoff.claim(job, sender)
                return
            if not wins(sender, self._membership.myself.id, job.id):
                self._backoff.worked_on(job)
                return
            self._backoff.end(job)
        if job.state == QUEUED:
            if queued_there and not wins(sender, self._membership.myself.id, job.id):
                return
            if job.retry_s == 0:
                return  # it would never come back
            self._delivery.dequeue(job)
        if queued_there and (job.place == DELAYED or job.place == IN_FLIGHT):
            self._jobs.set_whereabouts(job, NOWHERE)  # the sender counts it now
        elif job.place >= LOADED:
            self._jobs.set_whereabouts(job, NOWHERE)  # the sender has it in its queue, or in flight
        if job.retry_s > 0 and job.qtime_ms != 0:
            self._delivery.postpone(job)
            job.retried = by_retry

    def _is_same(self, job: Job) -> bool:
        """Whether the RETRY of another holder is over in the same moment as the one that was
        counted here last."""
        return job.retried and _begun_ms(job, self._turn.now_ms) < _same_ms(job)

    def _asked(self, job: Job, sender: bytes) -> None:
        """WILLQUEUE."""
        if job.state == ACTIVE or job.state == QUEUED:
            self._jobs.merge_holders(job, (sender,))
        if job.state == QUEUED:
            self._delivery.send_queued(job, 0)
        elif job.backoff:
            self._backoff.claim(job, sender)

    def _enqueue(self, job: Job, message: JobSignal) -> None:
        """ENQUEUE: as the first node to queue the job, or the only one."""
        if job.state != ACTIVE or not self._received.first(message):
            return
        if job.retry_s > 0 and self._delivery.is_paused_in(job):
            return
        if job.backoff:
            self._backoff.end(job)
        job.held = False
        job.flags &= ~BCAST_QUEUED
        if message.aux > 0:
            job.qtime_ms = self._turn.now_ms + message.aux * 1000
            self._jobs.set_whereabouts(job, DELAYED)
            self._jobs.reschedule(job)
        else:
            self._delivery.enqueue(job, events.BY_PEER)
        if job.retry_s == 0:
            self._jobs.record(job)  # a restart must not take it for one that was delivered
