"""What this node knows about keys, for itself and for others that ask.

1. A key is granted if it is free, or the job that asks has it. While another job is being made with
   it, the answer is to ask again: that job may fail.
2. Two jobs with one key come from a partition, or from nodes that failed together. Of two that
   exist, the one whose key was reserved first keeps it; the node that made the other one gets to
   know. If that one was never delivered it ends; else it stays, and is counted.
3. What a node gets about a job of its own that it does not know any more may be out of date, or the
   node has forgotten the job, and others hold it: all nodes are asked (see ``audit``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

from disque_tx import events
from disque_tx.busmessages import DELJOB, KEY_COPY
from disque_tx.core.delivery import Delivery
from disque_tx.core.job import Job
from disque_tx.core.keys.bonds import Reservation
from disque_tx.core.keys.reservation import Reservations, left, made_by
from disque_tx.core.keys.view import View
from disque_tx.core.state import State
from disque_tx.keymessages import (
    BUSY,
    ENDED,
    FREE,
    FULL,
    GRANTED,
    HELD,
    RESERVED,
    TAKEN,
    KeyMessage,
)
from disque_tx.messages import ACKED, DELIVERED, WAIT_REPL, KeyEntry

#: After what time a keeper looks for the first time whether a job is made, or exists still.
_RESERVED_MS: Final = 1_000
_HELD_MS: Final = 30_000


class Keeper:
    """Looks after keys. ``claimed``: IDs of jobs that this node is about to make."""

    def __init__(self, state: State, delivery: Delivery) -> None:
        self.claimed: set[bytes] = set()
        self._jobs = state.jobs
        self._membership = state.membership
        self._peers = state.peers
        self._outbox = state.outbox
        self._totals = state.totals
        self._delivery = delivery
        self._reservations: Reservations = state.reservations
        self._view: View = state.key_view

    def reserve(self, entry: KeyEntry, now_ms: i64) -> tuple[i64, bytes]:
        """Reserve a key: an answer to KEY RESERVE, and the ID of the job that has the key."""
        found = self._reservations.get(entry.key)
        if found is None:
            if self._reservations.full():
                return FULL, b""
            self._take(entry, now_ms)
            return GRANTED, entry.job_id
        if found.job_id == entry.job_id:
            return GRANTED, entry.job_id
        if found.state == RESERVED:
            return BUSY, found.job_id
        return TAKEN, found.job_id

    def known_here(self, key: bytes, job_id: bytes) -> tuple[i64, bytes]:
        """What this node knows of another job of its own with the key, whoever looks after that; as
        :meth:`reserve`."""
        found = self._reservations.get(key)
        if found is None or not found.maker or found.job_id == job_id:
            return GRANTED, job_id
        if found.state == RESERVED:
            return (BUSY if found.job_id in self.claimed else GRANTED), found.job_id
        if found.state == ENDED or self.verdict(found.job_id) != FREE:
            return TAKEN, found.job_id
        return GRANTED, job_id

    def _take(self, entry: KeyEntry, now_ms: i64) -> Reservation:
        found = self._reservations.new(entry, now_ms)
        self._look_later(found, now_ms)
        return found

    def _look_later(self, found: Reservation, now_ms: i64) -> None:
        """A keeper looks from time to time whether the job exists; its maker gets to know."""
        if found.state == ENDED:
            self._reservations.look_at(found, 0)
        elif not found.maker:
            pause_ms = _RESERVED_MS if found.state == RESERVED else _HELD_MS
            self._reservations.look_at(found, now_ms + pause_ms)

    def verdict(self, job_id: bytes) -> i64:
        """Whether the job exists here (``HELD``), is being made (``RESERVED``), or is not known or
        done (``FREE``)."""
        job = self._jobs.get(job_id)
        if job is None:
            return RESERVED if job_id in self.claimed else FREE
        if job.state == ACKED:
            return FREE
        return RESERVED if job.state == WAIT_REPL else HELD

    # -- what other nodes know ---------------------------------------------------------------

    def merge(self, sender: bytes, entry: KeyEntry, now_ms: i64) -> None:
        """An entry of KEY COPY."""
        if not entry.key:
            return
        found = self._reservations.get(entry.key)
        if entry.state == FREE:
            if found is not None and found.job_id == entry.job_id:
                if self.verdict(entry.job_id) == FREE:
                    self._reservations.drop(found)
        elif found is None:
            self._new(entry, now_ms)
        elif found.job_id == entry.job_id:
            self._update(found, entry, now_ms)
        elif found.state == RESERVED or entry.state == RESERVED:
            self._replace(found, entry, now_ms)
        else:
            self._settle(sender, found, entry, now_ms)

    def _new(self, entry: KeyEntry, now_ms: i64) -> None:
        if self._reservations.full():
            return
        found = self._take(entry, now_ms)
        if found.maker and found.state != ENDED and self.verdict(entry.job_id) == FREE:
            # It may have been forgotten with a restart, and live on elsewhere: all are asked.
            self._reservations.look_at(found, now_ms + _RESERVED_MS)

    def _update(self, found: Reservation, entry: KeyEntry, now_ms: i64) -> None:
        if entry.state <= i64(found.state):
            return
        if entry.state == ENDED and self.verdict(found.job_id) != FREE:
            return
        found.state = u8(entry.state)
        found.expire_ms = max(found.expire_ms, now_ms + entry.life_ms)
        if entry.keep_ms > 0:
            found.keep_ms = max(found.keep_ms, now_ms + entry.keep_ms)
        self._reservations.changed(found)
        self._look_later(found, now_ms)

    def _replace(self, found: Reservation, entry: KeyEntry, now_ms: i64) -> None:
        """A job that was made has more of a right to the key than one that was not."""
        if entry.state == RESERVED or found.job_id in self.claimed:
            return
        self._reservations.drop(found)
        self._take(entry, now_ms)

    def _settle(self, sender: bytes, found: Reservation, entry: KeyEntry, now_ms: i64) -> None:
        """Two jobs have the key."""
        first = (int(found.born_ms), found.job_id) < (int(entry.born_ms), entry.job_id)
        if first:
            self._inform(entry.job_id, sender, left(found, now_ms))
            return
        loser = found.job_id
        self._reservations.drop(found)
        self._take(entry, now_ms)
        self._inform(loser, b"", entry)
        if made_by(self._membership.myself.id, loser):
            self._lost(loser, entry.job_id)

    def _inform(self, loser: bytes, sender: bytes, kept: KeyEntry) -> None:
        """Let the sender, and the node that made the other job, know which one has the key."""
        if sender:
            self._peers.send(sender, KeyMessage(KEY_COPY, 0, 0, [kept]))
        for node_id in self._view.others():
            if node_id != sender and made_by(node_id, loser):
                self._peers.send(node_id, KeyMessage(KEY_COPY, 0, 0, [kept]))

    def _lost(self, job_id: bytes, winner: bytes) -> None:
        """A job of this node is not the first one with its key."""
        job = self._jobs.get(job_id)
        if job is None or job.state == ACKED:
            self._totals.keys_doubled += 1  # it is done, and so may be the other one
        elif _untouched(job):
            self._totals.keys_dropped += 1
            self._outbox.note_text(events.DUPLICATE, job, events.NO_REASON, 0, winner)
            self._peers.signal_holders(job, DELJOB, 0)
            self._delivery.remove(job)
        else:
            self._totals.keys_doubled += 1
            self._outbox.note_text(events.DOUBLED, job, events.NO_REASON, 0, winner)

    # -- the end of a key --------------------------------------------------------------------

    def job_ended(self, found: Reservation, now_ms: i64) -> None:
        """The job is done for certain: the key is free, or is kept for what is left of FOR."""
        if found.keep_ms > now_ms:
            found.state = u8(ENDED)
            found.check_ms = 0
            self._reservations.changed(found)
        else:
            self._reservations.drop(found)
        if found.maker:
            self.notify(found, now_ms)

    def notify(self, found: Reservation, now_ms: i64) -> None:
        """Let the other keepers know that the job is done, or was not made."""
        entry = left(found, now_ms)
        if found.state != ENDED:
            entry.state = FREE
        for node_id in self._view.notified(found.key):
            self._peers.send(node_id, KeyMessage(KEY_COPY, 0, 0, [entry]))


def _untouched(job: Job) -> bool:
    """Whether no client got the job, as far as this node knows."""
    return job.flags & DELIVERED == 0 and job.nacks == 0 and job.deliveries == 0
