"""Standing demand: other nodes of ours know which queues clients wait for here, and how many jobs
this node can use (cluster protocol, section 21.8).

1. At the end of a turn, each node is told what has changed for it, in one message: queues, credit,
   how many clients wait. What it was told holds until it is told otherwise, or the link falls; it
   is told again now and then, while clients wait.
2. Credit is what clients wait for and, while another node has more jobs than that, a window which
   follows how fast clients take them. It is renewed when half of it is used.
3. When no client waits any more, the demand ends a short time later, for most clients come again at
   once. Jobs that lie here then go back to where they came from.
4. A queue that must not deliver has no demand; neither has a node that leaves, or is full.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import Client
from disque_tx.core.base.part import NEVER_MS, Part
from disque_tx.core.base.schedule import earlier
from disque_tx.core.base.slices import SlicedTask
from disque_tx.core.getting.receivers import Receivers
from disque_tx.core.queues.queues import PAUSE_OUT, Queue, Queues
from disque_tx.core.queues.selector import Selector
from disque_tx.core.queues.standing import StandingDemand
from disque_tx.core.queues.waiters import Waiters
from disque_tx.core.state.state import State
from disque_tx.messages.demands import EXCEPT, MATCH, QUEUE, WITHOUT

#: Queues of which other nodes are told; for more, they are asked at intervals.
STANDING_MAX: Final = 20_000
#: How long demand lasts when no client waits.
LINGER_MS: Final = 100
#: Queues of a pattern that must not deliver; with more, the demand of the pattern ends.
REFUSED_MAX: Final = 100
_QUEUES_PER_SLICE: Final = 500


class Demanding(Part):
    """``returns``: queues whose surplus is to go back, until this is read. ``receivers``: whom to
    tell."""

    def __init__(self, state: State) -> None:
        self.returns: list[Queue] = []
        self.receivers = Receivers(state)
        self._turn = state.turn
        self._queues = state.queues
        self._waiters = state.waiters
        self._limits = state.limits
        self._matching = state.matching
        self._slices = state.slices
        # Queues and selectors with demand, and those of them for which no client waits, by when it
        # ends.
        self._standing: dict[Queue, None] = {}
        self._selectors: dict[Selector, None] = {}
        self._lingering: OrderedDict[Queue, int] = OrderedDict()
        self._idle: OrderedDict[Selector, int] = OrderedDict()

    def tells(self, queue: Queue, node_id: bytes) -> bool:
        """Whether the node knows what is demanded of a queue, or will at the end of the turn, so
        that it need not be asked."""
        if node_id not in self.receivers.by_id:
            return False
        if queue.standing is not None:
            return True
        return bool(queue.waiters) and len(self._standing) < STANDING_MAX

    def tells_matching(self, selector: Selector, node_id: bytes) -> bool:
        """Whether the node knows what is demanded of the queues that match."""
        return node_id in self.receivers.by_id and bool(selector.clients)

    def renew(self, queue: Queue) -> None:
        """A client still waits at the queue: tell once more what is demanded."""
        if queue.standing is not None:
            queue.standing.renew()
            self._waiters.note_demand(queue)

    def renew_pattern(self, selector: Selector) -> None:
        """A client still waits for queues that match: tell once more what is demanded."""
        if selector.standing is not None:
            selector.standing.renew()
            self._waiters.note_pattern(selector)

    def arrived(self, queue: Queue, giver: bytes, size: i64, more: bool) -> None:
        """A job of ``size`` bytes came by demand; ``more`` wait where it came from."""
        standing = queue.standing
        if standing is None:
            standing = self._begin(queue)
        standing.arrived(giver, size, more)
        self._waiters.note_demand(queue)
        if self._selectors:
            for selector in self._matching.of(queue):
                if selector.standing is not None:
                    selector.standing.arrived(giver, size, False)
                    if not self._may_deliver(queue.name):
                        selector.refused[queue.name] = None
                    self._waiters.note_pattern(selector)

    def _may_deliver(self, name: bytes) -> bool:
        if self._queues.paused(name) & PAUSE_OUT:
            return False
        return not self._limits.hold_back(name, self._turn.now_ms)

    def _begin(self, queue: Queue) -> StandingDemand:
        standing = queue.standing = StandingDemand()
        self._standing[queue] = None
        return standing

    # -- at the end of a turn ----------------------------------------------------------------

    def has_news(self) -> bool:
        """Whether :meth:`finish` has anything to do."""
        waiters = self._waiters
        receivers = self.receivers
        if receivers.unsent or receivers.renewed:
            return True
        return bool(waiters.demanded) or bool(waiters.patterns)

    def finish(self) -> None:
        """The turn ends: tell other nodes what changed."""
        if not self.has_news():
            return
        waiters = self._waiters
        if self.receivers.renewed:
            self.receivers.renewed = False
            for selector in self._selectors:
                waiters.note_pattern(selector)
            self._slices.add(_Noting(waiters, list(self._standing)))
            self._slices.add(_NotingClients(self._queues, waiters))
        demanded, waiters.demanded = waiters.demanded, []
        for queue in demanded:
            queue.demand_noted = False
            self._look(queue)
        patterns, waiters.patterns = waiters.patterns, []
        for selector in patterns:
            selector.demand_noted = False
            self._look_at_pattern(selector)
        self.receivers.send()

    def _look(self, queue: Queue) -> None:
        """Find out what other nodes need to know about this queue."""
        now_ms = self._turn.now_ms
        receivers = self.receivers
        waiting: i64 = queue.blocked()
        standing = queue.standing
        if standing is None:
            if waiting == 0 or receivers.is_closed() or len(self._standing) >= STANDING_MAX:
                return
            standing = self._begin(queue)
        if waiting == 0 and queue not in self._lingering:
            self._lingering[queue] = int(now_ms + LINGER_MS)
        room: i64 = 0
        if not receivers.is_closed() and not queue.paused & PAUSE_OUT:
            room = self._limits.room(queue.name, now_ms)
        if room == 0:
            receivers.withdraw(standing, [QUEUE + queue.name])
            return
        standing.adjust(waiting, queue.jobs.size, now_ms)
        need: i64 = min(max(waiting, standing.window) - queue.jobs.size, room)
        if need <= 0:
            return
        words = [QUEUE + queue.name]
        since_ms = next(iter(queue.waiters)).seen_ms if queue.waiters else now_ms
        imports = queue.imports
        givers = imports.recent_givers(now_ms) if imports is not None else []
        number: i64 = len(givers)
        share: i64 = (need + number - 1) // number if number > 0 else 0
        for receiver in receivers.by_id.values():
            credit = min(need, waiting)
            if receiver.entry.id in givers:
                credit = max(credit, share)
            receivers.grant(standing, receiver, words, credit, waiting, since_ms)

    def _look_at_pattern(self, selector: Selector) -> None:
        """Find out what other nodes need to know about queues that match. Nothing is asked in
        advance: of queues whose jobs come, more are asked by name."""
        now_ms = self._turn.now_ms
        receivers = self.receivers
        waiting: i64 = len(selector.clients)
        standing = selector.standing
        if standing is None:
            if waiting == 0 or receivers.is_closed():
                return
            standing = selector.standing = StandingDemand()
            self._selectors[selector] = None
        words = self._pattern(selector)
        if waiting == 0 and selector not in self._idle:
            self._idle[selector] = int(now_ms + LINGER_MS)
        if selector.refused:
            self._look_at_refused(selector, standing)
            for name in selector.refused:
                words.append(WITHOUT + name)
        if receivers.is_closed() or len(selector.refused) > REFUSED_MAX:
            receivers.withdraw(standing, words)
        elif waiting > 0:
            since_ms = next(iter(selector.clients)).seen_ms
            for receiver in receivers.by_id.values():
                receivers.grant(standing, receiver, words, waiting, waiting, since_ms)

    def _look_at_refused(self, selector: Selector, standing: StandingDemand) -> None:
        """Queues that may deliver again are welcome again; other nodes learn which are not."""
        for name in list(selector.refused):
            if self._may_deliver(name):
                del selector.refused[name]
            else:
                self._waiters.refused.note(name, selector)
        refused = list(selector.refused)
        if refused != selector.refused_told:
            selector.refused_told = refused
            standing.renew()

    def _pattern(self, selector: Selector) -> list[bytes]:
        words = [MATCH + glob for glob in selector.patterns]
        words += [EXCEPT + glob for glob in selector.excepts]
        return words

    # -- time --------------------------------------------------------------------------------

    def next_due_ms(self) -> i64:
        if self.receivers.unsent:
            return self._turn.now_ms
        due_ms: i64 = NEVER_MS
        if self._lingering:
            due_ms = next(iter(self._lingering.values()))
        if self._idle:
            due_ms = earlier(due_ms, next(iter(self._idle.values())))
        return due_ms

    def run_due(self) -> None:
        """End the demand of queues for which no client has waited for some time."""
        now_ms = self._turn.now_ms
        while self._lingering:
            queue, due_ms = next(iter(self._lingering.items()))
            if due_ms > now_ms:
                break
            del self._lingering[queue]
            standing = queue.standing
            if standing is None or queue.waiters:
                continue
            if standing.window > 0 and now_ms - queue.fetched_ms < LINGER_MS:
                self._lingering[queue] = int(now_ms + LINGER_MS)
                continue
            if standing.surplus > 0 and queue.jobs.size > 0:
                # Before the jobs: who gets them must not send them here again.
                self.receivers.withdraw(standing, [QUEUE + queue.name])
                self.returns.append(queue)
            else:
                self.end(queue)
        while self._idle:
            selector, due_ms = next(iter(self._idle.items()))
            if due_ms > now_ms:
                break
            del self._idle[selector]
            if selector.standing is not None and not selector.clients:
                self.receivers.withdraw(selector.standing, self._pattern(selector))
                selector.standing = None
                self._waiters.refused.forget(selector)
                selector.refused.clear()
                self._selectors.pop(selector, None)

    def end(self, queue: Queue) -> None:
        """Nothing is demanded of the queue any more."""
        if queue.standing is not None:
            self.receivers.withdraw(queue.standing, [QUEUE + queue.name])
            queue.standing = None
            self._standing.pop(queue, None)

    def forget_all(self) -> None:
        """All queues are about to be forgotten."""
        self._standing.clear()
        self._lingering.clear()
        self.returns.clear()
        self._waiters.demanded.clear()
        self.receivers.void_all()


class _Noting(SlicedTask):
    """A task that has queues looked at again at the end of turns."""

    __slots__ = ("_left", "_waiters")

    def __init__(self, waiters: Waiters, queues: list[Queue]) -> None:
        self._waiters: Waiters = waiters
        self._left: list[Queue] = queues

    def step(self, now_ms: i64) -> bool:
        for queue in self._left[-_QUEUES_PER_SLICE:]:
            self._waiters.note_demand(queue)
        del self._left[-_QUEUES_PER_SLICE:]
        return not self._left


class _NotingClients(SlicedTask):
    """A task that has those queues looked at for which clients waited before any node was told."""

    __slots__ = ("_clients", "_queues", "_waiters")

    def __init__(self, queues: Queues, waiters: Waiters) -> None:
        self._queues: Queues = queues
        self._waiters: Waiters = waiters
        self._clients: list[Client] = list(waiters.blocked)

    def step(self, now_ms: i64) -> bool:
        seen = 0
        while self._clients and seen < _QUEUES_PER_SLICE:
            client = self._clients.pop()
            seen += 1
            if client.blocked_selector != 0:
                self._waiters.note_pattern(self._waiters.matching.of_client(client))
            for name in client.blocked_queues:
                seen += 1
                queue = self._queues.get(name)
                if queue is not None:
                    self._waiters.note_demand(queue)
        return not self._clients
