"""The history of a node: what happened in its busy queues, and in all of them, over 14 days.

1. Nothing is done per job but counting (``flows``). Every ten seconds of the wall clock, so that
   the steps of all nodes are the same, the counts of the busy queues are taken, some per turn.
2. A queue is busy from the first event until a sample that finds no event, no job queued and none
   in flight. An idle queue costs nothing.
3. Of more than :data:`~disque_tx.core.statistics.flows.FLOWS_MAX` busy queues, the less busy half
   gives way to those that come next.
4. The records take :data:`BYTES_MAX` at most, and the flows less than another 1.25 MiB. What is
   too much is forgotten by queue: those with the fewest events first, of which the ones of each
   day count half as much as those of the day after.
"""

from __future__ import annotations

from array import array
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Part, Turn
from disque_tx.core.base.totals import Totals
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.jobs.tallies import Tallies
from disque_tx.core.lookup.namedtable import NamedTable
from disque_tx.core.queues.queues import Queues
from disque_tx.core.statistics.flows import FLOWS_MAX, Flow, Flows
from disque_tx.core.statistics.rings import COUNTS, STEPS_S, Record

#: Bytes of all records together; when there are more, they are reduced to seven eighths of that.
BYTES_MAX: Final = 2_816 * 1024
_KEPT_BYTES: Final = BYTES_MAX // 8 * 7
_NO_SLOT: Final = -1
#: One record as it is stored: name, weight, and the words of its rings.
Stored = tuple[bytes, int, list["array[int]"]]


