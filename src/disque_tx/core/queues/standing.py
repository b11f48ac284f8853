"""Standing demand of one queue, on both sides: what this node has told others that it can use, and
what others have told this node (cluster protocol, section 21.8). Nothing here sends anything.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

#: Jobs that a node asks for beyond those for which clients wait.
WINDOW_MAX: Final = 2_048
#: The same in bytes of bodies.
WINDOW_BYTES_MAX: Final = 4 * 1024 * 1024
_WINDOW_MIN: Final = 16
#: What a node has told is void if it has not told it again for so long.
CREDIT_MS: Final = 90_000
#: A window that was not needed for so long gets smaller.
_SHRINK_MS: Final = 1_000


class Grant:
    """What one node may still send, as far as is known here, and perhaps more: see
    ``Receivers.withdraw``. ``era``: of its link (see
    ``core.getting.receivers``); a grant of an earlier era is void. ``credit``: jobs; ``waiting``:
    those of them for which a client was said to wait."""

    __slots__ = ("credit", "era", "waiting")

    def __init__(self, era: i64) -> None:
        self.era: i64 = era
        self.credit: i64 = 0
        self.waiting: i64 = 0


class StandingDemand:
    """What this node has told others about one queue.

    ``grants``: by node ID. ``window``: jobs that may lie here or be on their way beyond what
    clients wait for; 0 until another node had more than they could take. ``surplus``: jobs that
    came by demand and lie here. ``size``: bytes of a body, rather too many. ``giver``: the node
    that sent the last one.
    """

    __slots__ = ("_grown_ms", "_more", "giver", "grants", "size", "surplus", "window")

    def __init__(self) -> None:
        self.grants: dict[bytes, Grant] = {}
        self.window: i64 = 0
        self.surplus: i64 = 0
        self.giver: bytes = b""
        self.size: i64 = 0
        self._grown_ms: i64 = 0
        self._more: bool = False

    def arrived(self, giver: bytes, size: i64, more: bool) -> None:
        """A job of ``size`` bytes came; its sender may have ``more``."""
        grant = self.grants.get(giver)
        if grant is not None:
            grant.credit = max(0, grant.credit - 1)
            grant.waiting = max(0, grant.waiting - 1)
        self.surplus += 1
        self.giver = giver
        self.size = max(size, self.size - (self.size >> 4))
        self._more = more

    def renew(self) -> None:
        """Let all nodes be told again; until then they know what they were told."""
        for grant in self.grants.values():
            grant.credit = grant.waiting = 0

    def adjust(self, waiting: i64, stock: i64, now_ms: i64) -> None:
        """Make the window larger while clients take jobs faster than they come, and smaller while
        they do not. ``stock``: jobs that lie here."""
        if self._more and stock * 4 <= self.window:
            self._more = False
            window = max(2 * self.window, 2 * waiting, _WINDOW_MIN)
            limit = max(1, WINDOW_BYTES_MAX // max(1, self.size))
            self.window = min(window, WINDOW_MAX, limit)
            self._grown_ms = now_ms
        elif self.window > 0 and now_ms - self._grown_ms > _SHRINK_MS:
            self.window //= 2
            self._grown_ms = now_ms


class Credit:
    """What one other node can use of one queue, or of those that match. ``waiting``: how many of
    its clients wait, the first of them since ``since_ms``. ``told_ms``: when it said so.
    ``without``: queues that must not be given from, of those that match."""

    __slots__ = ("credit", "node_id", "since_ms", "told_ms", "waiting", "without")

    def __init__(self, node_id: bytes) -> None:
        self.node_id: bytes = node_id
        self.credit: i64 = 0
        self.waiting: i64 = 0
        self.since_ms: i64 = 0
        self.told_ms: i64 = 0
        self.without: dict[bytes, None] = {}

    def given(self, number: i64) -> None:
        """``number`` jobs were sent."""
        self.credit = max(0, self.credit - number)
        self.waiting = max(0, self.waiting - number)


class PeerDemand:
    """What other nodes can use of one queue, or of those that match. ``credits``: by node ID.
    ``ready``: the queue stands in the list of those that may be given from."""

    __slots__ = ("credits", "ready")

    def __init__(self) -> None:
        self.credits: dict[bytes, Credit] = {}
        self.ready: bool = False

    def longest_waiting(self, unreachable: list[bytes], now_ms: i64) -> Credit | None:
        """The node whose client has waited for longest, ``None`` if no client waits."""
        found: Credit | None = None
        for credit in self.credits.values():
            if credit.told_ms < now_ms - CREDIT_MS or credit.node_id in unreachable:
                continue
            if credit.waiting > 0 and credit.credit > 0:
                if found is None or credit.since_ms < found.since_ms:
                    found = credit
        return found

    def largest(self, unreachable: list[bytes], now_ms: i64) -> Credit | None:
        """The node that can use most, ``None`` if none can use any."""
        found: Credit | None = None
        for credit in self.credits.values():
            if credit.told_ms < now_ms - CREDIT_MS or credit.node_id in unreachable:
                continue
            if credit.credit > 0:
                if found is None or credit.credit > found.credit:
                    found = credit
        return found
