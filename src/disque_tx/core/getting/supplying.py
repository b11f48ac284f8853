"""Jobs go to nodes that have announced a use for them (cluster protocol, section 21.8).

1. What nodes have told is kept by the link on which it came, and forgotten with it.
2. At the end of a turn, queues that have jobs give them: after the clients of this node, first to
   the node whose client has waited for longest, then to nodes that can use more than that.
3. A queue of which clients of this node take jobs, too, gives no more than clients wait for.
4. All jobs for one node leave in one message a turn, of a bounded size; the rest follows.
5. A node that answers no PING gets nothing meanwhile: its jobs would wait for their RETRY.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import NEVER_MS, Part
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.getting.demanding import LINGER_MS, Demanding
from disque_tx.core.getting.federation import BYTES_MAX, Federation, Parcel
from disque_tx.core.getting.patternsupply import PatternSupply
from disque_tx.core.nodes.duplicateids import is_replaced
from disque_tx.core.nodes.links import LinkWatcher
from disque_tx.core.queues.queues import PAUSE_OUT, Queue
from disque_tx.core.queues.selector import Selector
from disque_tx.core.queues.standing import Credit, PeerDemand
from disque_tx.core.state.state import State
from disque_tx.messages.demands import DEMANDED, MORE, QUEUE, RESET, RETURNED, DemandMessage
from disque_tx.messages.limits import QUEUE_BYTES_MAX
from disque_tx.messages.nodes import Link, NodeEntry

#: Jobs that one node gets in one turn.
JOBS_PER_TURN: Final = 1_000
#: Queues of which one node may demand jobs, and bytes of their names.
QUEUES_MAX: Final = 20_000
NAMES_BYTES_MAX: Final = 4 * 1024 * 1024
#: A PING that was not answered for so long shows that a node hangs.
SILENT_MS: Final = 1_000
#: More jobs than any node may use of one queue.
_CREDIT_MAX: Final = 10_000


def is_silent(entry: NodeEntry, now_ms: i64) -> bool:
    """Whether a node has not answered a PING for so long that it may hang."""
    return entry.ping_sent_ms != 0 and now_ms - entry.ping_sent_ms > SILENT_MS


class PeerRecord:
    """What one node has told on ``link``: ``names`` of queues of which it can use jobs, ``size``
    bytes together."""

    __slots__ = ("link", "names", "size")

    def __init__(self, link: Link) -> None:
        self.link: Link = link
        self.names: dict[bytes, None] = {}
        self.size: i64 = 0


class Supplying(Part, LinkWatcher):
    """Takes DEMAND, and gives jobs."""

    def __init__(
        self, state: State, delivery: Delivery, federation: Federation, demanding: Demanding
    ) -> None:
        self._turn = state.turn
        self._peers = state.peers
        self._queues = state.queues
        self._waiters = state.waiters
        self._totals = state.totals
        self._delivery = delivery
        self._federation = federation
        self._demanding = demanding
        self._patterns = PatternSupply(state)
        self._matching = state.matching
        self._records: dict[bytes, PeerRecord] = {}
        self._parcels: dict[bytes, Parcel] = {}
        # Those whose jobs a silent node could use.
        self._deferred: dict[Queue, None] = {}
        self._deferred_patterns: dict[Selector, None] = {}

    # -- what nodes have told ------------------------------------------------------------------

    def receive(self, sender: NodeEntry, link: Link, message: DemandMessage) -> None:
        """DEMAND: what a node can use from now on; nothing, if it has made another link since."""
        if is_replaced(sender, link):
            return
        record = self._records.get(sender.id)
        if record is None or record.link is not link or message.mflags & RESET:
            self._forget(sender.id)
            record = self._records[sender.id] = PeerRecord(link)
        for entry in message.entries:
            word = entry.words[0] if entry.words else b""
            if word[:1] != QUEUE:
                self._patterns.receive(sender.id, entry)
                continue
            if len(entry.words) > 1 or len(word) > QUEUE_BYTES_MAX + 1:
                continue
            name = word[1:]
            if entry.credit == 0:
                self._end(sender.id, record, name)
                continue
            credit = self._credit(sender.id, record, name)
            if credit is not None:
                credit.credit = min(entry.credit, _CREDIT_MAX)
                credit.waiting = min(entry.waiting, credit.credit)
                credit.since_ms = self._turn.now_ms - entry.age_ms
                credit.told_ms = self._turn.now_ms
                queue = self._queues.get(name)
                if queue is not None and queue.jobs.size > 0:
                    self._waiters.note_ready(queue)

    def _credit(self, node_id: bytes, record: PeerRecord, name: bytes) -> Credit | None:
        """What a node can use of a queue, entered if need be; ``None`` if that is too much."""
        peers = self._queues.wanted.get(name)
        if peers is None:
            peers = PeerDemand()
        credit = peers.credits.get(node_id)
        if credit is not None:
            return credit
        if len(record.names) >= QUEUES_MAX or record.size + len(name) > NAMES_BYTES_MAX:
            return None
        record.names[name] = None
        record.size += len(name)
        credit = peers.credits[node_id] = Credit(node_id)
        self._queues.wanted[name] = peers
        queue = self._queues.get(name)
        if queue is not None:
            queue.wanted = peers
        return credit

    def _end(self, node_id: bytes, record: PeerRecord, name: bytes) -> None:
        if name in record.names:
            del record.names[name]
            record.size -= len(name)
            self._drop(node_id, name)

    def _drop(self, node_id: bytes, name: bytes) -> None:
        """A node can use no jobs of a queue any more."""
        peers = self._queues.wanted.get(name)
        if peers is None:
            return
        peers.credits.pop(node_id, None)
        if not peers.credits:
            del self._queues.wanted[name]
            queue = self._queues.get(name)
            if queue is not None:
                queue.wanted = None

    def _forget(self, node_id: bytes) -> None:
        """What a node has told does not hold any more."""
        self._patterns.forget(node_id)
        record = self._records.pop(node_id, None)
        if record is None:
            return
        for name in record.names:
            self._drop(node_id, name)

    def links_changed(self) -> None:
        """Try again to give to nodes that were silent. Jobs that wait for a link to a node are
        given when the node tells once more."""
        queues, self._deferred = self._deferred, {}
        for queue in queues:
            self._waiters.note_ready(queue)
        selectors, self._deferred_patterns = self._deferred_patterns, {}
        for selector in selectors:
            self._waiters.note_wanted(selector)

    def link_lost(self, link: Link) -> None:
        record = self._records.get(link.peer_id)
        if record is not None and record.link is link:
            self._forget(link.peer_id)

    # -- giving ------------------------------------------------------------------------------

    def has_news(self) -> bool:
        """Whether :meth:`finish` has anything to do."""
        waiters = self._waiters
        if waiters.wanted or waiters.wanted_patterns:
            return True
        return bool(self._demanding.returns)

    def finish(self) -> None:
        """The turn ends: give jobs."""
        if not self.has_news():
            return
        wanted, self._waiters.wanted = self._waiters.wanted, []
        for queue in wanted:
            peers = queue.wanted
            if peers is not None:
                peers.ready = False
                self._give(queue, peers)
        patterns, self._waiters.wanted_patterns = self._waiters.wanted_patterns, []
        for selector in patterns:
            if selector.wanted is not None:
                selector.wanted.ready = False
                self._give_matching(selector, selector.wanted)
        returns, self._demanding.returns = self._demanding.returns, []
        for queue in returns:
            self._give_back(queue)
        parcels, self._parcels = self._parcels, {}
        for parcel in parcels.values():
            self._federation.send(parcel)

    def _give(self, queue: Queue, peers: PeerDemand) -> None:
        """Give jobs of one queue to the nodes that can use them."""
        if queue.paused & PAUSE_OUT:
            return
        unreachable: list[bytes] = []
        used = self._is_used_here(queue)
        while queue.jobs.size > 0:
            credit = peers.longest_waiting(unreachable, self._turn.now_ms)
            number: i64 = 0
            if credit is not None:
                number = credit.waiting
            elif not used:
                credit = peers.largest(unreachable, self._turn.now_ms)
                if credit is not None:
                    others: i64 = len(peers.credits) - len(unreachable)
                    number = min(credit.credit, (queue.jobs.size + others - 1) // others)
            if credit is None:
                return
            parcel = self._parcel(credit.node_id)
            if parcel is None or parcel.mflags & RETURNED:
                unreachable.append(credit.node_id)
                self._deferred[queue] = None
                continue
            given = self._pack(parcel, queue, number)
            credit.given(given)
            if queue.jobs.size > 0:
                parcel.mflags |= MORE
                if given < number:
                    unreachable.append(credit.node_id)
                    self._again(queue, peers)

    def _give_matching(self, selector: Selector, peers: PeerDemand) -> None:
        """Give jobs of queues that match to the nodes whose clients wait for them."""
        unreachable: list[bytes] = []
        while True:
            credit = peers.longest_waiting(unreachable, self._turn.now_ms)
            if credit is None:
                return
            unreachable.append(credit.node_id)
            parcel = self._parcel(credit.node_id)
            if parcel is None:
                self._deferred_patterns[selector] = None
                continue
            passed_over: list[Queue] = []
            while credit.waiting > 0:
                queue = self._patterns.choose(selector, credit, passed_over)
                if queue is None:
                    break
                if self._is_full(parcel):
                    self._waiters.note_wanted(selector)
                    break
                credit.given(self._pack(parcel, queue, 1))
                if queue.jobs.size > 0:
                    parcel.mflags |= MORE
            for queue in passed_over:
                self._matching.offer(queue)

    def _is_full(self, parcel: Parcel) -> bool:
        return len(parcel.jobs) >= JOBS_PER_TURN or parcel.size >= BYTES_MAX

    def _is_used_here(self, queue: Queue) -> bool:
        """Whether clients of this node take jobs of the queue."""
        if queue.waiters or queue.standing is not None:
            return True
        return self._turn.now_ms - queue.fetched_ms < LINGER_MS

    def _again(self, queue: Queue, peers: PeerDemand) -> None:
        """A message is full: go on in the next turn."""
        if not peers.ready:
            peers.ready = True
            self._waiters.wanted.append(queue)

    def _parcel(self, node_id: bytes) -> Parcel | None:
        """What a node gets in this turn; ``None`` if it cannot be reached."""
        parcel = self._parcels.get(node_id)
        if parcel is None:
            entry = self._peers.entry(node_id)
            if entry is None or entry.link is None or is_silent(entry, self._turn.now_ms):
                return None
            parcel = self._parcels[node_id] = Parcel(entry)
            parcel.mflags = DEMANDED
        return parcel

    def _pack(self, parcel: Parcel, queue: Queue, number: i64) -> i64:
        """Put up to ``number`` jobs of a queue into a parcel; how many there were."""
        fetched_ms = queue.fetched_ms
        given: i64 = 0
        while given < number and not self._is_full(parcel):
            if not self._federation.pack(parcel, queue):
                break
            given += 1
        queue.fetched_ms = fetched_ms
        emptied = self._delivery.emptied
        if emptied and emptied[-1] is queue:
            emptied.pop()  # no client of this node found it empty
        return given

    def _give_back(self, queue: Queue) -> None:
        """Send jobs for which no client waits to where they came from."""
        standing = queue.standing
        if standing is None or queue.waiters:
            return
        self._demanding.end(queue)
        if queue.paused & PAUSE_OUT:
            return
        entry = self._peers.entry(standing.giver)
        if entry is None or entry.link is None or standing.giver in self._parcels:
            return
        parcel = self._parcels[standing.giver] = Parcel(entry)
        parcel.mflags = RETURNED
        self._totals.returned += self._pack(parcel, queue, standing.surplus)

    def next_due_ms(self) -> i64:
        return self._turn.now_ms if self.has_news() else NEVER_MS

    def forget_all(self) -> None:
        """All queues are about to be forgotten: those made later are wanted as before."""
        self._waiters.wanted.clear()
        self._deferred.clear()
        self._deferred_patterns.clear()
        for peers in self._queues.wanted.values():
            peers.ready = False
        for selector in self._waiters.wanted_patterns:
            if selector.wanted is not None:
                selector.wanted.ready = False
        self._waiters.wanted_patterns.clear()
