"""What each other node may have at once: who asks for more in the same millisecond has to wait."""

from __future__ import annotations

from mypy_extensions import i64


class Shares:
    """``at_once``: how much of something a node may have in a millisecond."""

    __slots__ = ("_at_once", "_had", "_at_ms")

    def __init__(self, at_once: i64) -> None:
        self._at_once: i64 = at_once
        self._at_ms: i64 = -1
        self._had: dict[bytes, int] = {}

    def take(self, node_id: bytes, now_ms: i64) -> bool:
        """Whether the node may have one more now; it is counted then."""
        if now_ms != self._at_ms:
            self._at_ms = now_ms
            self._had.clear()
        had = self._had.get(node_id, 0)
        if had >= self._at_once:
            return False
        self._had[node_id] = had + 1
        return True
