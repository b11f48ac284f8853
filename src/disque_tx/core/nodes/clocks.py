"""Wall clocks: which nodes have one that differs from those of most others.

Every PING and PONG of ours says what the clock of its sender shows (cluster protocol, section
21.1). What a clock says is one opinion: no node knows the true time.

1. The clock of a node is apart if it differs by more than :data:`APART_MS` from the median of those
   that are known, this one among them. Where the median lies between two clocks, the nearer counts:
   so of two nodes with different clocks neither is apart, for nobody knows which one is right.
2. A PONG counts if its PING was sent less than a second before: one that waited says how late it
   was. Clocks of nodes that have been silent for too long, or that fail, do not count.
3. What is remembered is the difference from the steady clock. So when the wall clock of this node
   is set, this node knows at once that it is apart.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.nodes.failure import failing
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.nodes import HANDSHAKE, MYSELF, NodeEntry

#: How far a clock may be from most others.
APART_MS: Final = 5_000
#: For other nodes it is less, so that a node which finds itself apart is so for all of them.
_OTHERS_APART_MS: Final = 4_000
_ROUND_TRIP_MS_MAX: Final = 1_000
#: How often the clocks are compared.
_LOOK_MS: Final = 1_000
_KNOWN_MS: Final = 120_000
#: Times beyond that are no times.
_TIME_END: Final = 1 << 53


class Clocks:
    """What this node knows of the clocks, as of the last :meth:`look`. ``ahead_ms``: by how much
    its own is ahead of most others, less than zero if it is behind, 0 if it is not apart.
    ``apart``: IDs of the other nodes whose clocks are. ``confirmed``: another node has about the
    same time, and most do not contradict."""

    __slots__ = ("_looked_ms", "_membership", "_unix_ms", "ahead_ms", "apart", "confirmed")

    def __init__(self, membership: Membership) -> None:
        self.ahead_ms: i64 = 0
        self.apart: set[bytes] = set()
        self.confirmed: bool = False
        self._membership: Membership = membership
        self._looked_ms: i64 = -1
        # What the own clock showed then, when the steady one was zero.
        self._unix_ms: i64 = 0

    @property
    def count(self) -> i64:
        """How many nodes have clocks that are apart, this one among them."""
        return len(self.apart) + (1 if self.ahead_ms else 0)

    def update(self, now_ms: i64) -> None:
        """Compare the clocks, unless that was done a moment ago."""
        moved_ms = self._membership.unix_ms - self._unix_ms
        recent = self._looked_ms >= 0 and now_ms - self._looked_ms < _LOOK_MS
        if not (recent and -_LOOK_MS < moved_ms < _LOOK_MS):
            self._looked_ms = now_ms
            self._unix_ms = self._membership.unix_ms
            self._compare(now_ms)

    def _compare(self, now_ms: i64) -> None:
        nodes = [one for one in self._membership.nodes.values() if is_known(one, now_ms)]
        offsets = [int(one.clock_ms - self._unix_ms) for one in nodes]
        own: i64 = 0
        ordered = sorted([*offsets, int(own)])
        low_ms = i64(ordered[(len(ordered) - 1) // 2])
        high_ms = i64(ordered[len(ordered) // 2])
        self.ahead_ms = 0
        if low_ms > APART_MS:
            self.ahead_ms = -low_ms
        elif high_ms < -APART_MS:
            self.ahead_ms = -high_ms
        self.apart = set()
        self.confirmed = False
        for one, offset in zip(nodes, offsets, strict=True):
            offset_ms = i64(offset)
            if offset_ms - high_ms > _OTHERS_APART_MS or low_ms - offset_ms > _OTHERS_APART_MS:
                self.apart.add(one.id)
            if -APART_MS <= offset_ms <= APART_MS and self.ahead_ms == 0:
                self.confirmed = True


def record(entry: NodeEntry, clock_ms: i64, now_ms: i64) -> None:
    """A PONG of the node says what its clock shows, in unix milliseconds; 0 for nothing. To be
    called before the PING that it answers is forgotten."""
    if not 0 < clock_ms < _TIME_END or entry.ping_sent_ms == 0:
        return
    if now_ms - entry.ping_sent_ms <= _ROUND_TRIP_MS_MAX:
        entry.clock_ms = clock_ms - now_ms
        entry.clock_seen_ms = now_ms


def is_known(entry: NodeEntry, now_ms: i64) -> bool:
    """Whether the node's clock is known."""
    if entry.clock_seen_ms == 0 or entry.flags & (MYSELF | HANDSHAKE) or failing(entry):
        return False
    return now_ms - entry.clock_seen_ms <= _KNOWN_MS
