"""Jobs of a node that leaves, at the nodes that stay: they confirm their copies, and take over what
the jobs wait for (cluster protocol, section 21.12)."""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.arrival import Arrivals
from disque_tx.core.delivery.backoff import RetryBackoff
from disque_tx.core.jobs.job import DELAYED, LOADED, NOWHERE, Job
from disque_tx.core.state.state import State
from disque_tx.messages.handover import (
    ANSWER,
    BACKOFF,
    DELAY,
    FULL,
    HELD,
    NOT_HELD,
    READY,
    RESTARTED,
    HandoverEntry,
    HandoverMessage,
)
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import ACKED, ACTIVE, BCAST_QUEUED, DELIVERED, QUEUED, WAIT_REPL


class Takeovers:
    """Answers HANDOVER. ``acks``, ``arrivals``: the parts for acknowledgements and holders."""

    def __init__(self, state: State, arrivals: Arrivals, backoff: RetryBackoff, acks: Acks) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._peers = state.peers
        self._memory = state.memory
        self._membership = state.membership
        self.arrivals = arrivals
        self._backoff = backoff
        self.acks = acks

    def asked(self, sender: NodeEntry, message: HandoverMessage) -> None:
        """Answer which of the jobs are here; nothing, if this node leaves, too. Who asks about its
        own copies, after the start of some node, is a holder."""
        if self._membership.leaving:
            return
        answers: list[HandoverEntry] = []
        for entry in message.entries:
            job = self._jobs.get(entry.job_id)
            if job is None or job.state == WAIT_REPL:
                answers.append(HandoverEntry(entry.job_id, NOT_HELD))
            elif job.state == ACKED:
                self.acks.send_setack(job, sender.id)
            else:
                if message.number == RESTARTED and sender.id not in job.nodes:
                    # It came there from a node that was started again, and forgot whom it gave it.
                    self.arrivals.add_holder(job, sender.id)
                    self._jobs.record(job)
                self.wait(job, entry.what, self._turn.now_ms + entry.left_ms)
                answers.append(HandoverEntry(entry.job_id, READY if _is_ready(job) else HELD))
        mflags: i64 = ANSWER | FULL if self._memory.is_full() else ANSWER
        self._peers.send(sender.id, HandoverMessage(message.number, answers, mflags))

    def wait(self, job: Job, what: i64, due_ms: i64) -> None:
        """Wait for the end of a DELAY or of a backoff, unless more is known of the job here."""
        if what != DELAY and what != BACKOFF:
            return
        if job.state != ACTIVE or (job.place != NOWHERE and job.place != LOADED):
            return
        if job.retry_s == 0 and job.flags & DELIVERED:
            return  # it is never delivered again
        if what == BACKOFF:
            self._backoff.hold(job, due_ms)
            return
        job.held = False
        job.flags &= ~BCAST_QUEUED
        job.qtime_ms = max(due_ms, self._turn.now_ms + 1)
        self._jobs.set_whereabouts(job, DELAYED)
        self._jobs.reschedule(job)
        if job.retry_s == 0:
            self._jobs.record(job)  # a restart must not take it for one that was delivered

    def released(self, sender: NodeEntry, message: HandoverMessage) -> None:
        """The sender has dropped its copies. A list on the disk may name it for longer: it answers
        about jobs that it does not know any more."""
        for entry in message.entries:
            job = self._jobs.get(entry.job_id)
            if job is None or job.state == WAIT_REPL:
                continue
            if job.state == ACKED:
                self.acks.confirmed(sender, job.id, 0)
            else:
                self.arrivals.remove_holder(job, sender.id)


def _is_ready(job: Job) -> bool:
    """Whether this node brings the job to a client by itself, before its RETRY is over, or has
    given it to one, or to another node."""
    if job.state == QUEUED or job.flags & DELIVERED:
        return True
    return job.place != NOWHERE and job.place != LOADED
