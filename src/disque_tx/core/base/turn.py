"""The time of a turn: what happens in it happens at that time."""

from __future__ import annotations

from mypy_extensions import i64


class Turn:
    """``now_ms``: a steady clock, on which all deadlines lie. ``wall_us``: the time of day, in
    microseconds since 1970, of which creation times and expiry times on disk are made."""

    __slots__ = ("now_ms", "wall_us")

    def __init__(self) -> None:
        self.now_ms: i64 = 0
        self.wall_us: i64 = 0
