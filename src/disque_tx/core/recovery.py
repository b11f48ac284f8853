"""Jobs that come back from the log (cluster protocol, section 14.6).

1. What is expired is dropped. A second record of a job takes the place of the first: it is the
   same job at a later time.
2. RETRY > 0: queued again RETRY after the load; if all that happened to it is that it waits for its
   DELAY, this starts again (:mod:`disque_tx.core.jobs.job`), and a copy is queued RETRY later.
3. RETRY 0: it is unknown whether it was delivered since the record was written, so it is not
   queued again; except one whose DELAY is still running, by the record and by the clock, and one
   that an orderly stop left in the queue, if this node wrote down its queues then
   (:func:`resume`), or the operator asked for that (``aof-enqueue-jobs-once``).
4. A job that waits here for nothing but its RETRY, or for good, counts as loaded until something
   else is known of it: at one of its holders, so that it counts once.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import (
    DELAYED,
    LOADED,
    NOWHERE,
    RESUMING,
    Job,
    delay_left_ms,
    life_s_max,
    whole_life_s,
)
from disque_tx.core.node import Node
from disque_tx.errors import PeerError
from disque_tx.messages.events import BY_RESTART
from disque_tx.messages.records import (
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELIVERED,
    QUEUED,
    JobRecord,
)


def load(node: Node, record: JobRecord, enqueue: bool) -> bool:
    """Register a job from a LOADJOB record. Returns whether the record added a new job.

    ``enqueue``: put it into its queue at once if it was queued when the record was written.
    Raises ``PeerError`` for a state that no log holds.
    """
    if record.state != ACTIVE and record.state != QUEUED:
        raise PeerError(f"a logged job in state {record.state}")
    known = node.jobs.get(record.id)
    if known is not None:
        node.delivery.remove(known)
    left_ms = min(
        record.etime_s * 1000 - node.wall_us // 1000,
        life_s_max(record.id) * 1000,  # whatever our clock says
    )
    if left_ms <= 0:
        return False
    queue = node.queues.get(record.queue)
    job = Job(
        record.id,
        record.queue if queue is None else queue.name,
        record.body,
        record.nodes,
        record.ctime,
        record.etime_s,
        delay_s=record.delay_s,
        retry_s=record.retry_s,
        repl=i64(record.repl),
    )
    job.state = ACTIVE
    job.flags = record.flags & ~BCAST_WILLQUEUE
    job.nacks = record.nacks
    job.deliveries = record.deliveries
    job.expire_ms = node.now_ms + left_ms
    job.life_ms = whole_life_s(job.id, _logged_life_s(node, job)) * 1000
    job.qtime_ms = _requeue_ms(node, job, i64(record.state), left_ms)
    again = enqueue and record.state == QUEUED
    if job.retry_s == 0 and job.qtime_ms == 0 and not again:
        job.flags |= DELIVERED  # perhaps: no command may queue it again either
    node.jobs.add(job)
    if job.qtime_ms != 0 and job.delay_s > 0 and not job.flags & (BCAST_QUEUED | DELIVERED):
        node.jobs.set_whereabouts(job, DELAYED)
    elif _counts_here(node, job):
        node.jobs.set_whereabouts(job, LOADED)
    if again:
        job.flags &= ~BCAST_QUEUED  # it goes back where it was: that counts nothing
        node.delivery.enqueue(job, BY_RESTART)
    return known is None


def _logged_life_s(node: Node, job: Job) -> i64:
    """How long the job was to live, by the clocks of who made it and of who wrote the record. Only
    if both are this node, both were rounded down alike."""
    if job.id[2:10] == node.id[:8]:
        return job.etime_s - job.ctime // 1_000_000_000
    return (job.etime_s * 1000 - job.ctime // 1_000_000) // 1000


def load_counters(job: Job, nacks: i64, deliveries: i64) -> None:
    """A job in the log came back so often; counters never decrease."""
    job.nacks = max(job.nacks, nacks)
    job.deliveries = max(job.deliveries, deliveries)


def _counts_here(node: Node, job: Job) -> bool:
    """Whether this is the first of the holders that are in the node table."""
    membership = node.membership
    for holder in job.nodes:
        if holder in membership.nodes:
            return holder == membership.myself.id
    return True


#: How long a job with other holders waits before it is back in its queue: until links are up, and
#: these holders were asked whether they have it.
RESUME_MS: Final = 2_000


def resume(node: Node, job_id: bytes, away_ms: i64) -> bool:
    """Put a loaded job back into the queue that it was in when the node stopped, ``away_ms`` ago;
    ``False`` when that must not be, or need not.

    1. One with RETRY 0, which other nodes never queue by themselves, and one that no other node
       holds: at once.
    2. Otherwise other holders may have queued it meanwhile. They are asked first. If the node was
       away for longer than RETRY, one of them certainly has, and may have delivered it, so that
       RETRY decides.
    """
    job = node.jobs.get(job_id)
    if job is None or job.state != ACTIVE or job.place == DELAYED or job.place == RESUMING:
        return False
    if job.retry_s == 0 or job.nodes == node.membership.only_me:
        job.flags &= ~BCAST_QUEUED  # it goes back where it was: that counts nothing
        if job.retry_s == 0:
            job.flags &= ~DELIVERED
        node.delivery.enqueue(job, BY_RESTART)
        return True
    if not 0 <= away_ms < job.retry_s * 1000:
        return False
    if job.place != NOWHERE and job.place != LOADED:
        return False
    node.jobs.set_whereabouts(job, RESUMING)
    job.flags |= BCAST_WILLQUEUE
    job.qtime_ms = min(job.qtime_ms, node.now_ms + RESUME_MS)
    node.jobs.reschedule(job)
    return True


def _requeue_ms(node: Node, job: Job, recorded_state: i64, left_ms: i64) -> i64:
    """The first requeue time after the load, 0 for never. ``left_ms``: of its life."""
    at_ms = node.now_ms
    if job.delay_s > 0 and recorded_state == ACTIVE and not job.flags & DELIVERED:
        mine = job.id[2:10] == node.id[:8]
        queued = job.flags & BCAST_QUEUED  # by this node, if it made the job, else by another one
        if not (mine and queued):
            at_ms += delay_left_ms(job, mine, left_ms)
        if not queued and (job.retry_s > 0 or _still_delayed(node, job)):
            return at_ms
    if job.retry_s == 0:
        return 0
    # A copy of another node's job: its creator queues it when the delay is over, this one later.
    job.flags |= BCAST_WILLQUEUE
    return node.delivery.requeue_ms(job, at_ms)


def _still_delayed(node: Node, job: Job) -> bool:
    """Whether a job with RETRY 0 was certainly not delivered: the record of its queueing may be
    lost with the power, so the clock has to say so, too, unless it was set back since."""
    passed_ms = node.wall_us // 1000 - job.ctime // 1_000_000
    return 0 <= passed_ms < job.delay_s * 1000
