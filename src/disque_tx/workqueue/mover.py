"""Moves all items of a work queue on Redis into a queue of Disque, as jobs.

An item is moved in these steps. Two keys of Redis record the state of a move, so that it can be
started again: ``P:mover``, a lock that only one move holds at a time, and the hash ``P:moving``.

==  ===================================================  ========================================
    step                                                 what a crash after it leaves
==  ===================================================  ========================================
1   in one script: lease the item,                       a note that there may be a job, or not
    ``HSET P:moving <id> ?<session>``
2   ``ADDJOB … DELAY 3600``                              the same, and a job that is not delivered
3   in one script: delete the item as ``complete``       the job, and its ID in the note
    does, ``HSET P:moving <id> <job>``
4   ``ENQUEUE <job>``, if it still waits                 the job, which can be delivered, and the
                                                         note
5   ``HDEL P:moving <id>``                               the job
==  ===================================================  ========================================

Before it leases anything, a move reads the notes of an earlier one. A note with a job ID continues
at step 4. For one without, all nodes are searched for a job of this item: if there is one it
continues at step 3, otherwise the item is given back. So no step loses an item, and none is
duplicated as long as the move is started again within the DELAY, and no node that holds a job has
died meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall, deferLater

from disque_tx.workqueue.deferreds import deferred, gather_all
from disque_tx.workqueue.errors import MoveRefused
from disque_tx.workqueue.items import Item
from disque_tx.workqueue.parking import Parking
from disque_tx.workqueue.queue import WorkQueue
from disque_tx.workqueue.redis import Redis
from disque_tx.workqueue.scripts import COMPLETE, GIVE_BACK, Script, script

#: How long an item is kept from workers while it is moved.
_LEASE_MS: Final = 60_000
#: Time between checks for items that workers hold.
_LOOK_S: Final = 1.0

_LOCK_LOST: Final = -1
#: id, session, job → 1 if the item was completed now, 0 if it was completed before.
_HAND_OVER: Final = script(
    f"""\
