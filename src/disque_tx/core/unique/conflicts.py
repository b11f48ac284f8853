"""Two jobs with one key: which of them keeps it.

1. What other nodes say about a key may be old: a node that was away comes back with the keys that
   it knew. So an entry takes a key from another job only when it is known which of the two jobs
   exist: all nodes are asked (see ``existence``).
2. A job that exists keeps its key against one that is done, or that no node holds. If neither
   exists, nothing changes here; the key is free soon (see ``audit``).
3. If both exist, as after a partition, or after nodes that failed together, the one whose key was
   reserved first keeps it. The node that made the other one gets to know, and asks in turn.
4. A job ends by this only at the node that made it, only if it was never delivered as far as that
   node knows, and only if every member of the cluster was asked and has answered: one that is away
   may be the one that knows that the first job is done. Until then it is asked again, for a while.
   A job that may have been delivered, or about which not all can be asked, stays, and is counted.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.schedule import Schedule
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.job import Job, made_by
from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.keys.keysbyjob import Reservation
from disque_tx.core.keys.reservation import Reservations, left
from disque_tx.core.state.state import State
from disque_tx.core.unique.existence import Existence, ExistenceAsker, ExistenceQuestion
from disque_tx.messages import events
from disque_tx.messages.bustypes import DELJOB, KEY_COPY
from disque_tx.messages.keys import ENDED, ENTRIES_MAX, KeyMessage
from disque_tx.messages.records import ACKED, DELIVERED, KeyEntry, Linked

#: Keys that can be in question at the same time; a further one is found again later.
CONFLICTS_MAX: Final = 10_000
#: When is asked again if not all nodes have answered, at first; then twice as late each time.
_AGAIN_MS: Final = 1_000
#: How often is asked.
_ATTEMPTS_MAX: Final = 8


class _Conflict(Linked):
    """``entry``: of the other job, which ``sender`` named last. ``job_id``: that has the key here.
    ``attempts``: how often was asked."""

    __slots__ = ("attempts", "entry", "job_id", "sender", "since_ms")

    def __init__(self, sender: bytes, job_id: bytes, entry: KeyEntry, since_ms: i64) -> None:
        super().__init__()
        self.sender: bytes = sender
        self.job_id: bytes = job_id
        self.entry: KeyEntry = entry
        # The times of the entry are what was left when it came.
        self.since_ms: i64 = since_ms
        self.attempts: i64 = 0


class Conflicts(ExistenceAsker):
    """Pairs of jobs with one key, until it is settled which of them keeps the key."""

    def __init__(self, state: State, delivery: Delivery, existence: Existence) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._membership = state.membership
        self._peers = state.peers
        self._outbox = state.outbox
        self._totals = state.totals
        self._delivery = delivery
        self._existence: Existence = existence
        self._reservations: Reservations = state.reservations
        self._view: KeeperMap = state.key_view
        self._by_key: dict[bytes, _Conflict] = {}
        # Jobs of this node that were counted as having the key of an earlier one.
        self._counted: set[bytes] = set()
        self._timers: Schedule[_Conflict] = Schedule()

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, sender: bytes, found: Reservation, entry: KeyEntry) -> None:
        """Handle a report of another node that another job has the key."""
        now_ms = self._turn.now_ms
        known = self._by_key.get(entry.key)
        if known is not None:
            if known.job_id == found.job_id and known.entry.job_id == entry.job_id:
                if sender != known.sender:
                    # It has settled the matter for itself: the answers are there by now.
                    known.sender = sender
                    known.attempts = max(known.attempts - 1, 0)
                    self._timers.remove(known)
                    self._timers.add(known, now_ms)
                return
            self._forget(known)
        if len(self._by_key) < CONFLICTS_MAX:
            conflict = _Conflict(sender, found.job_id, entry, now_ms)
            self._by_key[entry.key] = conflict
            self._timers.add(conflict, now_ms)

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        return self._timers.next_ms()

    def run_due(self, limit: i64) -> None:
        """Ask about some."""
        now_ms = self._turn.now_ms
        entries: list[KeyEntry] = []
        for conflict in self._timers.due(now_ms, limit):
            found = self._found(conflict)
            if found is None:
                self._forget(conflict)
                continue
            conflict.attempts += 1
            entries.append(left(found, now_ms))
            entries.append(conflict.entry)
            if len(entries) + 2 > ENTRIES_MAX:
                self._existence.ask(self, entries)
                entries = []
        if entries:
            self._existence.ask(self, entries)

    def _found(self, conflict: _Conflict) -> Reservation | None:
        """The key, if it still belongs to the job in question."""
        found = self._reservations.get(conflict.entry.key)
        return found if found is not None and found.job_id == conflict.job_id else None

    def _forget(self, conflict: _Conflict) -> None:
        self._timers.remove(conflict)
        if self._by_key.get(conflict.entry.key) is conflict:
            del self._by_key[conflict.entry.key]

    # -- the answer --------------------------------------------------------------------------

    def answered(self, question: ExistenceQuestion) -> None:
        """Settle what is known now."""
        now_ms = self._turn.now_ms
        for at in range(0, len(question.entries), 2):
            conflict = self._by_key.get(question.entries[at].key)
            if conflict is not None and conflict.entry.job_id == question.entries[at + 1].job_id:
                found = self._found(conflict)
                if found is None or self._is_decided(conflict, found, question):
                    self._forget(conflict)
                else:
                    pause_ms = _AGAIN_MS * (i64(1) << (conflict.attempts - 1))
                    self._timers.remove(conflict)
                    self._timers.add(conflict, now_ms + pause_ms)

    def _is_decided(
        self, conflict: _Conflict, found: Reservation, question: ExistenceQuestion
    ) -> bool:
        """Whether no more is to be done."""
        now_ms = self._turn.now_ms
        entry = conflict.entry
        if not question.lives(entry.job_id):
            if question.done(entry.job_id):
                self._existence.done_jobs.add(entry.job_id, now_ms)
                self._existence.correct(conflict.sender, entry)
                if entry.keep_ms > now_ms - conflict.since_ms:
                    self.doubled(found, entry)  # FOR was not over when the other one was added
                return True
            if not question.lives(found.job_id):
                self._reservations.check_at(found, now_ms)
            return question.complete or conflict.attempts >= _ATTEMPTS_MAX
        if not question.lives(found.job_id):
            if question.done(found.job_id):
                self._existence.done_jobs.add(found.job_id, now_ms)
            if found.state == ENDED:
                self.doubled(found, entry)
            self._give(found, conflict)
            return True
        if comes_first(found, entry):
            self._inform(entry.job_id, conflict.sender, left(found, now_ms))
            return True
        if not made_by(self._membership.myself.id, found.job_id):
            self._give(found, conflict)
            self._inform(found.job_id, b"", entry)
            return True
        if not question.complete and conflict.attempts < _ATTEMPTS_MAX:
            return False
        self._give(found, conflict)
        self._lost(found.job_id, entry.job_id, question.complete)
        return True

    def doubled(self, found: Reservation, entry: KeyEntry) -> None:
        """Two jobs were added although the key was kept for one that is done by now: the node that
        made the later one counts that, once."""
        first = comes_first(found, entry)
        job_id, kept = found.job_id, entry
        if first:
            job_id, kept = entry.job_id, left(found, self._turn.now_ms)
        if not made_by(self._membership.myself.id, job_id):
            self._inform(job_id, b"", kept)
        elif job_id not in self._counted:
            if len(self._counted) >= CONFLICTS_MAX:
                self._counted.clear()
            self._counted.add(job_id)
            self._lost(job_id, kept.job_id, False)

    def _give(self, found: Reservation, conflict: _Conflict) -> None:
        """The other job has the key."""
        now_ms = self._turn.now_ms
        entry = conflict.entry
        passed_ms = now_ms - conflict.since_ms
        keep_ms = max(0, entry.keep_ms - passed_ms) if entry.keep_ms else 0
        life_ms = max(0, entry.life_ms - passed_ms)
        self._reservations.drop(found)
        self._reservations.store(
            KeyEntry(entry.key, entry.job_id, entry.state, life_ms, keep_ms, entry.born_ms), now_ms
        )

    def _inform(self, loser: bytes, sender: bytes, kept: KeyEntry) -> None:
        """Let the sender, and the node that made the other job, know which one has the key."""
        if sender:
            self._peers.send(sender, KeyMessage(KEY_COPY, 0, 0, [kept]))
        for node_id in self._view.others():
            if node_id != sender and made_by(node_id, loser):
                self._peers.send(node_id, KeyMessage(KEY_COPY, 0, 0, [kept]))

    def _lost(self, job_id: bytes, winner: bytes, certain: bool) -> None:
        """A job of this node is not the first one with its key."""
        job = self._jobs.get(job_id)
        if job is None or job.state == ACKED:
            self._totals.keys_doubled += 1  # it is done, and so may be the other one
        elif certain and _untouched(job):
            self._totals.keys_dropped += 1
            self._outbox.record_event_text(events.DUPLICATE, job, events.NO_REASON, 0, winner)
            self._peers.signal_holders(job, DELJOB, 0)
            self._delivery.remove(job)
        else:
            self._totals.keys_doubled += 1
            self._outbox.record_event_text(events.DOUBLED, job, events.NO_REASON, 0, winner)

    def forget_all(self) -> None:
        """All jobs are gone."""
        for conflict in list(self._by_key.values()):
            self._forget(conflict)
        self._counted.clear()


def comes_first(found: Reservation, entry: KeyEntry) -> bool:
    """Whether the key was reserved for this job before it was for that of the entry."""
    return (int(found.born_ms), found.job_id) < (int(entry.born_ms), entry.job_id)


def _untouched(job: Job) -> bool:
    """Whether no client got the job, as far as this node knows."""
    return job.flags & DELIVERED == 0 and job.nacks == 0 and job.deliveries == 0
