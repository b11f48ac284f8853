"""Queues: jobs in order, pause flags, statistics, and the clients that wait at each."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.bounds import check_queue
from disque_tx.core.base.client import Client
from disque_tx.core.base.part import Part
from disque_tx.core.base.rates import MARK_MS, Rates
from disque_tx.core.jobs.memory import QUEUE_BYTES, Memory
from disque_tx.core.jobs.order import JobOrder
from disque_tx.core.lookup.namedtable import NamedTable
from disque_tx.core.policies.policies import Policies
from disque_tx.core.queues.demand import QueueDemand
from disque_tx.core.queues.selector import Selector
from disque_tx.core.queues.standing import PeerDemand, StandingDemand
from disque_tx.messages.limits import QUEUE_BYTES_MAX
from disque_tx.messages.records import Keyed

#: Pause flags (cluster protocol, section 11.6).
PAUSE_NONE: Final = 0
PAUSE_IN: Final = 1
PAUSE_OUT: Final = 2
PAUSE_ALL: Final = 3
PAUSE_NAMES: Final = (b"none", b"in", b"out", b"all")

#: How long an empty queue without clients lives, by memory level, in milliseconds
#: (cluster protocol, section 11.7).
IDLE_MS: Final = (300_000, 10_000, 2_000)
_NEVER_MS: Final = -(1 << 62)
#: Up to so many queues are all looked at when INFO reports how long jobs have waited.
_LOOKED_AT_MAX: Final = 1_000
#: Changed queues that are noted. To look at more of them is no better than to look at all.
_CHANGED_MAX: Final = 1_000


class Queue(Keyed):
    """One queue, found by its name.

    ``created_ms`` and ``used_ms`` (last enqueue or fetch): the steady clock. ``waiters``: clients
    blocked here, in the order in which they came; ``None`` while no client ever waited. ``paused``:
    in force, by PAUSE or by policy; ``paused_by_command``: what PAUSE said. ``ready``:
    stands in the node's list of queues whose waiters may be served. ``imports``: what is asked of
    other nodes and comes from them; ``None`` before anything was. ``standing``: what other nodes
    were told that this one can use, ``None`` while that is nothing; ``demand_noted``: stands in the
    list of queues of which they may have to be told. ``wanted``: what other nodes can use, ``None``
    while that is nothing. ``fetched_ms``: when a job last went to a client. ``rates``: ``None``
    before ``mark_ms``, from which on they have to be brought up to date. ``overfull``: stands in
    the list of queues that may be longer than their policy allows. ``selectors``: those that it
    belongs to, as found at ``selectors_version``; ``None`` before they were looked for. ``served``:
    grows with each queue that is served while there are selectors; 0 for one that never was.
    ``noted``: a change of its jobs need not be noted (see :meth:`Queues.note`).
    """

    __slots__ = (
        "jobs",
        "waiters",
        "paused",
        "paused_by_command",
        "created_ms",
        "used_ms",
        "jobs_in",
        "jobs_out",
        "ready",
        "imports",
        "standing",
        "demand_noted",
        "fetched_ms",
        "wanted",
        "overfull",
        "rates",
        "mark_ms",
        "selectors",
        "selectors_version",
        "served",
        "noted",
    )

    def __init__(self, name: bytes, now_ms: i64) -> None:
        super().__init__(name)
        self.jobs: JobOrder = JobOrder()
        self.waiters: OrderedDict[Client, None] | None = None
        self.paused: i64 = PAUSE_NONE
        self.paused_by_command: i64 = PAUSE_NONE
        self.created_ms: i64 = now_ms
        self.used_ms: i64 = now_ms
        self.jobs_in: i64 = 0
        self.jobs_out: i64 = 0
        self.ready: bool = False
        self.imports: QueueDemand | None = None
        self.standing: StandingDemand | None = None
        self.demand_noted: bool = False
        self.fetched_ms: i64 = _NEVER_MS
        self.wanted: PeerDemand | None = None
        self.overfull: bool = False
        self.rates: Rates | None = None
        self.mark_ms: i64 = now_ms + MARK_MS
        self.selectors: list[Selector] | None = None
        self.selectors_version: i64 = 0
        self.served: i64 = 0
        self.noted: bool = True

    @property
    def name(self) -> bytes:
        """What clients call it."""
        return self.id

    def mark(self, now_ms: i64) -> None:
        """Bring the rates up to date, from ``mark_ms`` on and before the counters change."""
        if self.rates is None:
            self.rates = Rates(0, 0, self.mark_ms - MARK_MS)
        self.rates.move(self.jobs_in, self.jobs_out, now_ms)
        self.mark_ms = self.rates.marked_ms + MARK_MS

    def milli_per_s(self, now_ms: i64) -> tuple[i64, i64]:
        """Jobs that entered and left per 1,000 seconds, by the last ten seconds."""
        if now_ms >= self.mark_ms:
            self.mark(now_ms)
        rates = self.rates
        if rates is None:
            return self.jobs_in * 100, self.jobs_out * 100
        return rates.in_milli(self.jobs_in, now_ms), rates.out_milli(self.jobs_out, now_ms)

    def blocked(self) -> int:
        """How many clients wait here."""
        return len(self.waiters) if self.waiters is not None else 0

    def import_rate(self, now_ms: i64) -> i64:
        """Jobs that come from other nodes per second."""
        return self.imports.rate(now_ms) if self.imports is not None else 0

    def idle(self, now_ms: i64, limit_ms: i64) -> bool:
        """Whether this queue may be forgotten (client protocol, section 13.7)."""
        return (
            self.jobs.size == 0
            and not self.waiters
            and self.standing is None
            and self.paused_by_command == PAUSE_NONE
            and now_ms - self.used_ms >= limit_ms
        )


class Queues(Part):
    """All queues by name, and the sweep that removes idle ones a few at a time. ``wanted``: the
    queues of which other nodes can use jobs, by name, whether or not they exist here. ``noting``:
    while ``changed`` has all queues whose jobs changed, of those that are to be noted."""

    def __init__(self, memory: Memory, policies: Policies) -> None:
        self.table: NamedTable[Queue] = NamedTable()
        self.wanted: dict[bytes, PeerDemand] = {}
        self.noting: bool = False
        self.changed: list[Queue] = []
        self._memory = memory
        # The one found last: what happens to a job asks for its queue several times.
        self._last: Queue | None = None
        self._policies = policies
        self._cursor = 0
        # When the job that waits for the longest was queued, of those seen by the sweep under way
        # and by the last complete one; -1 for none.
        self._longest_ms: i64 = -1
        self._longest_last_ms: i64 = -1

    def __len__(self) -> int:
        return self.table.count

    def get(self, name: bytes) -> Queue | None:
        """The queue called ``name``, if it exists."""
        last = self._last
        if last is not None and last.data is name:
            return last
        queue = self.table.get(name)
        if queue is not None:
            self._last = queue
        return queue

    def obtain(self, name: bytes, now_ms: i64) -> Queue:
        """The queue called ``name``, made if need be."""
        queue = self.get(name)
        if queue is None:
            queue = Queue(name, now_ms)
            queue.paused = self.paused_by_policy(name)
            queue.noted = not self.noting
            if self.wanted:
                queue.wanted = self.wanted.get(name)
            self.table.put(queue)
            self._memory.add(QUEUE_BYTES + len(name))
        return queue

    def check(self, name: bytes) -> None:
        """Raise ``CommandError`` for a name that is too long, unless there is such a queue."""
        if len(name) > QUEUE_BYTES_MAX and self.get(name) is None:
            check_queue(name)

    def paused(self, name: bytes) -> i64:
        """The pause flags in force for a queue, which need not exist."""
        queue = self.table.get(name)
        return self.paused_by_policy(name) if queue is None else queue.paused

    def paused_by_policy(self, name: bytes) -> i64:
        """The pause flags that the policy of a queue says."""
        if not self._policies.active:
            return PAUSE_NONE
        policy = self._policies.of(name)
        return PAUSE_NONE if policy is None or policy.pause < 0 else policy.pause

    def discard(self, queue: Queue) -> None:
        """Remove a queue; its statistics are gone with it."""
        self._last = None
        self.table.remove(queue)
        self._memory.subtract(QUEUE_BYTES + len(queue.name))

    def note_from_now(self) -> None:
        """Note new queues from now on, and those whose ``noted`` is cleared."""
        self.noting = True
        self.changed = []

    def note(self, queue: Queue) -> None:
        """The jobs of a queue change that is to be noted. When too many did, noting ends."""
        queue.noted = True
        if self.noting:
            self.changed.append(queue)
            if len(self.changed) > _CHANGED_MAX:
                self.stop_noting()

    def stop_noting(self) -> None:
        """No change needs to be noted any more."""
        self.noting = False
        self.changed = []

    def forget_all(self) -> None:
        """Remove every queue, whatever is in it."""
        self.stop_noting()
        for queue in self.table.values():
            self._memory.subtract(QUEUE_BYTES + len(queue.name))
        self.table.clear()
        self._last = None
        self._cursor = 0
        self._longest_ms = self._longest_last_ms = -1

    def sweep(self, now_ms: i64, limit: int) -> int:
        """Look at about ``limit`` queues where the last sweep ended, remove the idle ones, and
        return how many were removed."""
        limit_ms = IDLE_MS[self._memory.level()]
        removed = 0
        seen = 0
        while seen < limit and self.table.count > 0:
            self._cursor, some = self.table.scan(self._cursor)
            seen += len(some) + 1
            for queue in some:
                self._longest_ms = _earlier(self._longest_ms, queue)
                if queue.idle(now_ms, limit_ms):
                    self.discard(queue)
                    removed += 1
            if self._cursor == 0:
                self._longest_last_ms, self._longest_ms = self._longest_ms, -1
                break
        return removed

    def longest_wait_ms(self, now_ms: i64) -> i64:
        """For how long the job has waited that waits for the longest at the front of a queue, -1
        when there is none; with very many queues, as the last complete sweep saw it."""
        since_ms = self._longest_last_ms
        if self.table.count <= _LOOKED_AT_MAX:
            since_ms = -1
            for queue in self.table.values():
                since_ms = _earlier(since_ms, queue)
        return -1 if since_ms < 0 else now_ms - since_ms


def _earlier(since_ms: i64, queue: Queue) -> i64:
    """The earlier of this time and the one at which the first job of the queue was queued."""
    first = queue.jobs.first()
    if first is None or 0 <= since_ms <= first.moved_ms:
        return since_ms
    return first.moved_ms