class History(Part):
    """``node``: of all queues. ``records``: by queue. ``size``: bytes that these take.
    ``unsaved``: something was added since it was saved."""

    def __init__(
        self,
        turn: Turn,
        flows: Flows,
        queues: Queues,
        tallies: Tallies,
        totals: Totals,
        memory: Memory,
    ) -> None:
        self.node: Record = Record(b"")
        self.records: NamedTable[Record] = NamedTable()
        self.size: int = 0
        self.unsaved: bool = False
        self._turn = turn
        self._flows = flows
        self._queues = queues
        self._tallies = tallies
        self._memory = memory
        self._totals = totals
        self._slot: i64 = _NO_SLOT
        self._ended: i64 = 0
        self._pending: list[Flow] = []
        # Of the node, at the end of the step: what happened, as far as it has been added up, and
        # its levels.
        self._summing = False
        self._sums: list[int] = []
        self._levels: list[int] = []
        # While there are too many busy queues: those sampled so far, and their events.
        self._crowded = False
        self._seen: list[Flow] = []
        self._events: list[int] = []
        self._cursor = 0

    @property
    def active(self) -> bool:
        """Whether there is a history."""
        return self._flows.active

    def set_active(self, wanted: bool) -> None:
        """Keep a history, or none: then what is there is forgotten."""
        self._flows.active = wanted
        if not wanted:
            self._flows.clear()
            self._pending.clear()
            self._summing = False
            self._forget_ranks()
            self.records.clear()
            self.size = 0
            self.node = Record(b"")
            self._slot = _NO_SLOT
            self.unsaved = True

    def forget_all(self) -> None:
        """The jobs are forgotten; their history is not."""

    # -- samples -----------------------------------------------------------------------------

    def sample(self, limit: i64) -> None:
        """Take the samples that are due, of ``limit`` queues at most; the others are due at the
        next call."""
        if not self._flows.active:
            return
        slot = self._turn.wall_us // 1_000_000 // STEPS_S[0]
        if self._slot == _NO_SLOT:
            self._slot = slot
        if not self._pending and slot != self._slot:
            self._begin(slot)
        for _ in range(min(limit, len(self._pending))):
            self._take(self._pending.pop())
        if self._summing and not self._pending:
            self._sampled()
        self._sweep()

    def _begin(self, slot: i64) -> None:
        """A step has ended."""
        self._ended, self._slot = self._slot, slot
        self._pending = list(self._flows.table.values())
        self._crowded = len(self._pending) >= FLOWS_MAX
        oldest_ms = max(0, int(self._queues.longest_wait_ms(self._turn.now_ms)))
        queued, in_flight = int(self._totals.queued), int(self._totals.in_flight)
        levels = [queued, in_flight, oldest_ms, int(self._memory.used)]
        self._levels = levels
        self._sums = self._flows.others.take()
        self._summing = True
        self.unsaved = True

    def _add(self, counts: list[int]) -> None:
        """Count what happened in one queue for the node."""
        sums = self._sums
        if len(sums) < len(counts):
            sums += [0] * (len(counts) - len(sums))
        for place, count in enumerate(counts):
            sums[place] += count

    def _sampled(self) -> None:
        """All queues were sampled."""
        self._summing = False
        self.node.put(self._ended, self._sums, self._levels)
        if self._crowded:
            self._give_way()

    def _take(self, flow: Flow) -> None:
        name, counts = flow.data, flow.take()
        queued: i64 = 0
        in_flight: i64 = 0
        oldest_ms: i64 = 0
        queue = self._queues.get(name)
        if queue is not None:
            queued = queue.jobs.size
            first = queue.jobs.first()
            if first is not None:
                oldest_ms = max(0, self._turn.now_ms - first.moved_ms)
        tally = self._tallies.get(name)
        if tally is not None:
            in_flight = tally.in_flight
        events = sum(counts[:COUNTS])
        if events:
            self._add(counts)
        record = self.records.get(name)
        if record is None:
            record = Record(name)
            self.records.put(record)
        else:
            self.size -= record.size()
        record.put(self._ended, counts, [int(queued), int(in_flight), int(oldest_ms), 0])
        self.size += record.size()
        if self.size > BYTES_MAX:
            self._shrink()
        if events == 0 and queued == 0 and in_flight == 0:
            self._flows.discard(flow)
        elif self._crowded:
            self._seen.append(flow)
            self._events.append(events)

    def _give_way(self) -> None:
        """There were too many busy queues: count the less busy half no longer."""
        order = sorted([(events, place) for place, events in enumerate(self._events)])
        for _events, place in order[: len(order) // 2]:
            self._flows.discard(self._seen[place])
        self._forget_ranks()

    def _forget_ranks(self) -> None:
        self._crowded = False
        self._seen.clear()
        self._events.clear()

    def _shrink(self) -> None:
        """Forget the records of the least busy queues."""
        records = list(self.records.values())
        for record in records:
            record.age(self._ended)
        order = sorted([(record.weight, place) for place, record in enumerate(records)])
        for _weight, place in order:
            if self.size <= _KEPT_BYTES:
                return
            self.size -= records[place].size()
            self.records.remove(records[place])

    def _sweep(self) -> None:
        """Forget what is too old, a few records per call."""
        if self.records.count == 0:
            return
        self._cursor, some = self.records.scan(self._cursor)
        for record in some:
            self.size -= record.size()
            record.trim(self._ended)
            if record.is_empty():
                self.records.remove(record)
            else:
                self.size += record.size()

    # -- for readers and the file ------------------------------------------------------------

    def between(self, name: bytes | None, step: i64, first: i64, last: i64) -> list[list[int]]:
        """The points of a queue, or of all queues for ``None``: see ``Ring.between``."""
        record = self.node if name is None else self.records.get(name)
        return [] if record is None else record.rings[step].between(first, last)

    def usual_wait_ms(self, name: bytes) -> int:
        """See :meth:`Record.usual_wait_ms`."""
        record = self.records.get(name)
        return -1 if record is None else record.usual_wait_ms(self._slot)

    def stored(self) -> list[Stored]:
        """A copy of all records, that of the node first."""
        self.unsaved = False
        return [_stored(self.node), *[_stored(record) for record in self.records.values()]]

    def load(self, rows: list[Stored]) -> None:
        """Go on with stored records, that of the node first."""
        if not self._flows.active:
            return
        self.records.clear()
        self.size = 0
        for place, (name, weight, rings) in enumerate(rows):
            record = Record(name)
            record.weight = weight
            for ring, points in zip(record.rings, rings, strict=True):
                ring.points = points
                ring.resume()
            if place == 0:
                self.node = record
            elif self.records.get(name) is None:
                self.records.put(record)
                self.size += record.size()
        if self.size > BYTES_MAX:
            self._shrink()


def _stored(record: Record) -> Stored:
    return record.data, record.weight, [ring.points[:] for ring in record.rings]
