"""Jobs of queues that match come from other nodes (cluster protocol, section 21.7).

1. Nodes that know NEEDMATCH are asked with the patterns, at the intervals at which NEEDJOBS is sent
   for one queue: all of them, and more often those that gave lately.
2. Other nodes are asked by NEEDJOBS for queues that are known here, in slices.
3. Who is asked gives as its own clients would be served, from each queue half of it at the most,
   and nothing from a queue that it is importing itself. Jobs come by YOURJOBS.
4. A node that asks with many patterns that are new here at once is answered some at a time; what is
   too much is not answered, and asked again.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.schedule import Schedule
from disque_tx.core.base.slices import SlicedTask
from disque_tx.core.getting.demanding import Demanding
from disque_tx.core.getting.federation import BYTES_MAX, JOBS_MAX, Federation, Parcel
from disque_tx.core.queues.demand import QueueDemand
from disque_tx.core.queues.filling import fill
from disque_tx.core.queues.queues import PAUSE_OUT, Queue
from disque_tx.core.queues.selector import Selector
from disque_tx.core.state.state import State
from disque_tx.core.tables.shares import Shares
from disque_tx.errors import CommandError
from disque_tx.messages.bus import QueryMessage, QueueSignal
from disque_tx.messages.bustypes import CAN_MATCH, NEEDJOBS, NEEDMATCH
from disque_tx.messages.demands import EXCEPT, MATCH, globs
from disque_tx.messages.nodes import HANDSHAKE, NodeEntry

_SELECTORS_PER_RUN: Final = 100
#: How long a selector is left alone while this node may not import.
_LATER_MS: Final = 2_000
#: Queues that are importing or may give no more, passed over while one request is answered.
_ASIDE_MAX: Final = 200
#: Queues looked at per slice, and those that originals are asked for in one round.
_QUEUES_PER_SLICE: Final = 500
_NAMES_MAX: Final = 10_000
#: Requests of one node with new patterns that are answered in a millisecond, and that wait.
NEW_AT_ONCE: Final = 4
WAITING_MAX: Final = 200


def can_match(entry: NodeEntry) -> bool:
    """Whether there is a link to the node, on which it has shown that it knows NEEDMATCH."""
    link = entry.link
    return link is not None and link.features & CAN_MATCH != 0


class PatternDemand:
    """Asks for jobs by pattern, and gives them. ``wanting``: selectors with which clients are
    blocked, by when nodes are asked again. ``federation``: what takes and sends jobs."""

    def __init__(self, state: State, federation: Federation, demanding: Demanding) -> None:
        self.turn = state.turn
        self.wanting: Schedule[Selector] = Schedule()
        self._memory = state.memory
        self._membership = state.membership
        self._peers = state.peers
        self._queues = state.queues
        self._waiters = state.waiters
        self._matching = state.matching
        self._slices = state.slices
        self.federation = federation
        self._demanding = demanding
        self._shares = Shares(NEW_AT_ONCE)
        # By node: requests that wait.
        self._waiting: dict[bytes, list[QueryMessage]] = {}

    # -- asking ------------------------------------------------------------------------------

    def want(self, selector: Selector) -> None:
        """A client found nothing, and perhaps waits."""
        self._ask(selector)
        self._again(selector)

    def _ask(self, selector: Selector) -> None:
        now_ms = self.turn.now_ms
        if self._membership.leaving or self._memory.is_full():
            return
        imports = selector.imports
        if imports is None:
            imports = selector.imports = QueueDemand(now_ms)
        givers = imports.recent_givers(now_ms)
        count = imports.request(len(givers), now_ms)
        words = [MATCH + glob for glob in selector.patterns]
        words += [EXCEPT + glob for glob in selector.excepts]
        if imports.may_ask_all(now_ms):
            imports.asked_all_ms = now_ms
            if self._ask_all(selector, words):
                imports.all_attempts += 1
        if givers and imports.may_ask_givers(now_ms):
            imports.asked_givers_ms = now_ms
            imports.givers_attempts += 1
            for giver in givers:
                entry = self._peers.entry(giver)
                told = self._demanding.tells_matching(selector, giver)
                if entry is not None and can_match(entry) and not told:
                    self._peers.send(giver, QueryMessage(NEEDMATCH, count, words))

    def _ask_all(self, selector: Selector, words: list[bytes]) -> bool:
        """Whether there was anyone to ask."""
        others: list[bytes] = []
        asked = False
        self._demanding.renew_pattern(selector)
        for entry in self._membership.nodes.values():
            if entry.link is None or entry.flags & HANDSHAKE:
                continue
            asked = True
            if self._demanding.tells_matching(selector, entry.id):
                continue
            if can_match(entry):
                self._peers.send(entry.id, QueryMessage(NEEDMATCH, 1, words))
            else:
                others.append(entry.id)
        if others:
            self._slices.add(_ByName(self, selector, others))
        return asked

    def _again(self, selector: Selector) -> None:
        """If a client waits, ask again when it is time."""
        now_ms = self.turn.now_ms
        self.wanting.remove(selector)
        if selector.clients:
            imports = selector.imports
            idle = imports is None or self._membership.leaving
            at_ms = now_ms + _LATER_MS if idle or imports is None else imports.next_ms(now_ms)
            self.wanting.add(selector, at_ms)

    def run_due(self) -> None:
        """Ask again for the clients that still wait."""
        now_ms = self.turn.now_ms
        for selector in self.wanting.due(now_ms, _SELECTORS_PER_RUN):
            if selector.clients:
                self._ask(selector)
            self._again(selector)

    def some_by_name(self, selector: Selector, nodes: list[bytes], cursor: int) -> tuple[int, int]:
        """Ask these nodes for jobs of known queues, some of those that match; the next cursor, 0 at
        the end, and for how many queues."""
        if self._memory.is_full():
            return 0, 0
        asked = 0
        seen: i64 = 0
        while True:
            cursor, queues = self._queues.table.scan(cursor)
            seen += 1
            for queue in queues:
                seen += selector.price(queue.name)
                if self._is_wanted(selector, queue):
                    asked += 1
                    for node in nodes:
                        self._peers.send(node, QueueSignal(NEEDJOBS, queue.name, 1))
            if cursor == 0 or seen >= _QUEUES_PER_SLICE:
                return cursor, asked

    def _is_wanted(self, selector: Selector, queue: Queue) -> bool:
        if queue.jobs.size > 0 or queue.paused & PAUSE_OUT:
            return False
        return selector in self._matching.of(queue)

    # -- giving ------------------------------------------------------------------------------

    def give(self, sender: NodeEntry, message: QueryMessage) -> None:
        """NEEDMATCH: give some jobs, if there are any and the sender can be reached."""
        if sender.link is None or not self._membership.features & CAN_MATCH:
            return
        waiting = self._waiting.get(sender.id)
        patterns, excepts = globs(message.words)
        if not patterns or len(patterns) + len(excepts) != len(message.words):
            return
        if waiting is not None or (
            not self._matching.knows(patterns, excepts)
            and not self._shares.take(sender.id, self.turn.now_ms)
        ):
            if not self._waiting:
                self._slices.add(_Answering(self))
            if waiting is None:
                waiting = self._waiting[sender.id] = []
            if len(waiting) < WAITING_MAX:
                waiting.append(message)
            return
        self._give(sender, message)

    def give_waiting(self) -> bool:
        """Answer some of the requests that wait; whether none waits any more."""
        now_ms = self.turn.now_ms
        for node_id in list(self._waiting):
            waiting = self._waiting[node_id]
            sender = self._membership.nodes.get(node_id)
            if sender is None or sender.link is None:
                waiting.clear()
            while waiting and sender is not None and self._shares.take(node_id, now_ms):
                self._give(sender, waiting.pop(0))
            if not waiting:
                del self._waiting[node_id]
        return not self._waiting

    def _give(self, sender: NodeEntry, message: QueryMessage) -> None:
        selector = self._selector(message.words)
        if selector is None:
            return
        fill(selector, self._queues, self._waiters, self._slices, self.turn.now_ms)
        giving = _Giving(self, sender, max(1, min(message.number, JOBS_MAX)))
        aside: list[Queue] = []
        while not giving.is_over() and len(aside) < _ASIDE_MAX:
            queue = self._matching.choose(selector)
            if queue is None:
                break
            if not giving.take(queue):
                selector.withdraw()
                aside.append(queue)
        # Clients of this node may get no more of these at present; those of the other node may.
        for name in list(islice(selector.held, _ASIDE_MAX)):
            held = self._queues.get(name)
            while held is not None and not giving.is_over() and giving.take(held):
                pass
            if held is None or held.jobs.size == 0:
                del selector.held[name]
        for queue in aside:
            self._matching.offer(queue)
        self.federation.send(giving.parcel)

    def _selector(self, words: list[bytes]) -> Selector | None:
        """The selector that another node asks with; ``None`` if it makes no sense."""
        patterns, excepts = globs(words)
        try:
            return self._matching.obtain(patterns, excepts)
        except CommandError:
            return None

    def take_one(self, parcel: Parcel, queue: Queue) -> bool:
        """Put the next job of a queue into a parcel; ``False`` if there is none."""
        if not self.federation.pack(parcel, queue):
            return False
        self._matching.note_served(queue)
        return True


class _Answering(SlicedTask):
    """Answers requests that had to wait."""

    __slots__ = ("_pattern_demand",)

    def __init__(self, pattern_demand: PatternDemand) -> None:
        self._pattern_demand: PatternDemand = pattern_demand

    def step(self, now_ms: i64) -> bool:
        return self._pattern_demand.give_waiting()


class _Giving:
    """What one request gets. Of each queue, half of what was there at its beginning."""

    __slots__ = ("_pattern_demand", "_count", "_left", "parcel")

    def __init__(self, pattern_demand: PatternDemand, receiver: NodeEntry, count: i64) -> None:
        self._pattern_demand = pattern_demand
        self._count: i64 = count
        self._left: dict[bytes, int] = {}
        self.parcel = Parcel(receiver)

    def is_over(self) -> bool:
        """Whether it is enough."""
        return len(self.parcel.jobs) >= self._count or self.parcel.size >= BYTES_MAX

    def take(self, queue: Queue) -> bool:
        """Take one job of the queue; ``False`` if it has none, or gives no more."""
        if (
            queue.jobs.size == 0
            or queue.paused & PAUSE_OUT
            or queue.import_rate(self._pattern_demand.turn.now_ms) > 0
        ):
            return False
        left = self._left.get(queue.name)
        if left is None:
            left = max(1, queue.jobs.size // 2)
        if left == 0:
            return False
        self._left[queue.name] = left - 1
        return self._pattern_demand.take_one(self.parcel, queue)


class _ByName(SlicedTask):
    """Asks nodes that know no patterns for the queues that are known here."""

    __slots__ = ("_asked", "_pattern_demand", "_cursor", "_nodes", "_selector")

    def __init__(
        self, pattern_demand: PatternDemand, selector: Selector, nodes: list[bytes]
    ) -> None:
        self._pattern_demand: PatternDemand = pattern_demand
        self._selector: Selector = selector
        self._nodes: list[bytes] = nodes
        self._cursor: int = 0
        self._asked: int = 0

    def step(self, now_ms: i64) -> bool:
        if self._selector.dropped or not self._selector.clients:
            return True
        self._cursor, asked = self._pattern_demand.some_by_name(
            self._selector, self._nodes, self._cursor
        )
        self._asked += asked
        return self._cursor == 0 or self._asked >= _NAMES_MAX
