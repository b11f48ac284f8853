"""Which nodes no longer count as holders of copies.

1. A node that was removed from the table (CLUSTER FORGET) is lost at once, unless copies are never
   made again; one that has been in FAIL for :attr:`LostNodes.after_ms`, or that is to be forgotten,
   is lost from then on, until it is back.
2. A holder that this node has never known counts as one that has just failed: it may be a new
   node, or one that was removed while this one was down.
3. A node that leaves has its copies still, but others are to have them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Turn
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.nodes import FAIL, HANDSHAKE, LEAVING

#: For how long a node is in FAIL before its copies are made again, unless configured.
AFTER_MS: Final = 300_000
#: Removed nodes, and unknown ones, that are remembered.
_REMEMBERED_MAX: Final = 10_000

#: What a holder is.
ALIVE: Final = 0
ABOUT_TO_LEAVE: Final = 1
LOST: Final = 2


class LostNodes:
    """``after_ms``: see above, 0 for never. ``lost``, ``leaving``: node IDs, and since when.
    ``takers``: how many nodes, this one included, can be given copies. ``grown_ms``: when there
    were last more of these than before."""

    __slots__ = (
        "after_ms",
        "grown_ms",
        "leaving",
        "lost",
        "takers",
        "_given_up",
        "_known",
        "_membership",
        "_removed",
        "_turn",
        "_unknown",
    )

    def __init__(self, turn: Turn, membership: Membership) -> None:
        self.after_ms: i64 = AFTER_MS
        self.grown_ms: i64 = 0
        self.leaving: dict[bytes, int] = {}
        self.lost: dict[bytes, int] = {}
        self.takers: i64 = 1
        self._turn: Turn = turn
        self._membership: Membership = membership
        self._known: set[bytes] = set()
        self._given_up: dict[bytes, int] = {}
        self._removed: OrderedDict[bytes, int] = OrderedDict()
        #: Holders that are not in the table: when this node first saw each in a list.
        self._unknown: OrderedDict[bytes, int] = OrderedDict()

    def update(self) -> bool:
        """Look at the table again; whether anything is another than before."""
        now_ms = self._turn.now_ms
        membership = self._membership
        known: set[bytes] = set()
        lost: dict[bytes, int] = {}
        leaving: dict[bytes, int] = {}
        for entry in membership.nodes.values():
            if entry.flags & HANDSHAKE:
                continue
            known.add(entry.id)
            if entry.flags & LEAVING:
                leaving[entry.id] = self.leaving.get(entry.id, int(now_ms))
            if entry.flags & FAIL:
                if entry.failed_ms == 0:
                    entry.failed_ms = now_ms  # so the nodes file said; it may be about to return
                if 0 < self.after_ms <= now_ms - entry.failed_ms:
                    lost[entry.id] = int(entry.failed_ms + self.after_ms)
                elif entry.id in self._given_up:
                    lost[entry.id] = self._given_up[entry.id]
            else:
                self._given_up.pop(entry.id, 0)
        for node_id in self._known - known:
            self._remember(self._removed, node_id)
        for node_id in known:
            self._removed.pop(node_id, None)
            self._unknown.pop(node_id, None)
        for node_id in self._given_up.keys() - known:
            del self._given_up[node_id]
        self._known = known
        if self.after_ms > 0:
            lost.update(self._removed)
        for node_id, seen_ms in self._unknown.items():
            if 0 < self.after_ms <= now_ms - seen_ms:
                lost.setdefault(node_id, seen_ms + int(self.after_ms))
        takers: i64 = len([e for e in membership.reachable if e.ready])
        if not membership.leaving:
            takers += 1
        if lost == self.lost and leaving == self.leaving and takers == self.takers:
            return False
        self.lost = lost
        self.leaving = leaving
        if takers > self.takers:
            self.grown_ms = now_ms
        self.takers = takers
        return True

    def give_up(self, node_id: bytes) -> None:
        """The node is to be forgotten: as long as it fails, it is lost from now on."""
        self._given_up.setdefault(node_id, int(self._turn.now_ms))

    def status(self, node_id: bytes) -> i64:
        """What the node is as a holder."""
        if node_id in self.lost:
            return LOST
        if node_id in self.leaving:
            return ABOUT_TO_LEAVE
        if node_id not in self._known and node_id not in self._unknown:
            self._remember(self._unknown, node_id)
        return ALIVE

    def since_ms(self, node_id: bytes) -> i64:
        """Since when the copies of this node are missing."""
        return max(self.lost.get(node_id, 0), self.leaving.get(node_id, 0))

    def knows(self, node_id: bytes) -> bool:
        """Whether the node is in the table."""
        return node_id in self._known

    def _remember(self, nodes: OrderedDict[bytes, int], node_id: bytes) -> None:
        nodes[node_id] = int(self._turn.now_ms)
        if len(nodes) > _REMEMBERED_MAX:
            nodes.popitem(last=False)
