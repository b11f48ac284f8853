"""Acknowledgements: until every holder of a job knows that it is done (cluster protocol, 7.9 to
7.11 and 10.8 to 10.10).

1. A holder that learns of the acknowledgement keeps it, instead of the job, and sends it to all
   other holders (SETACK) until each has confirmed (GOTACK); then all may forget the job (DELJOB).
2. A node that knows the job but is not among its holders (it was imported) leaves this to the
   holders: it sends SETACK to them until one has confirmed, which goes on alone.
3. So does a node that never knew the job: it keeps a dummy acknowledgement, and sends to all nodes.
4. A node that knows fewer holders than the sender of SETACK just confirms; one that knows more goes
   on by itself. Of two that hold nothing, the one with the greater ID goes on.
5. DELJOB confirms, and does not end, what is collected here: it may be that of a refused ADDJOB,
   and late; and what a holder sent before it confirmed may still be under way on its own link. Nor
   does that of a refused ADDJOB end a job of which somebody was told, by its key, that it exists.
6. The node that made a job, but keeps no copy, may still ask others to: it is notified like a
   holder.
7. A holder that is not in the node table any more is waited for until the attempts are at their
   slowest, and then no longer.
8. While the node that made the job cannot be reached, the others get to know, too: the job may have
   a key (see ``keys``).
9. A node to which this one just gave the job is notified in any case (see ``handovers``).
10. Two holders of which one gave the job to the other need less (see ``settling``).
11. A node that leaves does not wait for holders that wait for others. From its second attempt on it
    names no holders: then everybody confirms. And it asks again within seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, u8

from disque_tx.core.delivery.delivery import Delivery, worked_ms
from disque_tx.core.delivery.settling import Settling
from disque_tx.core.jobs.job import Job, life_minutes, made_by, may_repeat
from disque_tx.core.queues.endings import ACKNOWLEDGED, MOVED
from disque_tx.core.state.state import State
from disque_tx.messages import events
from disque_tx.messages.bus import ONLY_US, JobSignal
from disque_tx.messages.bustypes import DELJOB, GOTACK, SETACK
from disque_tx.messages.nodes import HANDSHAKE, NodeEntry
from disque_tx.messages.records import ACKED, QUEUED, WAIT_REPL

_FIRST_MS: Final = 1_000
_LONGEST_MS: Final = 180_000
_LEAVING_MS: Final = 8_000
_JITTER_MS: Final = 500
_ATTEMPTS_MAX: Final = 10


class Acks:
    """Acknowledges jobs and collects the acknowledgements."""

    def __init__(self, state: State, delivery: Delivery) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._outbox = state.outbox
        self._waiters = state.waiters
        self._delivery = delivery
        self._membership = state.membership
        self._peers = state.peers
        self._random = state.random
        self._totals = state.totals
        self._flows = state.flows
        self._handovers = state.handovers
        self._endings = state.endings
        self._keys_by_job = state.keys_by_job
        self._unconfirmed = state.unconfirmed
        self._settling = Settling(state, delivery)

    # -- commands ----------------------------------------------------------------------------

    def acknowledge(self, ids: list[bytes]) -> int:
        """ACKJOB: how many jobs were known here and not yet acknowledged."""
        count = 0
        for job_id in ids:
            job = self._jobs.get(job_id)
            if job is None:
                self._remember(job_id)
            elif job.state == ACKED:
                self.attempt(job)
            else:
                count += 1
                self._count(events.ACKED, job)
                self.end(job)
        return count

    def end(self, job: Job) -> None:
        """End a job that is not acknowledged yet, as ACKJOB does; nothing is counted."""
        if job.nodes is self._membership.only_me and job.state != WAIT_REPL:
            self._delivery.remove(job)  # no other node has it, or will
        else:
            self._done(job)
            self.attempt(job)

    def fast(self, ids: list[bytes]) -> int:
        """FASTACK: forget jobs here and, as far as possible, everywhere; how many were known."""
        count = 0
        for job_id in ids:
            job = self._jobs.get(job_id)
            if job is None:
                self._peers.broadcast(JobSignal(DELJOB, job_id))
                continue
            count += 1
            if job.state != WAIT_REPL:  # taking that back makes the event
                if job.state != ACKED:
                    self._count(events.FAST_ACKED, job)
                self._peers.signal_holders(job, DELJOB, 0)
            self._delivery.remove(job)
        return count

    def delete(self, ids: list[bytes]) -> int:
        """DELJOB: forget jobs here; how many were known."""
        count = 0
        for job_id in ids:
            job = self._jobs.get(job_id)
            if job is not None:
                self._unconfirmed.left(job_id)
                self._deleted(job, events.BY_COMMAND)
                count += 1
        return count

    def _deleted(self, job: Job, reason: i64) -> None:
        """Forget a job that a client deletes; one that still waits for copies counts as never
        added."""
        if job.state != ACKED and job.state != WAIT_REPL:
            if reason == events.BY_COMMAND:
                self._totals.dropped += 1
            self._outbox.record_event(events.DELETED, job, reason)
        self._delivery.remove(job)

    def _count(self, kind: i64, job: Job) -> None:
        self._totals.acked += 1
        self._flows.acked(job.queue)
        self._endings.will_end(job, ACKNOWLEDGED)
        sink = self._outbox.events
        if sink is not None:
            sink.job(kind, job, events.NO_REASON, 0, worked_ms(job, self._turn.now_ms))

    def _remember(self, job_id: bytes) -> None:
        """Make a dummy acknowledgement, if another node may hold the job."""
        membership = self._membership
        if membership.size < 2 or membership.leaving or not may_repeat(job_id):
            return
        life_s = life_minutes(job_id) * 60
        job = Job(
            job_id,
            b"",
            b"",
            (),
            0,
            self._turn.wall_us // 1_000_000 + life_s,
            delay_s=0,
            retry_s=0,
            repl=0,
        )
        job.expire_ms = self._turn.now_ms + life_s * 1000
        job.dummy = True
        self._outbox.record_event(events.ACKED, job, events.NOT_HELD)
        self._jobs.acknowledge(job)
        self._jobs.add(job)
        self._schedule(job)
        self.attempt(job)

    # -- the collection ----------------------------------------------------------------------

    def _done(self, job: Job) -> None:
        """The job is not delivered any more."""
        if job.state == WAIT_REPL:
            self._waiters.copies_made(job)  # a consumer has it: its client may know the ID
        elif job.state == QUEUED:
            self._delivery.dequeue(job)
        self._jobs.acknowledge(job)
        self._schedule(job)

    def _schedule(self, job: Job) -> None:
        """When to send SETACK again."""
        longest_ms = _LEAVING_MS if self._membership.leaving else _LONGEST_MS
        pause_ms = min(_FIRST_MS * (i64(1) << i64(job.gc_retry)), longest_ms)
        jitter_ms = int(self._random() * _JITTER_MS) - _JITTER_MS // 2
        job.qtime_ms = self._turn.now_ms + pause_ms + jitter_ms
        self._jobs.reschedule(job)

    def awake(self, job: Job) -> None:
        """Send SETACK again, or forget a job whose TTL is over."""
        if job.expire_ms <= self._turn.now_ms:
            self._delivery.remove(job)
            return
        self.attempt(job)
        if job.state == ACKED and self._jobs.get(job.id) is job:
            self._schedule(job)

    def attempt(self, job: Job) -> None:
        """Send SETACK to all that did not confirm; forget the job when none is left."""
        if job.gc_retry < _ATTEMPTS_MAX:
            job.gc_retry = u8(i64(job.gc_retry) + 1)
        if not self._hurries(job) and self._settling.begin(job):
            return
        missing = self._missing(job)
        if not missing:
            self._delivery.remove(job)
            return
        job_id, known = job.id, self._known_holders(job)
        for node in missing:
            if made_by(node, job_id) and not self._peers.reaches(node):
                self._keys_by_job.unconfirmed(job_id)
            holders = 0 if self._believes_alone(job, node) else known
            self._peers.signal(node, SETACK, job_id, holders)

    def send_setack(self, job: Job, node: bytes) -> None:
        """Notify one node that the job is acknowledged."""
        holders = 0 if self._believes_alone(job, node) else self._known_holders(job)
        self._peers.signal(node, SETACK, job.id, holders)

    def _believes_alone(self, job: Job, node: bytes) -> bool:
        """Whether it may be an original that made the job and, since a restart, knows of no other
        holder. The original would crash if it confirmed, and then waited for us (section 19)."""
        entry = self._peers.entry(node)
        return entry is not None and not entry.numbers and made_by(node, job.id)

    def _known_holders(self, job: Job) -> i64:
        """0 when it is for others to finish this: no original may wait for us (section 19)."""
        return len(job.nodes) if self._holds(job) and not self._hurries(job) else 0

    def _hurries(self, job: Job) -> bool:
        return job.gc_retry > 1 and self._membership.leaving

    def _holds(self, job: Job) -> bool:
        return self._membership.myself.id in job.nodes

    def _missing(self, job: Job) -> list[bytes]:
        """Who did not confirm yet."""
        table = self._membership.nodes
        confirmed = job.confirmed
        if confirmed is None:
            confirmed = job.confirmed = {self._membership.myself.id}
        if job.dummy and not job.nodes:
            return [
                entry.id
                for entry in table.values()
                if not entry.flags & HANDSHAKE and entry.id not in confirmed
            ]
        patient = job.gc_retry < _ATTEMPTS_MAX
        found = [node for node in job.nodes if node not in confirmed and (patient or node in table)]
        maker = self._maker_elsewhere(job)
        if maker and maker not in confirmed:
            found.append(maker)
        return found

    def give_up(self, job: Job, lost: Callable[[bytes], bool]) -> bool:
        """On a node that leaves: forget an acknowledgement that only lost nodes did not confirm;
        ``False`` if others did not, either."""
        if not all(lost(node) for node in self._missing(job)):
            if job.qtime_ms > self._turn.now_ms + _LEAVING_MS + _JITTER_MS:
                self.awake(job)
            return False
        self._peers.signal_holders(job, DELJOB, 0)
        self._delivery.remove(job)
        return True

    def _maker_elsewhere(self, job: Job) -> bytes:
        """The node that made the job and may still look for holders: another one, which is none
        itself; empty otherwise."""
        if job.repl < 2:
            return b""
        job_id = job.id
        for node in job.nodes:  # it is the first of them, unless it keeps no copy
            if made_by(node, job_id):
                return b""
        for entry in self._membership.nodes.values():
            if made_by(entry.id, job_id) and not entry.flags & HANDSHAKE:
                return b"" if entry is self._membership.myself else entry.id
        return b""

    # -- messages ----------------------------------------------------------------------------

    def set(self, sender: NodeEntry, job_id: bytes, aux: i64) -> None:
        """SETACK: the sender knows that the job is done; ``aux``: how many holders it knows
        (section 7.9)."""
        job = self._jobs.get(job_id)
        if aux & ONLY_US:
            aux &= ~ONLY_US
            if job is not None and self._settling.requested(sender, job, job_id):
                return
        if job is None:
            if made_by(self._membership.myself.id, job_id):
                # This node made it, and has forgotten it: no end of the job has freed its key.
                self._keys_by_job.unconfirmed(job_id)
            self._answer(sender, job_id, False)
            return
        if job.dummy and not job.nodes and aux == 0:
            # Neither of us holds it. One has to go on looking for who does.
            self._answer(sender, job_id, self._membership.myself.id > sender.id)
            return
        news = job.state != ACKED
        if news:
            self._done(job)
        fewer = len(job.nodes) <= aux
        if fewer or aux == 0:
            self._answer(sender, job_id, True)
        # Lists that grew on their way may be of one length and name different nodes.
        if not fewer or (news and len(job.nodes) > job.repl):
            self.attempt(job)
        elif news:
            self._handovers.done(job_id, self._turn.now_ms)

    def _answer(self, sender: NodeEntry, job_id: bytes, known: bool) -> None:
        self._peers.signal(sender.id, GOTACK, job_id, 1 if known else 0)

    def confirmed(self, sender: NodeEntry, job_id: bytes, aux: i64) -> None:
        """GOTACK: the sender knows of the acknowledgement, and if ``aux`` is not 0, of the job
        (section 7.10)."""
        job = self._jobs.get(job_id)
        if job is None or job.state != ACKED:
            return
        if self._settling.is_settled(sender, job, aux):
            self._delivery.remove(job)
            return
        holds = self._holds(job)
        known = aux != 0
        if not holds and known:
            self._delivery.remove(job)  # a holder goes on alone
            return
        if holds and known and sender.id not in job.nodes:
            self._jobs.set_holders(job, (*job.nodes, sender.id))
        self._note_confirmed(job, sender.id)
        if not self._missing(job):
            if holds:
                self._peers.signal_holders(job, DELJOB, 0)
            self._delivery.remove(job)

    def _note_confirmed(self, job: Job, node_id: bytes) -> None:
        if job.confirmed is None:
            job.confirmed = {self._membership.myself.id}
        job.confirmed.add(node_id)

    def deleted(self, sender: NodeEntry, job_id: bytes) -> None:
        """DELJOB: the sender forgets the job, and so does this node, but not before all
        confirmations that it collects itself are there (section 7.11)."""
        job = self._jobs.get(job_id)
        if job is None or (job.promised and job.state != ACKED and made_by(sender.id, job_id)):
            return
        if job.state == ACKED and (job.gc_retry > 0 or job.confirmed is not None):
            self._note_confirmed(job, sender.id)
            if self._missing(job):
                return
        self._handovers.done(job_id, self._turn.now_ms)
        if job.held:
            self._endings.will_end(job, MOVED)  # it lives on where it was queued
        self._deleted(job, events.BY_PEER)
