"""When a lease has to be renewed, so that it does not run out first.

A heartbeat (WORKING) restarts RETRY. It is sent when 80 % of RETRY have passed, which leaves two
seconds of ten for a busy machine. Of a shorter RETRY that would leave less, and a few hundred
milliseconds are soon lost: so two seconds are left then too, or half of RETRY if that is less.
"""

from __future__ import annotations

from typing import Final

#: Part of RETRY that passes between two heartbeats.
_PART: Final = 0.8
_PART_MIN: Final = 0.5
_RESERVE_S: Final = 2.0


def renewal_s(retry_s: float) -> float:
    """Seconds from one heartbeat to the next, for a job with this RETRY."""
    return max(_PART_MIN * retry_s, min(_PART * retry_s, retry_s - _RESERVE_S))
