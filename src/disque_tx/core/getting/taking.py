"""Jobs that other nodes give to this one are queued here (cluster protocol, section 11.5).

1. A job that its maker keeps back, since it lacks copies that nobody waits for, is queued when a
   holder whose RETRY is over gives it to its maker.
2. A message that moves jobs with RETRY 0 is taken once.
3. Who gives a job may know of fewer deliveries than this node, because it was away or forgot some.
   If the job came back here as often as ``max-deliveries`` allows, it is not queued: it is held
   back for a moment, and then becomes a dead letter as it would have at once.
"""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.adding.replication import Replication
from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.arrival import Arrivals
from disque_tx.core.delivery.backoff import RetryBackoff
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.getting.demanding import Demanding
from disque_tx.core.jobs.job import Job, valid_id
from disque_tx.core.queues.demand import QueueDemand
from disque_tx.core.queues.queues import Queue
from disque_tx.core.state.state import State
from disque_tx.messages import events
from disque_tx.messages.bus import JobsMessage
from disque_tx.messages.demands import DEMANDED, MORE, RETURNED
from disque_tx.messages.handover import HANDED_OVER
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import (
    ACKED,
    ACTIVE,
    BCAST_QUEUED,
    QUEUED,
    WAIT_REPL,
    JobRecord,
)


class Taking:
    """Queues jobs that other nodes give."""

    def __init__(
        self,
        state: State,
        delivery: Delivery,
        arrivals: Arrivals,
        acks: Acks,
        demanding: Demanding,
        replication: Replication,
    ) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._queues = state.queues
        self._membership = state.membership
        self._outbox = state.outbox
        self._waiters = state.waiters
        self._received = state.received
        self._matching = state.matching
        self._policies = state.policies
        self._delivery = delivery
        self._arrivals = arrivals
        self._acks = acks
        self._demanding = demanding
        self._replication = replication
        self._backoff = RetryBackoff(state, delivery)

    def take(self, sender: NodeEntry, message: JobsMessage, late: bool) -> None:
        """YOURJOBS: queue what came; if ``late``, only what its sender did not keep."""
        now_ms = self._turn.now_ms
        first = self._received.first(message)
        # Of the last job of a demand; most of one message are of few queues.
        queue: Queue | None = None
        name = b""
        for place in range(len(message.jobs)):
            record = message.jobs[place]
            job_id = record.id
            if not valid_id(job_id):
                continue
            if message.mflags & DEMANDED:
                more = message.mflags & MORE != 0
                if queue is None or name is not record.queue:
                    name = record.queue
                    queue = self._queues.obtain(name, now_ms)
                self._demanding.arrived(queue, sender.id, record.body_bytes, more)
            if record.retry_s == 0 and not first:
                continue
            job = self._jobs.get(job_id)
            if job is not None and job.state == ACKED:
                self._acks.send_setack(job, sender.id)
                continue
            if late and record.retry_s > 0:
                continue
            if job is None:
                left_s = message.lives_s[place]
                job = self._arrivals.about_to_be_queued(record, job_id, left_s)
                if job.nacks > 0 or job.deliveries > 0:
                    self._delivery.early_counts.came_back(job_id, job.nacks, job.deliveries)
                taken = self._take_new(job, sender.id)
                self._jobs.add(job)
                self._jobs.record(job)
            else:
                self._jobs.merge_holders(job, record.nodes)
                known = job.nacks + job.deliveries
                self._delivery.merge_counters(job, record)
                if job.state == ACTIVE and self._came_back_too_often(job, record, known):
                    self._backoff.hold(job, now_ms)
                    continue
                taken = self._take(job, sender.id)
            if taken:
                if message.mflags & HANDED_OVER and len(job.nodes) > 2:
                    self._delivery.send_queued(job, 0)  # it may wait here for longer than RETRY
                taking = queue
                if taking is None or taking.name is not job.queue:
                    taking = self._queues.obtain(job.queue, now_ms)
                self._note_giver(taking, sender.id, message.mflags & RETURNED != 0)

    def _note_giver(self, queue: Queue, giver: bytes, returned: bool) -> None:
        """A node gave a job of this queue, or gave it back."""
        now_ms = self._turn.now_ms
        if not returned:
            if queue.imports is None:
                queue.imports = QueueDemand(now_ms)
            queue.imports.note(giver, now_ms)
        if self._matching.active:
            self._matching.note_giver(queue, giver)

    def _take_new(self, job: Job, giver: bytes) -> bool:
        """Queue a job that was given and is not registered yet."""
        if not self._delivery.may_queue(job):
            return False
        events_sink = self._outbox.events
        if events_sink is not None:
            events_sink.moved(events.IMPORTED, job, giver)
            events_sink.job(events.QUEUED, job, events.BY_IMPORT, 0, -1)
        self._delivery.first_queueing(job)
        return True

    def _take(self, job: Job, giver: bytes) -> bool:
        """Queue a job that is known here; nothing is counted as a delivery."""
        if job.state == WAIT_REPL:
            return self._take_lacking(job, giver)
        if job.state != ACTIVE or job.backoff:
            return False
        job.held = False
        job.flags &= ~BCAST_QUEUED
        if self._outbox.events is not None and self._delivery.may_queue(job):
            self._outbox.events.moved(events.IMPORTED, job, giver)
        return self._delivery.enqueue(job, events.BY_IMPORT)

    def _take_lacking(self, job: Job, giver: bytes) -> bool:
        """Queue a job that lacks copies, unless somebody waits for these: its holders deliver it
        without them anyway, and may have no clients."""
        watcher = self._waiters.watched.get(job.id)
        needed = watcher is not None and watcher.needs_copies()
        confirmed = job.confirmed
        if needed or confirmed is None or self._waiters.copies[job.id].client is not None:
            return False
        if self._membership.myself.id not in job.nodes:
            return False
        confirmed.add(giver)
        self._replication.achieved(job)
        return job.state == QUEUED

    def _came_back_too_often(self, job: Job, record: JobRecord, known: i64) -> bool:
        """Whether this node, by the deliveries that it had counted, would have made a dead letter
        of a job that its giver still delivers by right."""
        if not self._policies.active or job.retry_s == 0 or job.backoff:
            return False
        policy = self._policies.of(job.queue)
        return (
            policy is not None and record.nacks + record.deliveries < policy.max_deliveries <= known
        )
