"""All items of a work queue on Redis become jobs of a queue of Disque.

An item is moved in these steps. Two keys of Redis tell a move that is started again what an earlier
one has done: ``P:mover``, which only one move holds at a time, and the hash ``P:moving``.

==  ===================================================  ========================================
    step                                                 what a crash after it leaves
==  ===================================================  ========================================
1   in one script: lease the item,                       a note that a job may be there, or not
    ``HSET P:moving <id> ?<session>``
2   ``ADDJOB … DELAY 3600``                              the same, and a job that nobody gets yet
3   in one script: delete the item as ``complete``       the job, and its ID in the note
    does, ``HSET P:moving <id> <job>``
4   ``ENQUEUE <job>``, if it still waits                 the job as workers see it, and the note
5   ``HDEL P:moving <id>``                               the job
==  ===================================================  ========================================

Before it leases anything, a move goes through the notes. One with a job goes on at step 4. For one
without, all nodes are searched for a job of this item: if there is one it goes on at step 3,
otherwise the item is given back. So nothing is lost at any step, and nothing doubled as long as the
move is started again within the DELAY, and no node that was given a job is gone meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall, deferLater

from disque_tx.workqueue.deferreds import deferred, together
from disque_tx.workqueue.errors import MoveRefused
from disque_tx.workqueue.items import Item
from disque_tx.workqueue.parking import Parking
from disque_tx.workqueue.queue import WorkQueue
from disque_tx.workqueue.redis import Redis
from disque_tx.workqueue.scripts import COMPLETE, GIVE_BACK, Script, script

#: How long an item is kept from workers while it is moved.
_LEASE_MS: Final = 60_000
#: Rest before looking again for items that workers hold.
_LOOK_S: Final = 1.0

_LOCK_LOST: Final = -1
#: id, session, job → 1 if the item was completed, 0 if it was before.
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
    """``queue``: of Redis. ``parking``: of Disque. ``progress``: is told how many items were moved
    and how many are left, as far as lists tell. ``at_a_time``: how many are on their way.
    ``lock_s``: when another move may begin after one was killed. ``waiting``: is told what is
    waited for, when that may take long.

    ``moved``: how many items were moved so far. ``ended``: whether all are."""

    def __init__(
        self,
        queue: WorkQueue,
        redis: Redis,
        parking: Parking,
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
        """Move until no item is left; how many were moved. Items that workers hold are waited
        for: they are completed there, or come back.

        :raises MoveRefused: when another move runs.
        :raises WorkQueueError: when Redis fails.
        :raises ClientError: when Disque fails. After any error: start again.
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
            await self._all()
        finally:
            if renewing.running:
                renewing.stop()
            await done
            await self._parking.close()
            await self._run(_UNLOCK, self._queue.session)
        return self.moved

    def stop(self) -> None:
        """Begin no more items; :meth:`run` returns when those that are on their way are moved."""
        self._stopping = True

    # -- the lock ----------------------------------------------------------------------------

    async def _lock(self) -> bool:
        """Whether it is there; not, if it is to stop before."""
        key = self._queue.prefix.of(":mover")
        words = ("SET", key, self._queue.session, "NX", "PX", self._lock_ms)
        until_s = self._redis.reactor.seconds() + 1.2 * self._lock_ms / 1000
        said = False
        while await self._redis.execute(*words) is None:
            if self._stopping:
                return False
            if not said:
                said = True
                self._waiting(
                    f"Another move holds the key {key}; it may have been killed. Waiting for it,"
                    f" up to {1.2 * self._lock_ms / 1000:g} s."
                )
            if self._redis.reactor.seconds() > until_s:
                raise MoveRefused(
                    f"Another move of the work queue {self._queue.prefix.prefix!r} is running: it"
                    f" holds the key {key}. Wait for its end."
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
                "The move lost its lock in Redis: the server was silent, or this program stood"
                " still for too long. Start it again."
            )

    # -- what an earlier move left -----------------------------------------------------------

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

    async def _all(self) -> None:
        while True:
            runs = [Deferred.fromCoroutine(self._some()) for _ in range(self._at_a_time)]
            await together(runs)
            left = await self._queue.counts()
            self._progress(self.moved, left.queue + left.processing)
            self.ended = not left.queue + left.processing
            if self.ended or self._stopping:
                return
            await deferLater(self._redis.reactor, _LOOK_S)
            await self._queue.light_clean()

    async def _some(self) -> None:
        """Move what waits, one by one."""
        while not self._stopping:
            item = await self._queue.take(_LEASE_MS, self._notes)
            if item is None:
                return
            self._check()
            await self._hand_over(item, await self._parking.park(item))
            left = await self._queue.counts()
            self._progress(self.moved, left.queue + left.processing)

    async def _hand_over(self, item: Item, job_id: str) -> None:
        """Steps 3 to 5."""
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
