"""What this node knows about keys, for itself and for others that ask.

1. A key is granted if it is free, or the job that asks has it. While another job is being made with
   it, the answer is to ask again: that job may fail.
2. What a node says about a job that is done, as this node knows for certain, is out of date: it
   gets to know. It was away, or missed that.
3. Two jobs with one key come from a partition, from nodes that failed together, or one of them is
   long done. Which one keeps it is settled when it is known which of them exist: see ``conflicts``.
4. What a node gets about a job that it does not know itself may be out of date as well, or the
   job lives elsewhere: a moment later all nodes are asked (see ``audit``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.keys.keycopies import KeyCopies
from disque_tx.core.keys.keysbyjob import Reservation
from disque_tx.core.keys.reservation import Reservations, left
from disque_tx.core.state.state import State
from disque_tx.core.unique.conflicts import Conflicts, comes_first
from disque_tx.core.unique.existence import Existence
from disque_tx.messages.keys import (
    BUSY,
    DONE,
    ENDED,
    FREE,
    FULL,
    GRANTED,
    RESERVED,
    TAKEN,
)
from disque_tx.messages.records import KeyEntry

#: When is asked about a job with a key that another node passed on.
_PASSED_MS: Final = 1_000


class Keeper:
    """Keeps keys for all nodes. ``existence``: asks other nodes whether jobs exist. ``copies``:
    sends what they shall know of keys."""

    def __init__(self, state: State, existence: Existence, conflicts: Conflicts) -> None:
        self._turn = state.turn
        self.conflicts: Conflicts = conflicts
        self.copies: KeyCopies = KeyCopies(state.peers)
        self._membership = state.membership
        self.existence: Existence = existence
        self._reservations: Reservations = state.reservations
        self._view: KeeperMap = state.key_view

    def reserve(self, entry: KeyEntry) -> tuple[i64, bytes]:
        """Reserve a key: an answer to KEY RESERVE, and the ID of the job that has the key."""
        found = self._reservations.get(entry.key)
        if found is None:
            if self._reservations.full():
                return FULL, b""
            self._reservations.store(entry, self._turn.now_ms)
            return GRANTED, entry.job_id
        if found.job_id == entry.job_id:
            return GRANTED, entry.job_id
        if found.state == RESERVED:
            return BUSY, found.job_id
        return TAKEN, found.job_id

    def known_here(self, key: bytes, job_id: bytes) -> tuple[i64, bytes]:
        """What this node knows of another job of its own with the key, whichever nodes keep the
        key; as :meth:`reserve`."""
        found = self._reservations.get(key)
        if found is None or not found.maker or found.job_id == job_id:
            return GRANTED, job_id
        if found.state == RESERVED:
            return (BUSY if found.job_id in self.existence.claimed else GRANTED), found.job_id
        if found.state == ENDED or self.existence.verdict(found.job_id) != FREE:
            return TAKEN, found.job_id
        return GRANTED, job_id

    # -- what other nodes know ---------------------------------------------------------------

    def merge(self, sender: bytes, entry: KeyEntry) -> None:
        """An entry of KEY COPY."""
        if not entry.key:
            return
        found = self._reservations.get(entry.key)
        if entry.state == FREE:
            if found is not None and found.job_id == entry.job_id:
                if self.existence.verdict(entry.job_id) == FREE:
                    self._reservations.drop(found)
            return
        if found is not None and found.state == RESERVED and found.job_id == entry.job_id:
            self._update(found, entry)  # the usual case: the job was made
            return
        if entry.state != ENDED and self.existence.done(entry.job_id):
            self.existence.correct(sender, entry)
            if entry.keep_ms == 0:
                return
            entry.state = ENDED
        if found is None:
            self._new(entry)
        elif found.job_id == entry.job_id:
            self._update(found, entry)
        elif found.state == RESERVED or entry.state == RESERVED:
            self._replace(found, entry)
        else:
            self._decide(sender, found, entry)

    def merge_done(self, entry: KeyEntry) -> None:
        """Another node knows for certain that a job is done; its key may not be known there."""
        self.existence.done_jobs.add(entry.job_id, self._turn.now_ms)
        if entry.job_id in self.existence.claimed:
            return  # it is about to have its key, and then to end
        found = self._reservations.of_job(entry.job_id)
        if found is not None:
            self._keep_for(found, entry)
            self.job_ended(found)
        elif entry.key and entry.state == ENDED and self._reservations.get(entry.key) is None:
            self._new(entry)

    def _new(self, entry: KeyEntry) -> None:
        now_ms = self._turn.now_ms
        if self._reservations.full():
            return
        found = self._reservations.store(entry, now_ms)
        if found.state != ENDED and self.existence.verdict(entry.job_id) == FREE:
            # It may be done, or live on elsewhere: all are asked.
            self._reservations.check_at(found, now_ms + _PASSED_MS)

    def _update(self, found: Reservation, entry: KeyEntry) -> None:
        if entry.state <= i64(found.state):
            return
        if entry.state == ENDED and self.existence.verdict(found.job_id) != FREE:
            return
        found.state = u8(entry.state)
        self._keep_for(found, entry)
        self._reservations.changed(found)
        self._reservations.schedule_check(found, self._turn.now_ms)

    def _keep_for(self, found: Reservation, entry: KeyEntry) -> None:
        """Keep a key for as long as another node does."""
        now_ms = self._turn.now_ms
        found.expire_ms = max(found.expire_ms, now_ms + entry.life_ms)
        if entry.keep_ms > 0:
            found.keep_ms = max(found.keep_ms, now_ms + entry.keep_ms)

    def _replace(self, found: Reservation, entry: KeyEntry) -> None:
        """A job that was made has more of a right to the key than one that was not."""
        if entry.state == RESERVED or found.job_id in self.existence.claimed:
            return
        self._reservations.drop(found)
        self._reservations.store(entry, self._turn.now_ms)

    def _decide(self, sender: bytes, found: Reservation, entry: KeyEntry) -> None:
        """Another job had or has the key, too."""
        now_ms = self._turn.now_ms
        if entry.state != ENDED:
            self.conflicts.add(sender, found, entry)
            return
        first = comes_first(found, entry)
        self.conflicts.doubled(found, entry)
        if first or found.state != ENDED:
            self.copies.add(sender, 0, left(found, now_ms))
        else:
            self._reservations.drop(found)
            self._reservations.store(entry, now_ms)

    def job_made(self, found: Reservation, granted: list[bytes]) -> None:
        """Let the other keepers know that the job exists, and those that granted the key."""
        mine = self._membership.myself.id
        entry = left(found, self._turn.now_ms)
        for node_id in granted:
            if node_id != mine:
                self.copies.add(node_id, 0, entry)
        for node_id in self._view.keepers(found.key):
            if node_id != mine and node_id not in granted:
                self.copies.add(node_id, 0, entry)

    # -- the end of a key --------------------------------------------------------------------

    def job_done(self, found: Reservation) -> None:
        """Like :meth:`job_ended`, for a job whose end this node saw itself."""
        if self._membership.size > 1:
            self.existence.done_jobs.add(found.job_id, self._turn.now_ms)
        self.job_ended(found)

    def job_ended(self, found: Reservation) -> None:
        """The job is done for certain: the key is free, or is kept for what is left of FOR."""
        if found.keep_ms > self._turn.now_ms:
            found.state = u8(ENDED)
            found.check_ms = 0
            self._reservations.changed(found)
        else:
            self._reservations.drop(found)
        if found.maker:
            self.notify(found)

    def notify(self, found: Reservation) -> None:
        """Let the other keepers know that the job is done, or was not made."""
        entry = left(found, self._turn.now_ms)
        if found.state != ENDED:
            entry.state = FREE
        status: i64 = DONE if self.existence.done_jobs.has(found.job_id) else 0
        for node_id in self._view.notified(found.key):
            self.copies.add(node_id, status, entry)

    def announce(self, job_ids: list[bytes]) -> None:
        """Let all nodes know that these jobs are done, whose makers cannot be reached to free their
        keys, if they have any."""
        for job_id in job_ids:
            entry = KeyEntry(b"", job_id, FREE, 0, 0, 0)
            for node_id in self._view.others():
                self.copies.add(node_id, DONE, entry)
