"""Keys whose end was missed: nodes ask each other whether the jobs still exist.

1. A keeper looks at each key from time to time: soon at one whose job is being made, or that
   another node passed on, then less and less often at one whose job exists; sooner while the node
   that made the job is away, which would free the key. So does the node that made a job that may
   live on elsewhere.
2. If no node holds it, twice in a row, and every member of the cluster was asked, the key is free.
   With a member that cannot be asked the job may exist there, and the key ends by its time, or as
   soon as some node knows that the job is done; but not one that is only reserved, which is free
   after a minute.
3. A key that was only reserved is free at once then, for its job was never made. One whose job is
   done is kept for what is left of FOR; so is a reserved one, if a node knows that its job is done.
4. A job that others hold counts as made only if the node that makes it cannot withdraw it any more:
   it says so, or does not have it, or cannot be reached.
5. A node that neither keeps a key nor made its job forgets the key, which it kept before other
   nodes came.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

from disque_tx.core.base.part import Turn
from disque_tx.core.jobs.job import made_by
from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.keys.keysbyjob import Reservation
from disque_tx.core.keys.reservation import Reservations, ends_ms, left
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.unique.existence import Existence, ExistenceAsker, ExistenceQuestion
from disque_tx.core.unique.keeper import Keeper
from disque_tx.messages.keys import ENDED, ENTRIES_MAX, FREE, HELD, RESERVED

#: How often is looked for a job that is being made, until its key is free.
_LOOKS_MAX: Final = 30
_AGAIN_MS: Final = 2_000
_PAUSE_MS: Final = 30_000
_PAUSE_MS_MAX: Final = 600_000
#: The first pause while the node that made the job is away.
_AWAY_MS: Final = 5_000
_DOUBLINGS_MAX: Final = 5
_MISSES: Final = 2


class KeyAudit(ExistenceAsker):
    """Looks whether the jobs of keys exist."""

    def __init__(
        self,
        turn: Turn,
        membership: Membership,
        reservations: Reservations,
        view: KeeperMap,
        existence: Existence,
        keeper: Keeper,
    ) -> None:
        self._turn: Turn = turn
        self._membership: Membership = membership
        self._reservations: Reservations = reservations
        self._view: KeeperMap = view
        self._existence: Existence = existence
        self._keeper: Keeper = keeper

    def check(self, keys: list[Reservation]) -> None:
        """Check the keys that are due."""
        now_ms = self._turn.now_ms
        doubtful: list[Reservation] = []
        for found in keys:
            if ends_ms(found) <= now_ms or not self._concerns(found):
                self._reservations.drop(found)
            else:
                doubtful.append(found)
        for at in range(0, len(doubtful), ENTRIES_MAX):
            entries = [left(found, now_ms) for found in doubtful[at : at + ENTRIES_MAX]]
            self._existence.ask(self, entries)

    def _concerns(self, found: Reservation) -> bool:
        return found.maker or self._membership.myself.id in self._view.keepers(found.key)

    def answered(self, question: ExistenceQuestion) -> None:
        """Keep the keys, or free them."""
        now_ms = self._turn.now_ms
        for entry in question.entries:
            found = self._reservations.get(entry.key)
            if found is None or found.job_id != entry.job_id:
                continue
            state = question.state(found.job_id)
            if found.job_id in self._existence.claimed:
                self._exists(found, False)
            elif question.done(found.job_id):
                self._existence.done_jobs.add(found.job_id, now_ms)
                self._ended(found)
            elif state == FREE:
                self._missed(found, question.complete)
            elif state == ENDED:
                self._ended(found)
            else:
                self._exists(found, state == HELD and self._is_decided(question, found))

    def _is_decided(self, question: ExistenceQuestion, found: Reservation) -> bool:
        """Whether the node that makes the job cannot withdraw it any more."""
        return not any(made_by(node_id, found.job_id) for node_id in question.waiting)

    def _exists(self, found: Reservation, made: bool) -> None:
        found.misses = 0
        if made and found.state == RESERVED:
            found.state = u8(HELD)
            found.checks = 0
            self._reservations.changed(found)
        self._again(found)

    def _again(self, found: Reservation) -> None:
        pause_ms: i64 = _AGAIN_MS
        if found.state != RESERVED:
            first_ms = _PAUSE_MS if self._view.has_maker(found.job_id) else _AWAY_MS
            pause_ms = min(
                first_ms * (i64(1) << min(i64(found.checks), _DOUBLINGS_MAX)), _PAUSE_MS_MAX
            )
        found.checks = u8(min(i64(found.checks) + 1, _LOOKS_MAX))
        self._reservations.check_at(found, self._turn.now_ms + pause_ms)

    def _missed(self, found: Reservation, complete: bool) -> None:
        """No node has the job, of those that answered."""
        if complete:
            found.misses = u8(i64(found.misses) + 1)
            if found.misses >= _MISSES:
                self._free(found)
            else:
                self._reservations.check_at(found, self._turn.now_ms + _AGAIN_MS)
        elif found.state == RESERVED and found.checks >= _LOOKS_MAX:
            self._free(found)
        else:
            found.misses = 0
            self._again(found)

    def _free(self, found: Reservation) -> None:
        if found.state != RESERVED:
            self._ended(found)
            return
        self._reservations.drop(found)
        self._keeper.notify(found)

    def _ended(self, found: Reservation) -> None:
        self._keeper.job_ended(found)
        if not found.maker:
            self._keeper.notify(found)
