"""ADDJOB: what is refused, and where an accepted job goes (client protocol, section 14).

1. Kept here and nowhere else: queued, or held back by its DELAY, and the client has its ID.
2. Copies wanted, synchronous: the client waits for them (``replication``).
3. ASYNC: as 1, and copies are sent meanwhile.
4. This node must not keep it: as 2, but all copies are elsewhere; with ASYNC no client waits, but
   the job is followed here until they are.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.replication import Replication
from disque_tx.core.base.bounds import check_queue
from disque_tx.core.base.client import Client
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.addrequest import AddRequest, usual_retry_s
from disque_tx.core.jobs.job import DELAYED, HOLD, Job
from disque_tx.core.nodes.duplicateids import identity_conflict_error
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.core.state.state import State
from disque_tx.errors import CommandError
from disque_tx.messages.events import ASYNC, BY_SCHEDULE, NO_REASON
from disque_tx.messages.limits import SECONDS_MAX
from disque_tx.messages.records import WAIT_REPL, IdSource

_AT_MOST_ONCE: Final = (
    "With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)"
)
_NEVER_DELIVERED: Final = (
    "The specified DELAY is greater than TTL. Job refused since would never be delivered"
)
_NOREPL: Final = "Not enough reachable nodes for the requested replication level"


class Adding:
    """Takes new jobs."""

    def __init__(
        self, state: State, delivery: Delivery, replication: Replication, ids: IdSource
    ) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._notes = state.notes
        self._outbox = state.outbox
        self._queues = state.queues
        self._waiters = state.waiters
        self._delivery = delivery
        self._replication = replication
        self._membership = state.membership
        self._totals = state.totals
        self._flows = state.flows
        self._memory = state.memory
        self._policies = state.policies
        self._ids = ids
        self._ctime: i64 = 0

    def add(self, client: Client, request: AddRequest) -> None:
        """See ``Node.add_job``."""
        job = self._new(request)
        self._count(job)
        reason = ASYNC if request.asynchronous else NO_REASON
        self._place(client, job, request, reason)
        if job.state != WAIT_REPL or request.asynchronous:
            client.replies.status(job.id)

    def add_all(self, requests: list[AddRequest]) -> list[Job]:
        """Add several jobs, or none; no client waits for their copies.

        Raises ``CommandError`` as for a client, for the first one that is refused.
        """
        jobs = [self._new(request) for request in requests]
        for place in range(len(jobs)):
            request = requests[place]
            self._count(jobs[place])
            reason = ASYNC if request.asynchronous else NO_REASON
            self._place(None, jobs[place], request, reason)
        return jobs

    def _count(self, job: Job) -> None:
        self._totals.added += 1
        self._flows.added(job.queue)

    def draw_id(self, request: AddRequest) -> bytes:
        """The ID of the job that is asked for; TTL and RETRY, which it tells, are fixed by that.
        Raises ``CommandError`` for a queue that gets no new jobs."""
        check_queue(request.queue)
        policy = self._policies.of(request.queue) if self._policies.active else None
        request.ttl_s, request.retry_s = request.life(policy)
        return self._ids.next_id(self._membership.myself.id, request.ttl_s, request.retry_s)

    def add_for(self, client_id: i64, request: AddRequest) -> Job:
        """Add a job for a client that somebody else answers. The job may still wait for its copies.

        Raises ``CommandError`` as for a client. ``client_id``: of the event, 0 for no client.
        """
        job = self._new(request)
        self._count(job)
        reason = ASYNC if request.asynchronous else NO_REASON
        self._place(None, job, request, reason, client_id)
        return job

    def add_instead(self, request: AddRequest, reason: i64) -> Job:
        """Add a job that takes the place of another one. The job may still wait for its copies.

        Raises ``CommandError`` as for a client. ``reason``: of the event.
        """
        if self._membership.identity.suspended:
            raise identity_conflict_error()
        request.delay_s = max(request.delay_s, 0)  # it has waited
        job = self._new(request)
        self._place(None, job, request, reason)
        return job

    def add_scheduled(self, request: AddRequest, id_start: bytes) -> Job:
        """Add a job that no client asks for. The job may still wait for its copies.

        ``id_start``: what its ID begins with, up to the TTL; empty for an ID as any other. If there
        is a job with that ID, it is returned. Raises ``CommandError`` as for a client.
        """
        if self._membership.identity.suspended:
            raise identity_conflict_error()
        if self._memory.level() > 1:
            raise out_of_memory()
        job = self._new(request, id_start)
        known = self._jobs.get(job.id)
        if known is not None:
            return known
        self._count(job)
        self._place(None, job, request, BY_SCHEDULE)
        return job

    def _new(self, request: AddRequest, id_start: bytes = b"") -> Job:
        """The job that is asked for, registered nowhere."""
        check_queue(request.queue)
        membership = self._membership
        policies = self._policies
        policy = policies.of(request.queue) if policies.active else None
        by_policy = request.complete(policy)
        ttl_s, retry_s = request.ttl_s, request.retry_s
        repl: i64 = request.replicate
        if repl <= 0:
            repl = min(3, membership.size)
        if repl > 1 and retry_s == 0:
            raise CommandError("ERR", _AT_MOST_ONCE + by_policy)
        if request.delay_s >= ttl_s:
            raise CommandError("ERR", _NEVER_DELIVERED + by_policy)
        if retry_s < 0:
            retry_s = usual_retry_s(ttl_s)
        outside = not self._replication.takes_jobs()
        elsewhere = repl if outside else repl - 1
        if elsewhere > len(membership.reachable):
            raise self._too_few(elsewhere, outside)
        queue_name = self._shared_name(request.queue, request.maxlen)
        etime_s = self._turn.wall_us // 1_000_000 + ttl_s
        if etime_s > SECONDS_MAX:
            raise CommandError("ERR", "TTL must be a number > 0")
        unique = request.unique
        if unique is not None and unique.job_id:
            job_id = unique.job_id
        else:
            job_id = self._ids.next_id(membership.myself.id, ttl_s, retry_s)
        if id_start:
            job_id = id_start + job_id[len(id_start) :]
        job = Job(
            job_id,
            queue_name,
            request.body,
            () if outside else membership.only_me,
            self._next_ctime(),
            etime_s,
            delay_s=request.delay_s,
            retry_s=retry_s,
            repl=repl,
        )
        job.priority = request.priority
        job.life_ms = ttl_s * 1000
        job.expire_ms = self._turn.now_ms + job.life_ms
        return job

    def _place(
        self,
        client: Client | None,
        job: Job,
        request: AddRequest,
        reason: i64,
        client_id: i64 = 0,
    ) -> None:
        """Keep the job here, or see to its copies. ``client``: who waits for these."""
        asynchronous = request.asynchronous
        outside = len(job.nodes) == 0
        elsewhere = i64(job.repl) - len(job.nodes)
        if self._outbox.events is not None:
            kept = elsewhere == 0 or (asynchronous and not outside)
            if client is not None:
                client_id = client.id
            queued = kept and job.delay_s == 0
            self._outbox.events.added(job, request.ttl_s, reason, client_id, queued)
        note = request.note
        if note is not None:
            self._notes.put(job.id, note)
            note.begins(job)
        if elsewhere == 0:
            self._keep(job)
        elif outside or not asynchronous:
            self._wait(None if asynchronous else client, job, elsewhere, request.timeout_ms)
        else:
            self._send(job, elsewhere)

    def _shared_name(self, queue_name: bytes, maxlen: i64) -> bytes:
        """The one copy of the name for all jobs of a queue, which must take one more."""
        queue = self._queues.get(queue_name)
        if queue is None:
            if self._queues.paused_by_policy(queue_name) & PAUSE_IN:
                raise _paused()
            return queue_name
        if 0 < maxlen <= queue.jobs.size:
            raise CommandError("MAXLEN", "Queue is already longer than the specified MAXLEN count")
        if queue.paused & PAUSE_IN:
            raise _paused()
        return queue.name

    def _too_few(self, elsewhere: i64, outside: bool) -> CommandError:
        """What cannot reach its number of copies is refused (section 14.2, step 5)."""
        if not outside or elsewhere - 1 != len(self._membership.reachable):
            return CommandError("NOREPL", _NOREPL)
        reason = "I'm leaving the cluster" if self._membership.leaving else "I'm out of memory"
        return CommandError(
            "NOREPL",
            f"{_NOREPL}, since I'm unable to hold a copy of the message"
            f" for the following reason: {reason}",
        )

    def _next_ctime(self) -> i64:
        """A creation time later than every one before it (cluster protocol, section 15.3)."""
        ctime = self._turn.wall_us // 1000 * 1_000_000
        if ctime <= self._ctime:
            ctime = self._ctime + 1
        self._ctime = ctime
        return ctime

    def _keep(self, job: Job) -> None:
        """Queue the job here, now or after its delay."""
        if job.delay_s > 0:
            job.step(HOLD)
            job.qtime_ms = self._turn.now_ms + job.delay_s * 1000
            self._jobs.set_whereabouts(job, DELAYED)
        else:
            self._delivery.first_queueing(job)
        self._jobs.add(job)
        self._jobs.record(job)

    def _wait(self, client: Client | None, job: Job, elsewhere: i64, timeout_ms: i64) -> None:
        """Wait for ``elsewhere`` copies, for the client or for no client."""
        job.confirmed = set(job.nodes)
        job.nodes = self._replication.draw(job.nodes, elsewhere)
        self._waiters.wait_for_copies(client, job, timeout_ms)
        self._replication.begin(job)
        self._jobs.add(job)

    def _send(self, job: Job, elsewhere: i64) -> None:
        """Send ``elsewhere`` copies, and keep one here."""
        job.nodes = self._replication.draw(job.nodes, elsewhere)
        self._keep(job)
        self._replication.begin_async(job, elsewhere)


def out_of_memory() -> CommandError:
    """The error for a job that does not fit into ``maxmemory`` (client protocol, section 13.6)."""
    return CommandError("OOM", "command not allowed when used memory > 'maxmemory'.")


def _paused() -> CommandError:
    return CommandError("PAUSED", "Queue paused in input, try later")
