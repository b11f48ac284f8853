"""What tells nodes apart, and the starts of one node."""

from __future__ import annotations

import secrets


def new_node_id() -> bytes:
    """40 random lower-case hexadecimal digits."""
    return secrets.token_hex(20).encode()


def first_epoch(wall_us: int) -> int:
    """The number from which a start counts its connections: unique per start, and higher for later
    ones (see ``duplicateids``)."""
    return (wall_us // 1000) << 21 | secrets.randbits(20)
