"""Nodes that are gone: when they are forgotten, and for how long they must not come back by gossip.

1. CLUSTER FORGET takes a node out of the table of this node, and for a minute gossip cannot bring
   it back: time to say the same to the other nodes (cluster protocol, section 8.8).
2. With ``cluster-forget-after``, a node that was in FAIL for that time is forgotten everywhere:
   the first node to find it due sends this to the other nodes of ours, which do the same if they
   see it in FAIL, or suspect it, whatever their own setting (section 21.10). Gossip cannot bring it
   back for a day; a node that still reports it as failing gets the message again. It is a member
   again as soon as somebody introduces it.
3. A node is not forgotten as long as copies of its jobs are being made again.

All times are those of the steady clock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.nodes import FAIL, NodeEntry

BLACKLIST_MS: Final = 60_000
#: For nodes that were forgotten because they failed for long.
ABSENCE_MS: Final = 86_400_000
_KEPT_MAX: Final = 1_000


def _none_pending(node_id: bytes) -> bool:
    """No copies are being made again."""
    return False


class Forgotten:
    """The nodes that gossip must not bring back: ID in lower case → until when. ``by_command``:
    by CLUSTER FORGET; ``by_age``: because they failed for long."""

    __slots__ = ("by_command", "by_age")

    def __init__(self) -> None:
        self.by_command: dict[bytes, int] = {}
        self.by_age: OrderedDict[bytes, int] = OrderedDict()

    def commanded(self, node_id: bytes, now_ms: i64) -> bool:
        """The node was forgotten by CLUSTER FORGET less than a minute ago."""
        self.by_command = {key: end for key, end in self.by_command.items() if end > now_ms}
        return node_id.lower() in self.by_command

    def aged(self, node_id: bytes, now_ms: i64) -> bool:
        """The node was forgotten less than a day ago because it had failed for long."""
        return self.by_age.get(node_id.lower(), 0) > now_ms

    def age(self, node_id: bytes, now_ms: i64) -> None:
        """The node is forgotten because it has failed for long."""
        self.by_age.pop(node_id.lower(), 0)
        self.by_age[node_id.lower()] = int(now_ms) + ABSENCE_MS
        if len(self.by_age) > _KEPT_MAX:
            self.by_age.popitem(last=False)

    def returned(self, node_id: bytes) -> None:
        """The node is a member again."""
        self.by_age.pop(node_id.lower(), 0)


class Forgetting:
    """``after_ms``: how long a node must have been in FAIL, 0 for never. ``told``: nodes that
    others have forgotten. ``count``: how many were forgotten because of either, in all.

    ``copies_pending``: whether copies of the jobs of the node with this ID are being made again; to
    be replaced by whoever makes them.
    """

    __slots__ = ("after_ms", "told", "count", "copies_pending")

    def __init__(self) -> None:
        self.after_ms: i64 = 0
        self.told: set[bytes] = set()
        self.count: i64 = 0
        self.copies_pending: Callable[[bytes], bool] = _none_pending

    def tell(self, entry: NodeEntry) -> None:
        """Another node of ours has forgotten this one."""
        if entry.flags & FAIL:
            self.told.add(entry.id)

    def due(self, entries: list[NodeEntry], now_ms: i64) -> list[NodeEntry]:
        """The nodes that are to be forgotten now."""
        found: list[NodeEntry] = []
        for entry in entries:
            if entry.flags & FAIL == 0:
                self.told.discard(entry.id)
                continue
            if entry.failed_ms == 0:
                entry.failed_ms = now_ms  # it was in the nodes file, which has no time for it
            old = self.after_ms > 0 and now_ms - entry.failed_ms >= self.after_ms
            if (old or entry.id in self.told) and not self.copies_pending(entry.id):
                self.told.discard(entry.id)
                found.append(entry)
        return found
