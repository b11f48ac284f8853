"""What happens to the jobs of each queue, counted since the last sample of the history.

The queues are those that were busy lately, and no more than :data:`FLOWS_MAX`; the others are
counted together.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.lookup.namedtable import NamedTable
from disque_tx.core.statistics.waits import Histogram
from disque_tx.messages.limits import QUEUE_BYTES_MAX
from disque_tx.messages.records import Keyed

#: Queues that are counted at the same time; each takes less than a kilobyte.
FLOWS_MAX: Final = 1_000
#: Longer than any name of a queue, so no queue has it.
_NO_QUEUE: Final = b"-" * (QUEUE_BYTES_MAX + 1)


class Flow(Keyed):
    """``added``: by clients and schedules of this node. ``delivered``: to clients of this node.
    ``acked``: by them. ``failed``: deliveries from which a job came back, by NACK or because RETRY
    passed without an acknowledgement. ``waits``: from queueing to delivery."""

    __slots__ = ("acked", "added", "delivered", "failed", "waits")

    def __init__(self, name: bytes) -> None:
        super().__init__(name)
        self.waits: Histogram = Histogram()
        self.added: i64 = 0
        self.delivered: i64 = 0
        self.acked: i64 = 0
        self.failed: i64 = 0

    def take(self) -> list[int]:
        """The four counts, in this order, which begin again from zero; and behind them those of the
        waits."""
        counts = [int(self.added), int(self.delivered), int(self.acked), int(self.failed)]
        self.added = self.delivered = self.acked = self.failed = 0
        if counts[1] == 0:
            return counts
        counts += self.waits.counts()
        self.waits.clear()
        return counts


class Flows:
    """``active``: whether anything is counted. ``table``: of queues, by name; ``others``: of all
    that are too many for that."""

    def __init__(self) -> None:
        self.active: bool = True
        self.others: Flow = Flow(_NO_QUEUE)
        self.table: NamedTable[Flow] = NamedTable()
        # The one found last: much of what happens to a job happens in a row, and jobs of one queue
        # share the object of its name.
        self._name: bytes | None = None
        self._last: Flow = self.others

    def added(self, name: bytes) -> None:
        """A job was added."""
        if self.active:
            flow = self._of(name)
            flow.added += 1

    def delivered(self, name: bytes, waited_ms: i64) -> None:
        """A job went to a client."""
        if self.active:
            flow = self._of(name)
            flow.delivered += 1
            flow.waits.add(waited_ms)

    def acked(self, name: bytes) -> None:
        """A job was acknowledged by a client."""
        if self.active:
            flow = self._of(name)
            flow.acked += 1

    def failed(self, name: bytes) -> None:
        """A delivery failed."""
        if self.active:
            flow = self._of(name)
            flow.failed += 1

    def _of(self, name: bytes) -> Flow:
        last = self._last
        if name is self._name or last.data == name:
            return last
        flow = self.table.get(name)
        if flow is None:
            if self.table.count >= FLOWS_MAX:
                return self.others
            flow = Flow(name)
            self.table.put(flow)
        self._name, self._last = name, flow
        return flow

    def discard(self, flow: Flow) -> None:
        """Count a queue no longer, until something happens in it again."""
        self._name, self._last = None, self.others
        self.table.remove(flow)

    def clear(self) -> None:
        """Forget everything."""
        self._name, self._last = None, self.others
        self.table.clear()
        self.others.take()
