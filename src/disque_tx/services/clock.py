"""The clocks of the machine, in the units of a node; compiled, because every turn reads them."""

from __future__ import annotations

import time


def steady_ms() -> int:
    """Milliseconds of the monotonic clock."""
    return time.monotonic_ns() // 1_000_000


def wall_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000