local move = ARGV[3]
if redis.call('GET', prefix .. ':mover') ~= move then return {_LOCK_LOST} end
if not exists(id) then return 0 end
redis.call('HSET', prefix .. ':moving', id, ARGV[4])
"""
    + COMPLETE.body
)
#: session, ms → whether this session holds the lock.
_RENEW: Final = script("""\
local lock = prefix .. ':mover'
if redis.call('GET', lock) ~= ARGV[2] then return 0 end
return redis.call('PEXPIRE', lock, ARGV[3])
""")
#: session
_UNLOCK: Final = script("""\
local lock = prefix .. ':mover'
return redis.call('GET', lock) == ARGV[2] and redis.call('DEL', lock) or 0
""")


class Mover:
    """Moves the items of one work queue.

    ``queue``: the source, on Redis. ``parking``: the target, on Disque. ``progress``: called with
    how many items were moved and how many are left, by the lengths of the lists. ``at_a_time``:
    how many are moved concurrently. ``lock_s``: how long after a move was killed another one may
    start. ``waiting``: called with a message for people when a wait may take long.

    ``moved``: how many items were moved so far. ``ended``: whether all are."""

    def __init__(
        self,
        queue: WorkQueue,
        redis: Redis,
        parking: Parking,
        *,
        progress: Callable[[int, int], object] = lambda moved, left: None,
        at_a_time: int = 32,
        lock_s: float = 6.0,
        waiting: Callable[[str], object] = lambda text: None,
    ) -> None:
        self._queue = queue
        self._redis = redis
        self._parking = parking
        self._waiting = waiting
        self._progress = progress
        self._at_a_time = at_a_time
        self._lock_ms = int(lock_s * 1000)
        self._notes = queue.prefix.of(":moving")
        self._stopping = False
        self._lost = False
        self.moved = 0
        self.ended = False

    @deferred
    async def run(self) -> int:
        """Move until no item is left. Returns how many were moved. Items that workers hold are
        waited for: they are completed there, or come back.

        :raises MoveRefused: when another move runs.
        :raises WorkQueueError: when Redis fails.
        :raises ClientError: when Disque fails. After any error the move can be started again.
        """
        if not await self._lock():
            return 0
        renewing = LoopingCall(self._renew)
        renewing.clock = self._redis.reactor
        done = renewing.start(self._lock_ms / 3000)
        try:
            await self._parking.open()
            await self._resume()
            await self._queue.deep_clean()
            await self._move_all()
        finally:
            if renewing.running:
                renewing.stop()
            await done
            await self._parking.close()
            await self._run(_UNLOCK, self._queue.session)
        return self.moved

    def stop(self) -> None:
        """Start no more items; :meth:`run` returns when those that have been started are moved."""
        self._stopping = True

    # -- the lock ----------------------------------------------------------------------------

    async def _lock(self) -> bool:
        """Get the lock; returns ``False`` if the move was stopped before."""
        key = self._queue.prefix.of(":mover")
        words = ("SET", key, self._queue.session, "NX", "PX", self._lock_ms)
        until_s = self._redis.reactor.seconds() + 1.2 * self._lock_ms / 1000
        reported = False
        while await self._redis.execute(*words) is None:
            if self._stopping:
                return False
            if not reported:
                reported = True
                self._waiting(
                    f"Another move holds the key {key}; it may have been killed. Waiting for it,"
                    f" up to {1.2 * self._lock_ms / 1000:g} s."
                )
            if self._redis.reactor.seconds() > until_s:
                raise MoveRefused(
                    f"Another move of the work queue {self._queue.prefix.prefix!r} is running: it"
                    f" holds the key {key}. Wait until it ends."
                )
            await deferLater(self._redis.reactor, _LOOK_S)
        return True

    @deferred
    async def _renew(self) -> None:
        try:
            self._lost = not await self._run(_RENEW, self._queue.session, self._lock_ms)
        except Exception:
            self._lost = True

    def _check(self) -> None:
        if self._lost:
            raise MoveRefused(
                "The move lost its lock in Redis: the server did not answer, or this program was"
                " suspended for too long. Start it again."
            )

    # -- the notes of an earlier move --------------------------------------------------------

    async def _resume(self) -> None:
        words = iter(await self._redis.execute("HGETALL", self._notes))
        notes = {_text(item_id): note.decode() for item_id, note in zip(words, words, strict=True)}
        open_notes = {item_id: note for item_id, note in notes.items() if note.startswith("?")}
        if open_notes:
            notes |= await self._parking.find(open_notes)
        for item_id, note in notes.items():
            item = Item(item_id, b"")
            if note.startswith("?"):
                await self._run(GIVE_BACK, item_id, note[1:])
                await self._forget(item)
            elif item_id in open_notes:
                await self._hand_over(item, note)
            else:
                await self._release(item, note)

    # -- moving ------------------------------------------------------------------------------

    async def _move_all(self) -> None:
        while True:
            runs = [Deferred.fromCoroutine(self._move_waiting()) for _ in range(self._at_a_time)]
            await gather_all(runs)
            left = await self._queue.counts()
            self._progress(self.moved, left.queue + left.processing)
            self.ended = not left.queue + left.processing
            if self.ended or self._stopping:
                return
            await deferLater(self._redis.reactor, _LOOK_S)
            await self._queue.light_clean()

    async def _move_waiting(self) -> None:
        """Move the items that wait, one by one."""
        while not self._stopping:
            item = await self._queue.take(_LEASE_MS, self._notes)
            if item is None:
                return
            self._check()
            await self._hand_over(item, await self._parking.park(item))
            left = await self._queue.counts()
            self._progress(self.moved, left.queue + left.processing)

    async def _hand_over(self, item: Item, job_id: str) -> None:
        """Steps 3 to 5 of the move of an item."""
        done = await self._run(_HAND_OVER, _raw(item), self._queue.session, job_id)
        if done == _LOCK_LOST:
            self._lost = True
            self._check()
        if done:
            self.moved += 1
            await self._release(item, job_id)
        else:
            await self._parking.drop(job_id)
            await self._forget(item)

    async def _release(self, item: Item, job_id: str) -> None:
        await self._parking.release(job_id)
        await self._forget(item)

    async def _forget(self, item: Item) -> None:
        await self._redis.execute("HDEL", self._notes, _raw(item))

    def _run(self, what: Script, *words: Any) -> Deferred[Any]:
        return self._queue.run(what, *words)


def _raw(item: Item) -> bytes:
    return item.id.encode(errors="surrogateescape")


def _text(item_id: bytes) -> str:
    return item_id.decode(errors="surrogateescape")
