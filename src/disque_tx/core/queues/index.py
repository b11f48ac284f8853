"""Which selectors a queue belongs to, and which queue a selector takes the next job from.

1. A queue finds its selectors by the literal prefixes of their patterns, one look-up per length in
   use, and remembers them until there is one more or one less.
2. A new selector looks at all queues once, a part per turn; from its beginning on it is told of
   every queue that gets jobs. So no request walks over queues that were looked at before.
3. A selector without clients is kept for a minute, since most requests come again; but not many.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.bounds import check_glob
from disque_tx.core.base.client import Client
from disque_tx.core.base.part import Turn
from disque_tx.core.jobs.tallies import Tallies
from disque_tx.core.queues.limits import Limits
from disque_tx.core.queues.queues import PAUSE_OUT, Queue, Queues
from disque_tx.core.queues.selector import Selector
from disque_tx.core.queues.standing import PeerDemand
from disque_tx.errors import CommandError
from disque_tx.messages.tables import PATTERN_BYTES_MAX

#: Globs of one request behind MATCH, and as many with EXCEPT.
GLOBS_MAX: Final = 100
#: Different selectors in use at a time.
SELECTORS_MAX: Final = 10_000
#: Selectors that are kept without clients, and for how long.
IDLE_MAX: Final = 64
IDLE_MS: Final = 60_000


def check_globs(globs: list[bytes]) -> None:
    """Raise ``CommandError`` for patterns that no GETJOB can have."""
    _check_number(globs)
    for glob in globs:
        check_glob("Pattern", glob)


def _check_number(globs: list[bytes]) -> None:
    if len(globs) > GLOBS_MAX:
        raise CommandError("ERR", f"More than {GLOBS_MAX} patterns in one GETJOB")


def _check_foreign(globs: list[bytes]) -> None:
    """Check patterns of another node, whose version may allow longer ones."""
    _check_number(globs)
    for glob in globs:
        if len(glob) > PATTERN_BYTES_MAX:
            raise CommandError("ERR", f"Pattern longer than {PATTERN_BYTES_MAX} bytes")


class Matching:
    """The selectors in use. ``active``: there are any."""

    __slots__ = (
        "_by_key",
        "_by_number",
        "_by_prefix",
        "_idle",
        "_lengths",
        "_limits",
        "_made",
        "_none",
        "_queues",
        "_served",
        "_sorted_lengths",
        "_tallies",
        "_turn",
        "_version",
        "active",
    )

    def __init__(self, turn: Turn, queues: Queues, tallies: Tallies, limits: Limits) -> None:
        self.active: bool = False
        self._turn: Turn = turn
        self._queues: Queues = queues
        self._tallies: Tallies = tallies
        self._limits: Limits = limits
        self._by_key: dict[tuple[tuple[bytes, ...], tuple[bytes, ...]], Selector] = {}
        self._by_number: dict[int, Selector] = {}
        self._by_prefix: dict[bytes, list[Selector]] = {}
        # Length of a prefix → how many prefixes have it; and the lengths in order.
        self._lengths: dict[int, int] = {}
        self._sorted_lengths: list[int] = []
        self._idle: OrderedDict[int, Selector] = OrderedDict()
        self._made: i64 = 0
        self._version: i64 = 0
        self._served: i64 = 0
        self._none: list[Selector] = []

    def __len__(self) -> int:
        return len(self._by_key)

    # -- selectors ---------------------------------------------------------------------------

    def obtain(self, patterns: list[bytes], excepts: list[bytes]) -> Selector:
        """The selector for these globs, made if need be. Raises ``CommandError`` for globs that
        are too long or too many, and when too many selectors are in use."""
        key = (tuple(patterns), tuple(excepts))
        selector = self._by_key.get(key)
        if selector is None:
            _check_foreign(patterns)
            _check_foreign(excepts)
            if len(self._by_key) - len(self._idle) >= SELECTORS_MAX:
                raise CommandError(
                    "ERR", f"Blocked clients use {SELECTORS_MAX} different lists of patterns"
                )
            self._made += 1
            selector = Selector(self._made, key[0], key[1])
            self._by_key[key] = selector
            self._by_number[int(selector.number)] = selector
            self._index(selector)
        if not selector.clients and selector.wanted is None:
            self._rest(selector)
        return selector

    def knows(self, patterns: list[bytes], excepts: list[bytes]) -> bool:
        """Whether there is a selector for these globs."""
        return (tuple(patterns), tuple(excepts)) in self._by_key

    def of_client(self, client: Client) -> Selector:
        """The selector with which a client is blocked."""
        return self._by_number[int(client.blocked_selector)]

    def join(self, selector: Selector, client: Client) -> None:
        """The client is blocked with this selector."""
        client.blocked_selector = selector.number
        selector.clients[client] = None
        self._idle.pop(int(selector.number), None)

    def leave(self, client: Client) -> None:
        """The client is blocked no more."""
        selector = self.of_client(client)
        client.blocked_selector = 0
        selector.clients.pop(client, None)
        selector.passing.pop(client, None)
        if not selector.clients and selector.wanted is None:
            self._rest(selector)

    def want(self, selector: Selector, peers: PeerDemand | None) -> None:
        """Other nodes can use jobs of the queues that match, or, with ``None``, cannot any more."""
        selector.wanted = peers
        if peers is not None:
            self._idle.pop(int(selector.number), None)
        elif not selector.clients:
            self._rest(selector)

    def _rest(self, selector: Selector) -> None:
        """The selector has no clients: keep it for a while."""
        selector.used_ms = self._turn.now_ms
        number = int(selector.number)
        self._idle[number] = selector
        self._idle.move_to_end(number)
        if len(self._idle) > IDLE_MAX:
            self._drop(self._idle.popitem(last=False)[1])

    def next_due_ms(self) -> i64:
        """When :meth:`expire` has something to do next, -1 for never."""
        if not self._idle:
            return -1
        return next(iter(self._idle.values())).used_ms + IDLE_MS

    def expire(self) -> None:
        """Forget selectors that were not in use for long."""
        now_ms = self._turn.now_ms
        while self._idle:
            number, selector = next(iter(self._idle.items()))
            if selector.used_ms + IDLE_MS > now_ms:
                break
            del self._idle[number]
            self._drop(selector)

    def _index(self, selector: Selector) -> None:
        for prefix in selector.prefixes():
            listed = self._by_prefix.get(prefix)
            if listed is None:
                self._by_prefix[prefix] = [selector]
                length = len(prefix)
                self._lengths[length] = self._lengths.get(length, 0) + 1
            else:
                listed.append(selector)
        self._changed()

    def _drop(self, selector: Selector) -> None:
        selector.dropped = True
        del self._by_key[(selector.patterns, selector.excepts)]
        del self._by_number[int(selector.number)]
        for prefix in selector.prefixes():
            listed = self._by_prefix[prefix]
            listed.remove(selector)
            if not listed:
                del self._by_prefix[prefix]
                length = len(prefix)
                self._lengths[length] -= 1
                if not self._lengths[length]:
                    del self._lengths[length]
        self._changed()

    def _changed(self) -> None:
        self._version += 1
        self._sorted_lengths = sorted(self._lengths)
        self.active = bool(self._by_key)

    # -- queues ------------------------------------------------------------------------------

    def of(self, queue: Queue) -> list[Selector]:
        """The selectors that a queue belongs to."""
        if queue.selectors is None or queue.selectors_version != self._version:
            queue.selectors = self._matching(queue.name)
            queue.selectors_version = self._version
        return queue.selectors

    def _matching(self, name: bytes) -> list[Selector]:
        found: list[Selector] = []
        for length in self._sorted_lengths:
            if length > len(name):
                break
            for selector in self._by_prefix.get(name[:length], self._none):
                if selector not in found and selector.matches(name):
                    found.append(selector)
        if len(found) == 1:
            return found[0].alone
        return found if found else self._none

    def in_flight(self, name: bytes) -> i64:
        """How many jobs of a queue are in flight here."""
        tally = self._tallies.get(name)
        return tally.in_flight if tally is not None else 0

    def offer(self, queue: Queue) -> bool:
        """A queue has jobs that may be delivered, or fewer in flight: whether a client is blocked
        that should get one."""
        selectors = self.of(queue)
        if not selectors:
            return False
        wanted = False
        in_flight = self.in_flight(queue.name)
        for selector in selectors:
            selector.offer(queue.name, in_flight, queue.served)
            if selector.clients:
                wanted = True
        return wanted

    def choose(self, selector: Selector) -> Queue | None:
        """The queue that the next job of a selector comes from, ``None`` if no queue that was
        looked at has one that may be delivered now."""
        now_ms = self._turn.now_ms
        while True:
            name = selector.first()
            if name is None:
                return None
            queue = self._queues.get(name)
            if queue is None or not self._limits.may_deliver(queue, now_ms):
                # It is offered again when it has jobs again, or may deliver them.
                selector.withdraw()
                if queue is not None and queue.jobs.size > 0 and not queue.paused & PAUSE_OUT:
                    selector.held[name] = None
            elif selector.confirm(self.in_flight(name), queue.served):
                return queue

    def note_served(self, queue: Queue) -> None:
        """A job of this queue was delivered."""
        self._served += 1
        queue.served = self._served

    def note_giver(self, queue: Queue, giver: bytes) -> None:
        """Remember that another node gave a job of this queue."""
        now_ms = self._turn.now_ms
        for selector in self.of(queue):
            if selector.imports is not None:
                selector.imports.note(giver, now_ms)

    def forget_queues(self) -> None:
        """All queues are gone."""
        for selector in self._by_key.values():
            selector.forget()
