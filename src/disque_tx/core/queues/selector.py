"""A selector: the queues that a GETJOB with MATCH and EXCEPT takes jobs from, and their order.

1. Requests with the same patterns share one selector, and so does whoever is blocked with them.
2. Of the queues with jobs the one with the fewest jobs in flight comes first, then the one that was
   served longest ago, then the one that has had jobs for longest.
3. The order is a heap that is corrected when its top is looked at. A queue only gets worse places
   by being served, so the key in the heap may be too low, and then the top is replaced. What gives
   a queue a better place (a job in flight ends) is entered at once.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import Client
from disque_tx.core.policies.patterns import literal_prefix
from disque_tx.core.queues.demand import QueueDemand
from disque_tx.core.queues.standing import PeerDemand, StandingDemand
from disque_tx.messages.records import Linked
from disque_tx.text.globs import Glob

#: Names of fewer bytes cost nothing that counts.
_SHORT: Final = 32
#: Outdated entries that a heap may hold besides as many as there are valid ones.
_OUTDATED_MAX: Final = 64

#: Jobs in flight, when the queue was served, a number that no other entry has, name.
_Entry = tuple[int, int, int, bytes]


class Selector(Linked):
    """``patterns``, ``excepts``: globs. ``clients``: those blocked, in the order in which they
    came; ``passing``: those of them that only wait until all queues were looked at. ``filled``:
    all queues were looked at; ``filling``: that is under way. ``ready``: stands among those whose
    clients are about to be served. ``held``: names of queues with jobs that no client may get at
    present, by their policy; some of them may be outdated.
    ``dropped``: not in use any more. ``used_ms``: when it was last in use. ``imports``: what is
    asked of other nodes, ``None`` before anything was. ``standing``: what other nodes were told
    that this one can use, ``None`` while that is nothing; ``demand_noted``: stands in the list of
    selectors of which they may have to be told; ``refused``: queues whose jobs came and must not be
    delivered, ``refused_told``: those that other nodes know. ``wanted``: what other nodes can
    use, ``None`` while that is nothing. ``alone``: the list of this selector.
    """

    __slots__ = (
        "_entries",
        "_except_globs",
        "_globs",
        "_heap",
        "_made",
        "alone",
        "clients",
        "demand_noted",
        "dropped",
        "excepts",
        "filled",
        "filling",
        "held",
        "imports",
        "number",
        "passing",
        "patterns",
        "ready",
        "refused",
        "refused_told",
        "standing",
        "used_ms",
        "wanted",
    )

    def __init__(
        self, number: i64, patterns: tuple[bytes, ...], excepts: tuple[bytes, ...]
    ) -> None:
        super().__init__()
        self.number: i64 = number
        self.patterns: tuple[bytes, ...] = patterns
        self.excepts: tuple[bytes, ...] = excepts
        self.clients: OrderedDict[Client, None] = OrderedDict()
        self.passing: dict[Client, None] = {}
        self.filled: bool = False
        self.filling: bool = False
        self.ready: bool = False
        self.dropped: bool = False
        self.used_ms: i64 = 0
        self.imports: QueueDemand | None = None
        self.standing: StandingDemand | None = None
        self.demand_noted: bool = False
        self.refused: dict[bytes, None] = {}
        self.refused_told: list[bytes] = []
        self.wanted: PeerDemand | None = None
        self.held: OrderedDict[bytes, None] = OrderedDict()
        self.alone: list[Selector] = [self]
        self._globs: list[Glob] = [Glob(pattern) for pattern in patterns]
        self._except_globs: list[Glob] = [Glob(pattern) for pattern in excepts]
        self._made: i64 = 0
        self._heap: list[_Entry] = []
        # Name → its valid entry in the heap.
        self._entries: dict[bytes, _Entry] = {}

    def prefixes(self) -> set[bytes]:
        """What matching names begin with, a prefix per pattern."""
        return {literal_prefix(pattern) for pattern in self.patterns}

    def matches(self, name: bytes) -> bool:
        """Whether a queue of this name is one of them."""
        return _any(self._globs, name) and not _any(self._except_globs, name)

    def price(self, name: bytes) -> i64:
        """What :meth:`matches` takes at the most, in names looked at."""
        size: i64 = len(name)
        if size < _SHORT:
            return 1
        found: i64 = 0
        for glob in self._globs:
            found += glob.price(size)
        for glob in self._except_globs:
            found += glob.price(size)
        return found

    # -- the order ---------------------------------------------------------------------------

    def offer(self, name: bytes, in_flight: i64, served: i64) -> None:
        """A queue that matches has jobs, or fewer of them in flight. ``served``: grows with every
        queue that is served; 0 for one that never was."""
        entry = self._entries.get(name)
        if entry is not None:
            had_in_flight, had_served = i64(entry[0]), i64(entry[1])
            if had_in_flight < in_flight or (had_in_flight == in_flight and had_served <= served):
                return
        self._enter(name, in_flight, served)

    def first(self) -> bytes | None:
        """The name of the queue that comes first, as far as the heap knows."""
        heap = self._heap
        while heap:
            entry = heap[0]
            valid = self._entries.get(entry[3])
            # Not by identity, which a tuple does not have where this is compiled.
            if valid is not None and valid[2] == entry[2]:
                return entry[3]
            heappop(heap)
        return None

    def confirm(self, in_flight: i64, served: i64) -> bool:
        """Whether these are the numbers of the first queue; otherwise it gets its place by
        them."""
        entry = self._heap[0]
        if entry[0] == in_flight and entry[1] == served:
            return True
        heappop(self._heap)
        self._enter(entry[3], in_flight, served)
        return False

    def withdraw(self) -> None:
        """The first queue has no jobs that could be delivered now."""
        del self._entries[heappop(self._heap)[3]]

    def _enter(self, name: bytes, in_flight: i64, served: i64) -> None:
        self._made += 1
        entry = (int(in_flight), int(served), int(self._made), name)
        self._entries[name] = entry
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._entries) + _OUTDATED_MAX:
            self._heap = list(self._entries.values())
            heapify(self._heap)

    def forget(self) -> None:
        """All queues are gone."""
        self._heap = []
        self._entries = {}
        self.held = OrderedDict()


def _any(globs: list[Glob], name: bytes) -> bool:
    for glob in globs:  # noqa: SIM110 (a generator is slower where this is compiled)
        if glob.matches(name):
            return True
    return False
