"""Jobs that take the place of others: dead letters, and jobs that are moved.

1. The new job is added first, with its copies; only then the old one ends. So a crash in between
   leaves both, and never none.
2. While copies are being made the old job is held back, here and by the other holders. If there are
   not enough after :data:`GIVE_UP_MS` the new one is taken back, and the old one goes on.
3. The old job may meanwhile be acknowledged or deleted, or be queued by command: then it is the new
   one that ends, before anybody got it. If only its life ended, the new one stays.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.adding import Adding
from disque_tx.core.base.part import Part
from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.backoff import RetryBackoff
from disque_tx.core.delivery.delivery import REMOVED, Delivery
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.copieswait import CopiesWatcher
from disque_tx.core.state.state import State
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import DELJOB
from disque_tx.messages.records import QUEUED, WAIT_REPL

#: How long copies of a new job may take.
GIVE_UP_MS: Final = 10_000


class ReplacementReason:
    """Why one job takes the place of another, and what follows. ``cause``: a reason of
    :mod:`disque_tx.messages.events`, for the event of the new job."""

    def __init__(self, cause: i64) -> None:
        self.cause: i64 = cause

    def replaced(self, old: Job, new_id: bytes) -> None:
        """The new job has its copies; the old one is about to end."""
        raise NotImplementedError

    def kept(self, old: Job) -> None:
        """The new job could not be made; the old one is held back still."""
        raise NotImplementedError

    def cancelled(self, old: Job) -> None:
        """The old job ended, or was queued, meanwhile; the new one ends."""


class _Pair:
    """A job, ``old``, and the ID of the one that is to take its place."""

    __slots__ = ("new_id", "old", "purpose")

    def __init__(self, old: Job, new_id: bytes, purpose: ReplacementReason) -> None:
        self.old: Job = old
        self.new_id: bytes = new_id
        self.purpose: ReplacementReason = purpose


class Replacements(Part, CopiesWatcher):
    """Follows the new jobs until they have their copies."""

    def __init__(
        self, state: State, delivery: Delivery, backoff: RetryBackoff, adding: Adding, acks: Acks
    ) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._peers = state.peers
        self._waiters = state.waiters
        self._delivery = delivery
        self._backoff = backoff
        self._adding = adding
        self._acks = acks
        self._by_new: dict[bytes, _Pair] = {}
        self._by_old: dict[bytes, _Pair] = {}

    def begin(self, old: Job, request: AddRequest, purpose: ReplacementReason) -> None:
        """Let a new job take the place of an active or queued one, as soon as it has its copies.
        Raises ``CommandError`` if it cannot be added; nothing has changed then."""
        new = self._adding.add_instead(request, purpose.cause)
        if new.state != WAIT_REPL:
            purpose.replaced(old, new.id)
            self._acks.end(old)
            return
        pair = _Pair(old, new.id, purpose)
        self._by_new[pair.new_id] = self._by_old[old.id] = pair
        self._waiters.watched[pair.new_id] = self
        if old.state == QUEUED:
            self._delivery.dequeue(old)
        self._backoff.hold(old, self._turn.now_ms + GIVE_UP_MS)

    def is_pending(self, old: Job) -> bool:
        """Whether another job is being made that takes its place."""
        pair = self._by_old.get(old.id) if self._by_old else None
        return pair is not None and pair.old is old

    def give_up(self, old: Job) -> None:
        """The copies take too long: take the new job back."""
        pair = self._by_old[old.id]
        self._backoff.hold(old, self._turn.now_ms + GIVE_UP_MS)
        new = self._jobs.get(pair.new_id)
        if new is not None and new.state == WAIT_REPL:
            self._delivery.take_back(new, CommandError("NOREPL", REMOVED))
        self._waiters.notify_watchers()
        if self._by_new.pop(pair.new_id, None) is not None:  # it was lost on another way
            self._waiters.watched.pop(pair.new_id, None)
            self._end(pair, False)

    def copies_settled(self, job_id: bytes, made: bool) -> None:
        """Go on with what has its copies by now, or will not have them."""
        pair = self._by_new.pop(job_id, None)
        if pair is not None:
            self._end(pair, made)

    def _end(self, pair: _Pair, made: bool) -> None:
        old = pair.old
        if self._by_old.get(old.id) is pair:
            del self._by_old[old.id]
        known = self._jobs.get(old.id) is old
        if known and old.backoff:
            if made:
                pair.purpose.replaced(old, pair.new_id)
                self._acks.end(old)
            else:
                pair.purpose.kept(old)
        elif made and not known and old.expire_ms <= self._turn.now_ms:
            pair.purpose.replaced(old, pair.new_id)
        else:
            pair.purpose.cancelled(old)
            self._drop(pair.new_id)

    def _drop(self, new_id: bytes) -> None:
        """The new job, which nobody got yet, is not needed."""
        new = self._jobs.get(new_id)
        if new is not None:
            self._peers.signal_holders(new, DELJOB, 0)
            self._delivery.remove(new)

    def forget_all(self) -> None:
        """All jobs are gone."""
        self._by_new.clear()
        self._by_old.clear()
