"""Jobs that come from other nodes (cluster protocol, section 5).

A received job lives as long as its message says, counted from now; RETRY and DELAY start again. IDs
of holders are kept even if this node does not know them (yet): they are looked up when a message is
to be sent to them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.job import NOWHERE, Job, made_by, whole_life_s
from disque_tx.core.state.state import State
from disque_tx.messages.holders import HoldersMessage
from disque_tx.messages.limits import SECONDS_MAX
from disque_tx.messages.records import ACTIVE, BCAST_QUEUED, BCAST_WILLQUEUE, JobRecord

#: Lists of holders remembered, so that the jobs of a cluster share theirs.
_LISTS_MAX: Final = 4_096


class Arrivals:
    """Makes jobs of received records."""

    def __init__(self, state: State, delivery: Delivery) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._queues = state.queues
        self._membership = state.membership
        self._delivery = delivery
        self._lists: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
        # The list that was looked for last, and what was found: those of one message are one.
        self._last: tuple[bytes, ...] = ()
        self._last_shared: tuple[bytes, ...] = ()

    def job(self, record: JobRecord, life_s: i64, again: bool) -> Job:
        """The job, active and registered nowhere. ``again``: this node is a new holder, of which
        the others did not know when they counted what the record holds."""
        job = self.about_to_be_queued(record, record.id, life_s)
        if not again and (job.nacks > 0 or job.deliveries > 0):
            self._delivery.early_counts.arrived(job.id, job.nacks, job.deliveries)
        queue = self._queues.get(record.queue)
        if queue is not None:
            job.queue = queue.name
        if job.retry_s > 0:
            job.flags |= BCAST_WILLQUEUE
            job.qtime_ms = self._delivery.requeue_ms(job, self._turn.now_ms) + job.delay_s * 1000
        return job

    def about_to_be_queued(self, record: JobRecord, job_id: bytes, life_s: i64) -> Job:
        """The job, with the ID of the record, active and registered nowhere. Its requeue time and
        the one name of its queue are still missing: it gets both in the queue."""
        now_ms = self._turn.now_ms
        job = Job(
            job_id,
            record.queue,
            b"",
            self.shared(record.nodes),
            record.ctime,
            min(self._turn.wall_us // 1_000_000 + life_s, SECONDS_MAX),
            delay_s=record.delay_s,
            retry_s=record.retry_s,
            repl=i64(record.repl),
        )
        job.data = record.data  # with the body
        job.state = ACTIVE
        job.regained = made_by(self._membership.myself.id, job_id)
        job.flags = (record.flags & ~BCAST_WILLQUEUE) | BCAST_QUEUED
        job.nacks = record.nacks
        job.deliveries = record.deliveries
        job.expire_ms = now_ms + life_s * 1000
        job.life_ms = whole_life_s(job_id, life_s) * 1000
        return job

    def remove_holder(self, job: Job, node_id: bytes) -> None:
        """The node has no copy of a registered job."""
        left = tuple([holder for holder in job.nodes if holder != node_id])
        if len(left) < len(job.nodes):
            self._jobs.set_holders(job, self.shared(left))

    def add_holder(self, job: Job, node_id: bytes) -> None:
        """The node has a copy of a registered job, though its list does not name it."""
        self._jobs.set_holders(job, self.shared((*job.nodes, node_id)))

    def complete(self, job: Job, message: HoldersMessage) -> None:
        """Take from HOLDERS what the record of a copy that has just arrived did not hold."""
        if job.state != ACTIVE or job.place != NOWHERE:
            return
        job.priority = message.priority
        if message.delay_ms > 0:
            due_ms = self._delivery.requeue_ms(job, self._turn.now_ms + message.delay_ms)
            job.qtime_ms = due_ms
            if job.regained:
                # Nobody has queued it. If this was unknown after a restart, this node would.
                job.flags &= ~BCAST_QUEUED
                self._jobs.record(job)
            self._jobs.reschedule(job)

    def merged(self, nodes: tuple[bytes, ...], others: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Put the others behind these holders; the same tuple if all of them are among these."""
        listed = set(nodes)
        more = tuple([node for node in others if node not in listed])
        return self.shared(nodes + more) if more else nodes

    def shared(self, nodes: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """The one tuple that all jobs with these holders use."""
        if nodes is not self._last:
            self._last_shared = self._shared(nodes)
            self._last = nodes
        return self._last_shared

    def _shared(self, nodes: tuple[bytes, ...]) -> tuple[bytes, ...]:
        known = self._lists.get(nodes)
        if known is not None:
            return known
        if nodes == self._membership.only_me:
            return self._membership.only_me
        if len(self._lists) >= _LISTS_MAX:
            self._lists.clear()
        table = self._membership.nodes
        known = tuple([table[node].id if node in table else node for node in nodes])
        self._lists[known] = known
        return known
