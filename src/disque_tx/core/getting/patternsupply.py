"""Jobs of queues that match go to nodes that have announced a use for them (cluster
protocol, section 21.8).

1. Which patterns a node demands is kept as for queues. Patterns that are new here are looked for in
   all queues, so that a node may bring only some of them at a time; the others wait.
2. A node gets jobs as clients of this node would: each from the queue whose turn it is. Limits of a
   queue are about deliveries here, and hold there.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.slices import SlicedTask
from disque_tx.core.queues.filling import fill
from disque_tx.core.queues.queues import PAUSE_OUT, Queue
from disque_tx.core.queues.selector import Selector
from disque_tx.core.queues.standing import Credit, PeerDemand
from disque_tx.core.state.state import State
from disque_tx.core.tables.shares import Shares
from disque_tx.errors import CommandError
from disque_tx.messages.demands import WITHOUT, DemandEntry, globs

#: Patterns with which one node may demand jobs at a time.
PATTERNS_MAX: Final = 500
#: New ones of one node that are looked for in a millisecond.
NEW_AT_ONCE: Final = 4
#: Queues passed over while jobs are chosen for one node.
_PASSED_OVER_MAX: Final = 200


class PatternSupply:
    """What nodes can use of queues that match."""

    def __init__(self, state: State) -> None:
        self._turn = state.turn
        self._queues = state.queues
        self._waiters = state.waiters
        self._matching = state.matching
        self._slices = state.slices
        self._shares = Shares(NEW_AT_ONCE)
        # By node: the selectors with which it demands jobs, and entries that wait.
        self._selectors: dict[bytes, dict[Selector, None]] = {}
        self._waiting: dict[bytes, list[DemandEntry]] = {}

    # -- what nodes have told ------------------------------------------------------------------

    def receive(self, node_id: bytes, entry: DemandEntry) -> None:
        """What a node can use of queues that match, from now on."""
        waiting = self._waiting.get(node_id)
        patterns, excepts = globs(entry.words)
        if waiting is None and (
            entry.credit == 0
            or self._matching.knows(patterns, excepts)
            or self._shares.take(node_id, self._turn.now_ms)
        ):
            self._enter(node_id, entry)
            return
        if not self._waiting:
            self._slices.add(_Entering(self))
        if waiting is None:
            waiting = self._waiting[node_id] = []
        if len(waiting) < PATTERNS_MAX:
            waiting.append(entry)

    def enter_waiting(self) -> bool:
        """Enter some of the entries that wait; whether none waits any more."""
        now_ms = self._turn.now_ms
        for node_id in list(self._waiting):
            waiting = self._waiting[node_id]
            while waiting and self._shares.take(node_id, now_ms):
                self._enter(node_id, waiting.pop(0))
            if not waiting:
                del self._waiting[node_id]
        return not self._waiting

    def _enter(self, node_id: bytes, entry: DemandEntry) -> None:
        patterns, excepts = globs(entry.words)
        if not patterns:
            return
        selectors = self._selectors.setdefault(node_id, {})
        if entry.credit == 0:
            if self._matching.knows(patterns, excepts):
                self._end(node_id, self._matching.obtain(patterns, excepts))
            return
        try:
            selector = self._matching.obtain(patterns, excepts)
        except CommandError:
            return
        peers = selector.wanted
        credit = peers.credits.get(node_id) if peers is not None else None
        if credit is None:
            if len(selectors) >= PATTERNS_MAX:
                return
            if peers is None:
                peers = PeerDemand()
                self._matching.want(selector, peers)
            selectors[selector] = None
            credit = peers.credits[node_id] = Credit(node_id)
        credit.credit = credit.waiting = entry.waiting
        credit.since_ms = self._turn.now_ms - entry.age_ms
        credit.told_ms = self._turn.now_ms
        credit.without = {word[1:]: None for word in entry.words if word[:1] == WITHOUT}
        fill(selector, self._queues, self._waiters, self._slices, self._turn.now_ms)
        self._waiters.note_wanted(selector)

    def _end(self, node_id: bytes, selector: Selector) -> None:
        """A node can use nothing more of the queues that match."""
        self._selectors[node_id].pop(selector, None)
        peers = selector.wanted
        if peers is not None and peers.credits.pop(node_id, None) is not None:
            if not peers.credits:
                self._matching.want(selector, None)

    def forget(self, node_id: bytes) -> None:
        """What a node has told does not hold any more."""
        self._waiting.pop(node_id, None)
        for selector in list(self._selectors.get(node_id, ())):
            self._end(node_id, selector)
        self._selectors.pop(node_id, None)

    # -- choosing ------------------------------------------------------------------------------

    def choose(self, selector: Selector, credit: Credit, passed_over: list[Queue]) -> Queue | None:
        """The queue that a node gets the next job from, ``None`` if there is none. Queues that the
        node must not be given from are put into ``passed_over``, to be offered again."""
        while len(passed_over) < _PASSED_OVER_MAX:
            queue = self._matching.choose(selector)
            if queue is None:
                return self._held(selector, credit)
            if queue.name not in credit.without:
                self._matching.note_served(queue)
                return queue
            selector.withdraw()
            passed_over.append(queue)
        return None

    def _held(self, selector: Selector, credit: Credit) -> Queue | None:
        """A queue of which clients of this node may get no more at present."""
        for name in list(islice(selector.held, _PASSED_OVER_MAX)):
            queue = self._queues.get(name)
            if queue is None or queue.jobs.size == 0 or queue.paused & PAUSE_OUT:
                del selector.held[name]
            elif name not in credit.without:
                return queue
        return None


class _Entering(SlicedTask):
    """Enters what had to wait."""

    __slots__ = ("_supply",)

    def __init__(self, supply: PatternSupply) -> None:
        self._supply: PatternSupply = supply

    def step(self, now_ms: i64) -> bool:
        return self._supply.enter_waiting()
