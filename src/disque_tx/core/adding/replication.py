"""Copies of jobs on other nodes (cluster protocol, sections 7.3, 7.4, 10.6 and 10.7).

1. The nodes for a job's copies are drawn among the reachable ones (see ``placement``); all of them
   stand in its list of holders before the first message leaves, for each may have a copy from then
   on.
2. Synchronous: the client waits until enough of them answered. Every 50 ms one more node is drawn;
   who did not answer is asked again, at growing intervals.
3. ASYNC: the client does not wait, but those who do not answer are asked again all the same, until
   they do or the job ends, and after a while others are drawn in their place.
4. A node that may not keep the job itself (it leaves, or is short of memory) lets others keep all
   copies, and orders one that confirmed to queue it (ENQUEUE): external replication. With ASYNC
   the client has its answer by then, and nothing waits. When it may keep jobs again, it keeps a
   copy of those that still seek a place.
5. A node that is asked to keep a copy does so and answers; or it is silent, and another is drawn.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.asynccopies import AsyncCopies
from disque_tx.core.adding.placement import Placement
from disque_tx.core.base.part import Part
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.delivery.arrival import Arrivals
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.job import DELAYED, HOLD, Job, valid_id
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.core.state.state import State
from disque_tx.messages import events
from disque_tx.messages.bus import NOREPLY, JobCopy, JobSignal, JobsMessage
from disque_tx.messages.bustypes import DELJOB, ENQUEUE, GOTJOB, YOURJOBS
from disque_tx.messages.holders import AGAIN
from disque_tx.messages.limits import SECONDS_MAX
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import ACTIVE, QUEUED, WAIT_REPL, JobRecord

#: Between two draws for a client that waits.
RETRY_MS: Final = 50
_RESEND_MS_MIN: Final = 100
_RESEND_MS_MAX: Final = 1_600
_ASYNC_MS_MIN: Final = 200
_ASYNC_MS_MAX: Final = 30_000
#: The longest life that fits in a message.
_DOUBLINGS_MAX: Final = 10
#: Times that the nodes of an ASYNC job are asked in vain before another one is drawn.
_PATIENCE: Final = 2


def life_s(job: Job, now_ms: i64) -> int:
    """The life that a copy gets: whole seconds, rounded down, for a job must not get older by being
    moved; but at least one (section 5)."""
    return min(max(1, int(job.expire_ms - now_ms) // 1000), SECONDS_MAX)


#: ASYNC jobs that are asked about again per turn.
_RESENDS_PER_TURN: Final = 2_000


class Replication(Part):
    """Makes copies elsewhere, and keeps those of others.

    ``unconfirmed``: jobs that have enough copies since this was last read, with the nodes that were
    asked for one and did not confirm it. ``asynchronous``: ASYNC jobs whose copies are not all
    confirmed; ``resends``: when who is asked again.
    """

    def __init__(self, state: State, delivery: Delivery, arrivals: Arrivals) -> None:
        self._turn = state.turn
        self.asynchronous: dict[bytes, AsyncCopies] = {}
        self.resends: Schedule[AsyncCopies] = Schedule()
        self.unconfirmed: dict[Job, set[bytes]] = {}
        self._jobs = state.jobs
        self._outbox = state.outbox
        self._queues = state.queues
        self._waiters = state.waiters
        self._delivery = delivery
        self._arrivals = arrivals
        self._membership = state.membership
        self._peers = state.peers
        self._memory = state.memory
        self._random = state.random
        self._placement = Placement(state.membership, state.random)

    # -- making copies -----------------------------------------------------------------------

    def draw(self, nodes: tuple[bytes, ...], count: i64, avoid: bytes = b"") -> tuple[bytes, ...]:
        """The holders, and up to ``count`` reachable nodes more, none of them on the host
        ``avoid``."""
        if count <= 0:
            return nodes
        drawn = self._placement.draw(nodes, count, avoid)
        return self._arrivals.shared(nodes + tuple(drawn)) if drawn else nodes

    def begin(self, job: Job) -> None:
        """Send a job, for whose copies a client waits, to its first nodes."""
        job.qtime_ms = self._turn.now_ms + RETRY_MS
        self._send(job, set())

    def _draw_more(self, job: Job, count: i64, avoid: bytes = b"") -> bool:
        nodes = self.draw(job.nodes, count, avoid)
        if nodes is job.nodes:
            return False
        self._jobs.set_holders(job, nodes)
        return True

    def _send(self, job: Job, silent: set[bytes]) -> None:
        """Send the job to its other holders; those in ``silent`` need not answer."""
        copy = JobCopy(job, life_s(job, self._turn.now_ms))
        mine = self._membership.myself.id
        for node in job.nodes:
            if node != mine:
                self._peers.copy(node, copy, NOREPLY if node in silent else 0)

    def _send_again(self, job: Job, to: set[bytes]) -> None:
        """Send the job once more to those of its holders who did not answer."""
        copy = JobCopy(job, life_s(job, self._turn.now_ms))
        for node in job.nodes:
            if node in to:
                self._peers.copy(node, copy, 0)

    def retry(self, job: Job) -> None:
        """Draw one more node for a job that still waits, and ask the silent ones again."""
        now_ms = self._turn.now_ms
        wait = self._waiters.copies[job.id]
        confirmed = job.confirmed
        assert confirmed is not None
        mine = self._membership.myself.id
        if mine not in confirmed and self.takes_jobs():
            self._keep_too(job, confirmed)
        only_host = self._placement.only_host(confirmed) if job.repl > 1 else b""
        if len(confirmed) >= job.repl and not only_host:
            self.achieved(job)  # no holder could be ordered to queue it before
            if job.state != WAIT_REPL or self._jobs.get(job.id) is not job:
                return
        elif self._draw_more(job, 1, only_host if len(confirmed) >= job.repl else b""):
            self._send(job, confirmed)
        elif wait.resend_ms <= now_ms:
            missing = set(job.nodes) - confirmed
            self._send_again(job, missing)
            pause_ms = _RESEND_MS_MIN * (i64(1) << wait.resends)
            wait.resends = min(wait.resends + 1, _DOUBLINGS_MAX)
            wait.resend_ms = now_ms + min(pause_ms, _RESEND_MS_MAX)
        job.qtime_ms = now_ms + RETRY_MS
        self._jobs.reschedule(job)

    def _keep_too(self, job: Job, confirmed: set[bytes]) -> None:
        """Keep a copy of a job that was to be kept by others only."""
        only_me = self._membership.only_me
        confirmed.add(self._membership.myself.id)
        if job.retry_s == 0:
            self._peers.signal_holders(job, DELJOB, 0)
            self._jobs.set_holders(job, only_me)
        else:
            self._jobs.set_holders(job, self._arrivals.shared(job.nodes + only_me))
            self._send(job, confirmed)

    # -- copies that no client waits for -----------------------------------------------------

    def begin_async(self, job: Job, wanted: i64) -> None:
        """Send an ASYNC job to its nodes, and see that ``wanted`` of them confirm it."""
        mine = self._membership.myself.id
        self._send(job, set())
        copies = AsyncCopies(job, {node for node in job.nodes if node != mine}, wanted)
        self.asynchronous[job.id] = copies
        self.resends.add(copies, self._turn.now_ms + _ASYNC_MS_MIN)

    def next_due_ms(self) -> i64:
        return self.resends.next_ms()

    def run_due(self) -> None:
        """Ask again about ASYNC jobs that are not confirmed yet."""
        now_ms = self._turn.now_ms
        for copies in self.resends.due(now_ms, _RESENDS_PER_TURN):
            job = copies.job
            alive = self._jobs.get(job.id) is job and (job.state == ACTIVE or job.state == QUEUED)
            if not alive:
                self.asynchronous.pop(job.id, None)
            elif copies.wanted > 0 or self._only_host(copies):
                self._resend_async(copies)
            else:
                self._finish_async(copies)

    def _only_host(self, copies: AsyncCopies) -> bytes:
        """See ``Placement.only_host``, of the nodes that confirmed."""
        return self._placement.only_host(
            [n for n in copies.job.nodes if n not in copies.unconfirmed]
        )

    def _resend_async(self, copies: AsyncCopies) -> None:
        job = copies.job
        mine = self._membership.myself.id
        avoid = self._only_host(copies) if copies.wanted <= 0 else b""
        missing = copies.wanted - len(copies.unconfirmed)
        if missing <= 0 and (copies.attempts >= _PATIENCE or avoid):
            missing = 1
        before = set(job.nodes)
        if self._draw_more(job, missing, avoid):
            copies.unconfirmed |= set(job.nodes) - before
            self._jobs.record(job)
            confirmed = {n for n in job.nodes if n != mine and n not in copies.unconfirmed}
            self._send(job, confirmed)
        else:
            self._send_again(job, copies.unconfirmed)
        copies.attempts = min(copies.attempts + 1, _DOUBLINGS_MAX)
        pause_ms = _ASYNC_MS_MIN * (i64(1) << copies.attempts)
        self.resends.add(copies, self._turn.now_ms + min(pause_ms, _ASYNC_MS_MAX))

    def forget_all(self) -> None:
        """All jobs are gone."""
        self.unconfirmed.clear()
        self.asynchronous.clear()
        self.resends.clear()

    # -- answers -----------------------------------------------------------------------------

    def confirmed(self, sender: NodeEntry, job_id: bytes) -> None:
        """GOTJOB: the sender keeps a copy (section 7.4)."""
        job = self._jobs.get(job_id)
        if job is None:
            return
        if job.state != WAIT_REPL:
            if job in self.unconfirmed:
                self.unconfirmed[job].discard(sender.id)
            self._confirmed_async(job, sender.id)
            return
        confirmed = job.confirmed
        assert confirmed is not None
        if sender.id in job.nodes:
            confirmed.add(sender.id)
            if len(confirmed) >= job.repl and not (
                job.repl > 1 and self._placement.only_host(confirmed)
            ):
                self.achieved(job)

    def _confirmed_async(self, job: Job, sender: bytes) -> None:
        if not self.asynchronous:
            return
        copies = self.asynchronous.get(job.id)
        if copies is None or sender not in copies.unconfirmed:
            return
        copies.unconfirmed.remove(sender)
        copies.wanted -= 1
        if copies.wanted <= 0 and not self._only_host(copies):
            self.resends.remove(copies)
            self._finish_async(copies)

    def _finish_async(self, copies: AsyncCopies) -> None:
        job = copies.job
        del self.asynchronous[job.id]
        self._replicated(job, i64(len(job.nodes) - len(copies.unconfirmed)))

    def _replicated(self, job: Job, copies: i64) -> None:
        self._outbox.record_event(events.REPLICATED, job, events.NO_REASON, copies)

    def achieved(self, job: Job) -> None:
        """Activate a job that has enough copies, and answer its client (section 10.6)."""
        confirmed = job.confirmed
        assert confirmed is not None
        if self._membership.myself.id not in job.nodes:
            if self.hand_off(job):
                self._replicated(job, i64(len(confirmed)))
                self._waiters.copies_made(job)
                self._jobs.discard(job)
            return
        self._replicated(job, i64(len(confirmed)))
        if len(job.nodes) > len(confirmed):
            self.unconfirmed[job] = set(job.nodes) - confirmed
        job.confirmed = None
        job.qtime_ms = 0
        if job.delay_s > 0:
            job.step(HOLD)
            # Its delay may be over by now; it is queued in the next turn then.
            wait = self._waiters.copies[job.id]
            job.qtime_ms = max(wait.created_ms + job.delay_s * 1000, self._turn.now_ms + 1)
            self._jobs.set_whereabouts(job, DELAYED)
        else:
            self._outbox.record_event(events.QUEUED, job)
            self._delivery.first_queueing(job)
        self._jobs.reschedule(job)
        self._jobs.record(job)
        self._waiters.copies_made(job)

    # -- external replication ----------------------------------------------------------------

    def hand_off(self, job: Job) -> bool:
        """Order one of the holders, none of which is this node, to queue the job (section 10.7).

        ``False`` when there is a link to none of them. The original only queues a job with
        RETRY 0 that it is given.
        """
        able = self._able(job)
        if not able:
            return False
        chosen = able[int(self._random() * len(able))]
        if job.retry_s > 0 or job.delay_s > 0:
            self._peers.send_once(chosen, JobSignal(ENQUEUE, job.id, job.delay_s))
        else:
            self._peers.send_once(
                chosen, JobsMessage(YOURJOBS, [job], [life_s(job, self._turn.now_ms)])
            )
        if job.retry_s == 0:
            for node in job.nodes:
                if node != chosen.id:
                    self._peers.signal(node, DELJOB, job.id, 0)
        return True

    def _able(self, job: Job) -> list[NodeEntry]:
        """Holders that confirmed their copy and have a link."""
        confirmed = job.confirmed
        assert confirmed is not None
        able: list[NodeEntry] = []
        for node in job.nodes:
            entry = self._peers.entry(node) if node in confirmed else None
            if entry is not None and entry.link is not None:
                able.append(entry)
        return able

    # -- keeping copies ----------------------------------------------------------------------

    def takes_jobs(self) -> bool:
        """Whether this node may keep jobs: it is not leaving, and not short of memory."""
        return not self._membership.leaving and self._memory.level() == 0

    def keep(
        self,
        sender: NodeEntry,
        record: JobRecord,
        life_s: i64,
        mflags: i64,
    ) -> None:
        """REPLJOB: keep a copy and confirm it, or do nothing (section 7.3). ``life_s``: seconds
        that the job has left."""
        job_id = record.id
        if not self.takes_jobs() or not valid_id(job_id):
            return
        if self._queues.paused(record.queue) & PAUSE_IN and not mflags & AGAIN:
            return
        job = self._jobs.get(job_id)
        if job is not None:
            self._jobs.merge_holders(job, record.nodes)
        else:
            job = self._arrivals.job(record, life_s, mflags & AGAIN != 0)
            job.held = job.retry_s == 0
            self._jobs.add(job)
            self._jobs.record(job)
        if not mflags & NOREPLY:
            self._peers.signal(sender.id, GOTJOB, job_id, 0)
