"""The clocks of the machine, in the units of a node; compiled, because every turn reads them."""

from __future__ import annotations

import time
from typing import Final

from mypy_extensions import i64

_monotonic_ns: Final = time.monotonic_ns
_time_ns: Final = time.time_ns


def steady_ms() -> i64:
    """Milliseconds of the monotonic clock."""
    return i64(_monotonic_ns()) // 1_000_000


def wall_us() -> i64:
    """Microseconds since 1970."""
    return i64(_time_ns()) // 1_000
