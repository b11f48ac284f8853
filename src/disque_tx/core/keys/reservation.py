"""The keys that this node knows of, and the jobs that have them.

1. A key is found by its name, and by the ID of its job.
2. It ends by time: it is due when it ends at the latest, or has to be looked at. One whose job this
   node made and holds needs neither, for the end of the job ends it.
3. Keys that jobs have are logged; those that are only reserved are not, for their jobs are not
   made yet.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.jobs.job import made_by
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.keys.keysbyjob import KeysByJob, Reservation
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.keys import ENDED, HELD, RESERVED
from disque_tx.messages.records import KeyEntry

#: Bytes for a key without its name.
KEY_BYTES: Final = 400
#: After what time a keeper looks for the first time whether a job is made, or exists still.
_RESERVED_MS: Final = 1_000
_HELD_MS: Final = 30_000


class Reservations:
    """``by_key``: all of them."""

    __slots__ = ("_keys_by_job", "_memory", "_membership", "_outbox", "_schedule", "by_key")

    def __init__(
        self, membership: Membership, memory: Memory, outbox: Outbox, keys_by_job: KeysByJob
    ) -> None:
        self.by_key: dict[bytes, Reservation] = {}
        self._membership: Membership = membership
        self._memory: Memory = memory
        self._outbox: Outbox = outbox
        self._keys_by_job: KeysByJob = keys_by_job
        self._schedule: Schedule[Reservation] = Schedule()

    def __len__(self) -> int:
        return len(self.by_key)

    def get(self, key: bytes) -> Reservation | None:
        """What is known of the key."""
        return self.by_key.get(key)

    def of_job(self, job_id: bytes) -> Reservation | None:
        """The key of the job, as far as it is known."""
        return self._keys_by_job.by_job.get(job_id)

    def ended(self, key: bytes, job_id: bytes) -> bool:
        """Whether this job had the key, is done, and the key is kept for a while."""
        found = self.by_key.get(key)
        return found is not None and found.job_id == job_id and found.state == ENDED

    def full(self) -> bool:
        """Whether there is no memory for more."""
        return self._memory.level() > 0

    def new(self, entry: KeyEntry, now_ms: i64) -> Reservation:
        """Take in a key that is not known here. The times of the entry are what is left."""
        mine = self._membership.myself.id
        found = Reservation(entry.key, entry.job_id, i64(entry.state), made_by(mine, entry.job_id))
        found.expire_ms = now_ms + entry.life_ms
        found.keep_ms = now_ms + entry.keep_ms if entry.keep_ms > 0 else 0
        found.born_ms = entry.born_ms
        self.by_key[found.key] = found
        self._keys_by_job.by_job[found.job_id] = found
        self._memory.add(KEY_BYTES + len(found.key))
        self._plan(found)
        self._record(found)
        return found

    def store(self, entry: KeyEntry, now_ms: i64) -> Reservation:
        """Keep a key that is not known here."""
        found = self.new(entry, now_ms)
        self.schedule_check(found, now_ms)
        return found

    def schedule_check(self, found: Reservation, now_ms: i64) -> None:
        """A keeper looks from time to time whether the job exists; its maker gets to know."""
        if found.state == ENDED:
            self.check_at(found, 0)
        elif not found.maker:
            pause_ms = _RESERVED_MS if found.state == RESERVED else _HELD_MS
            self.check_at(found, now_ms + pause_ms)

    def changed(self, found: Reservation) -> None:
        """Schedule and log a reservation whose state or times have changed."""
        self._plan(found)
        self._record(found)

    def check_at(self, found: Reservation, at_ms: i64) -> None:
        """Schedule a check of the reservation at this time, if it does not end before; 0 for no
        check."""
        found.check_ms = at_ms
        self._plan(found)

    def _plan(self, found: Reservation) -> None:
        self._schedule.remove(found)
        due_ms = _due_ms(found)
        if due_ms >= 0:
            self._schedule.add(found, due_ms)

    def _record(self, found: Reservation) -> None:
        if self._outbox.log is not None and found.state != RESERVED:
            self._outbox.log.hold_key(self.logged(found))

    def logged(self, found: Reservation) -> KeyEntry:
        """The entry as logged: times are unix milliseconds."""
        unix_ms = self._membership.unix_ms
        keep_ms = found.keep_ms + unix_ms if found.keep_ms else 0
        expire_ms = found.expire_ms + unix_ms
        state = i64(found.state)
        return KeyEntry(found.key, found.job_id, state, expire_ms, keep_ms, found.born_ms)

    def load(self, entry: KeyEntry, now_ms: i64) -> Reservation | None:
        """Take in a key from the log, in place of what is known of it; ``None`` if its time is
        over."""
        known = self.by_key.get(entry.key)
        if known is not None:
            self.drop(known)
        unix_ms = self._membership.unix_ms
        life_ms = max(0, entry.life_ms - unix_ms - now_ms)
        keep_ms = max(0, entry.keep_ms - unix_ms - now_ms) if entry.keep_ms > 0 else 0
        if keep_ms == 0 and (life_ms == 0 or entry.state == ENDED):
            return None
        left = KeyEntry(entry.key, entry.job_id, entry.state, life_ms, keep_ms, entry.born_ms)
        return self.new(left, now_ms)

    def drop(self, found: Reservation) -> None:
        """The key is free."""
        if self.by_key.get(found.key) is not found:
            return
        del self.by_key[found.key]
        if self._keys_by_job.by_job.get(found.job_id) is found:
            del self._keys_by_job.by_job[found.job_id]
        self._schedule.remove(found)
        self._memory.subtract(KEY_BYTES + len(found.key))
        if self._outbox.log is not None and found.state != RESERVED:
            self._outbox.log.free_key(found.key)

    def next_due_ms(self) -> i64:
        """When one is due next, -1 for never."""
        return self._schedule.next_ms()

    def due(self, now_ms: i64, limit: i64) -> list[Reservation]:
        """Up to ``limit`` that are due, which are due no more."""
        return self._schedule.due(now_ms, limit)

    def clear(self) -> None:
        """Free all keys."""
        for found in list(self.by_key.values()):
            self.drop(found)


def left(found: Reservation, now_ms: i64) -> KeyEntry:
    """The entry as sent: remaining durations instead of deadlines."""
    life_ms = max(0, found.expire_ms - now_ms)
    keep_ms = max(0, found.keep_ms - now_ms) if found.keep_ms else 0
    return KeyEntry(found.key, found.job_id, i64(found.state), life_ms, keep_ms, found.born_ms)


def ends_ms(found: Reservation) -> i64:
    """When it ends at the latest."""
    return found.keep_ms if found.state == ENDED else max(found.expire_ms, found.keep_ms)


def _due_ms(found: Reservation) -> i64:
    if found.check_ms > 0:
        return min(found.check_ms, ends_ms(found))
    if found.maker and found.state == HELD:
        return -1
    return ends_ms(found)
