"""When a node may not have reached all members that may keep keys.

After its start it knows members that it has not reached. One that was cut off from all others, or
stood still, does not know what has happened since, nor does the first member that it reaches, which
may have been cut off with it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Turn
from disque_tx.core.nodes.failure import failing
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.nodes import FAIL, HANDSHAKE, MYSELF, NOADDR

#: How long a node that has started waits for members that it has not reached.
JOIN_MS: Final = 5_000
#: How long it waits later on, and for the keys of one that became reachable.
SYNC_MS: Final = 2_000


class Joining:
    """Whether a node joins the members that keep keys, or joins them again."""

    __slots__ = ("_limit_ms", "_membership", "_since_ms", "_turn", "_under_way", "_woken_ms")

    def __init__(self, turn: Turn, membership: Membership) -> None:
        self._turn: Turn = turn
        self._membership: Membership = membership
        self._under_way: bool = True
        self._since_ms: i64 = -1
        self._limit_ms: i64 = JOIN_MS
        self._woken_ms: i64 = 0

    def begin(self) -> None:
        """The node has started, unless that is known already."""
        if self._since_ms < 0:
            self._since_ms = self._turn.now_ms

    def begin_again(self) -> None:
        """The node does not know what has happened lately."""
        if not self._under_way:
            self._under_way = True
            self._since_ms = self._turn.now_ms
            self._limit_ms = SYNC_MS

    def stood_still(self) -> bool:
        """Whether the node had no turn for ``STILL_MS`` since this was last asked."""
        woken_ms = self._turn.woken_ms
        if woken_ms == self._woken_ms:
            return False
        self._woken_ms = woken_ms
        return True

    def is_under_way(self) -> bool:
        """Whether there are members that did not fail, of which nothing was heard yet."""
        if self._under_way:
            waited_ms = self._turn.now_ms - self._since_ms
            self._under_way = waited_ms < self._limit_ms and self._unmet()
        return self._under_way

    def _unmet(self) -> bool:
        for entry in self._membership.nodes.values():
            # What only this node suspects counts for nothing if it is the one that was away.
            failed = failing(entry) if self._limit_ms == JOIN_MS else entry.flags & FAIL != 0
            if not entry.flags & (MYSELF | HANDSHAKE | NOADDR) and not failed:
                link = entry.link
                if link is None or (
                    link.features == 0 and entry.pong_received_ms < link.created_ms
                ):
                    return True
        return False
