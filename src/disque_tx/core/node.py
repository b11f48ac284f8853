"""The node: one method per input; everything it wants done goes to the outbox.

It knows no clock: :meth:`Node.begin` tells it the time of a turn, and everything that happens in
the turn happens at that time. ``now_ms`` is a steady clock on which all deadlines lie; ``wall_us``
is the time of day that creation times and expiry times on disk are made of. They only meet where a
job comes from the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.core.client import REPLY_OFF, Client
from disque_tx.core.delivery import Delivery
from disque_tx.core.job import HOLD, Job
from disque_tx.core.membership import Membership
from disque_tx.core.memory import Memory
from disque_tx.core.outbox import Outbox
from disque_tx.core.queues import PAUSE_IN, PAUSE_OUT, Queues
from disque_tx.core.store import JobStore
from disque_tx.core.waiters import Waiters
from disque_tx.errors import CommandError
from disque_tx.messages import (
    BCAST_WILLQUEUE,
    QUEUED,
    IdSource,
    JobRecord,
)

_ETIME_MAX: Final = 4_294_967_295
#: Jobs and clients handled per call, so that no turn grows with what is stored.
DUE_PER_TURN: Final = 2_000
_AT_MOST_ONCE: Final = (
    "With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)"
)
_NEVER_DELIVERED: Final = (
    "The specified DELAY is greater than TTL. Job refused since would never be delivered"
)
_NOREPL: Final = "Not enough reachable nodes for the requested replication level"
_LEAVING: Final = "This node is leaving the cluster, please connect to a different one"


class Node:
    """State of one node. ``random``: a number in [0, 1) per call."""

    def __init__(self, membership: Membership, ids: IdSource, random: Callable[[], float]) -> None:
        self.now_ms: i64 = 0
        self.wall_us: i64 = 0
        self.outbox = Outbox()
        self.memory = Memory()
        self.queues = Queues(self.memory)
        self.jobs = JobStore(self.memory, self.outbox)
        self.waiters = Waiters(self.queues, self.outbox)
        self.delivery = Delivery(self.jobs, self.queues, self.waiters, self.outbox, random)
        self.membership = membership
        self.random = random
        self._ids = ids
        self._ctime: i64 = 0

    @property
    def id(self) -> bytes:
        """This node's ID, 40 characters."""
        return self.membership.myself.id

    @property
    def blocked_clients(self) -> int:
        """How many clients wait for jobs or for copies."""
        return len(self.waiters.blocked)

    def used_memory(self) -> int:
        """Bytes that jobs and queues take (see :mod:`disque_tx.core.memory`)."""
        return self.memory.used

    @property
    def peak_memory(self) -> int:
        """The most :meth:`used_memory` ever was."""
        return self.memory.peak

    def begin(self, now_ms: i64, wall_us: i64) -> None:
        """A turn begins at this time."""
        self.now_ms = now_ms
        self.wall_us = wall_us

    # -- adding ------------------------------------------------------------------------------

    def add_job(
        self,
        client: Client,
        queue_name: bytes,
        body: bytes,
        replicate: i64,
        ttl_s: i64,
        retry_s: i64,
        delay_s: i64,
        maxlen: i64,
    ) -> None:
        """ADDJOB (client protocol, section 14); -1 stands for an option not given.

        Raises ``CommandError`` as section 14.2 lists it, in its order.
        """
        size = self.membership.size
        repl: i64 = replicate if replicate > 0 else min(3, size)
        if repl > 1 and retry_s == 0:
            raise CommandError("ERR", _AT_MOST_ONCE)
        if delay_s >= ttl_s:
            raise CommandError("ERR", _NEVER_DELIVERED)
        if retry_s < 0:
            retry_s = max(1, min(ttl_s // 10, 300))
        self._check_copies(repl)
        queue = self.queues.get(queue_name)
        if queue is not None:
            if 0 < maxlen <= queue.jobs.size:
                raise CommandError(
                    "MAXLEN", "Queue is already longer than the specified MAXLEN count"
                )
            if queue.paused & PAUSE_IN:
                raise CommandError("PAUSED", "Queue paused in input, try later")
            queue_name = queue.name
        etime_s = self.wall_us // 1_000_000 + ttl_s
        if etime_s > _ETIME_MAX:
            raise CommandError("ERR", "TTL must be a number > 0")
        job = Job(
            self._ids.next_id(self.membership.myself.id, ttl_s, retry_s),
            queue_name,
            body,
            self.membership.only_me,
            self._next_ctime(),
            etime_s,
            delay_s,
            retry_s,
            repl,
        )
        job.expire_ms = self.now_ms + ttl_s * 1000
        if delay_s > 0:
            job.step(HOLD)
            job.qtime_ms = self.now_ms + delay_s * 1000
        else:
            self.delivery.first_queueing(job, self.now_ms)
        self.jobs.add(job)
        self.jobs.record(job)
        client.replies.status(job.id)

    def _check_copies(self, repl: i64) -> None:
        """Refuse what cannot reach its number of copies (section 14.2, step 5)."""
        external = self.membership.leaving or self.memory.level() > 0
        elsewhere = repl if external else repl - 1
        # A copy can only go where there is a link.
        reachable = len([node for node in self.membership.reachable if node.connected])
        if elsewhere <= reachable:
            return
        if external and elsewhere - 1 == reachable:
            reason = "I'm leaving the cluster" if self.membership.leaving else "I'm out of memory"
            raise CommandError(
                "NOREPL",
                f"{_NOREPL}, since I'm unable to hold a copy of the message"
                f" for the following reason: {reason}",
            )
        raise CommandError("NOREPL", _NOREPL)

    def _next_ctime(self) -> i64:
        """A creation time later than every one before it (cluster protocol, section 15.3)."""
        ctime = self.wall_us // 1000 * 1_000_000
        if ctime <= self._ctime:
            ctime = self._ctime + 1
        self._ctime = ctime
        return ctime

    # -- delivering --------------------------------------------------------------------------

    def get_jobs(
        self,
        client: Client,
        names: list[bytes],
        count: i64,
        timeout_ms: i64,
        no_hang: bool,
        counters: bool,
    ) -> None:
        """GETJOB (client protocol, section 15): answer with jobs, or block the client."""
        jobs: list[JobRecord] = []
        while True:
            before = len(jobs)
            for name in names:
                queue = self.queues.obtain(name, self.now_ms)
                if queue.jobs.size > 0 and not queue.paused & PAUSE_OUT:
                    job = self.delivery.fetch(queue, self.now_ms)
                    if job is not None:
                        jobs.append(job)
                    if len(jobs) >= count:
                        break
            if len(jobs) == before or len(jobs) >= count:
                break
        if jobs:
            client.replies.jobs(jobs, counters)
        elif no_hang:
            client.replies.null_array()
        elif self.membership.leaving:
            raise CommandError("LEAVING", _LEAVING)
        else:
            self.waiters.wait_for_jobs(client, names, counters, timeout_ms, self.now_ms)

    def remove(self, ids: list[bytes]) -> int:
        """ACKJOB, FASTACK and DELJOB: how many jobs were known and are gone now (section 16).

        This node is the only holder of its jobs: acknowledged is as good as collected.
        """
        count = 0
        for job_id in ids:
            job = self.jobs.get(job_id)
            if job is not None:
                self.delivery.remove(job)
                count += 1
        return count

    def enqueue(self, ids: list[bytes], nack: bool) -> int:
        """ENQUEUE and NACK: how many jobs went from active to queued (section 17)."""
        count = 0
        for job_id in ids:
            job = self.jobs.get(job_id)
            if job is not None and self.delivery.enqueue(job, nack, self.now_ms):
                count += 1
                if job.retry_s == 0 and job.delay_s > 0:
                    # A restart must not take it for one whose delay is still running.
                    self.jobs.record_again(job)
        return count

    def dequeue(self, ids: list[bytes]) -> int:
        """DEQUEUE: how many jobs went from queued to active (section 17)."""
        count = 0
        for job_id in ids:
            job = self.jobs.get(job_id)
            if job is not None and job.state == QUEUED:
                self.delivery.dequeue(job)
                count += 1
        return count

    def working(self, job_id: bytes) -> int:
        """WORKING: postpone the next delivery by RETRY, which is returned in seconds (section 17).

        Raises ``CommandError`` NOJOB for an unknown job, TOOLATE behind half of its life.
        """
        job = self.jobs.get(job_id)
        if job is None or job.dummy:
            raise CommandError("NOJOB", "Job not known in the context of this node.")
        life_ms = job.etime_s * 1000 - job.ctime // 1_000_000
        if life_ms > 0 and 2 * (job.expire_ms - self.now_ms) < life_ms:
            raise CommandError(
                "TOOLATE",
                "Half of job TTL already elapsed, you are no longer allowed to postpone"
                " the next delivery.",
            )
        if job.retry_s == 0:
            # A queued one was never delivered: nobody works on it, and it could not come back.
            return 0
        if job.state == QUEUED:
            self.delivery.dequeue(job)
        job.flags |= BCAST_WILLQUEUE
        job.qtime_ms = self.delivery.requeue_ms(job, self.now_ms)
        self.jobs.reschedule(job)
        return job.retry_s

    def pause(self, name: bytes, flags: i64) -> None:
        """Set the pause flags of a queue, which is made if there are any (section 19)."""
        queue = self.queues.get(name)
        if queue is None:
            if flags == 0:
                return
            queue = self.queues.obtain(name, self.now_ms)
        queue.paused = flags
        self.waiters.note_ready(queue)

    # -- clients and time --------------------------------------------------------------------

    def client_gone(self, client: Client) -> None:
        """The connection is lost: nothing is held for it any more."""
        self.waiters.leave(client)

    def run_due(self) -> None:
        """Handle what is due by now, a bounded part of it; the rest stays due."""
        for job in self.jobs.schedule.due(self.now_ms, DUE_PER_TURN):
            self.delivery.awake(job, self.now_ms)
        for client in self.waiters.expired(self.now_ms, DUE_PER_TURN):
            self._release(client)
        self.serve()

    def serve(self) -> None:
        """Serve the clients in line at queues that became ready."""
        if self.waiters.ready:
            self.delivery.serve(self.now_ms)

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        jobs_ms = self.jobs.schedule.next_ms()
        clients_ms = self.waiters.timeouts.next_ms()
        if jobs_ms < 0 or 0 <= clients_ms < jobs_ms:
            return clients_ms
        return jobs_ms

    def _release(self, client: Client) -> None:
        """End a GETJOB without jobs."""
        if client.reply_mode != REPLY_OFF:
            client.replies.null_array()
        self.waiters.leave(client)
        self.outbox.touch(client)

    def release_leaving(self) -> None:
        """Send the clients that wait here elsewhere, once this node is leaving (section 12.3)."""
        if not self.membership.leaving:
            return
        for client in list(self.waiters.blocked)[:DUE_PER_TURN]:
            if client.reply_mode != REPLY_OFF:
                client.replies.error(CommandError("LEAVING", _LEAVING).reply())
            self.waiters.leave(client)
            self.outbox.touch(client)

    def flush_all(self) -> None:
        """Forget every job and queue; waiting clients get no jobs (DEBUG FLUSHALL, RESET)."""
        for client in list(self.waiters.blocked):
            self._release(client)
        self.waiters.ready.clear()
        self.jobs.clear()
        self.queues.clear()
