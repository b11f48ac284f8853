"""What tells nodes apart, and the starts of one node."""

from __future__ import annotations

import hashlib
import secrets


def new_node_id() -> bytes:
    """40 random lower-case hexadecimal digits."""
    return secrets.token_hex(20).encode()


def first_epoch(wall_us: int) -> int:
    """The number from which a start counts its connections: unique per start, and higher for later
    ones (see ``duplicateids``)."""
    return (wall_us // 1000) << 21 | secrets.randbits(20)


def password_mark(password: bytes, cluster_name: bytes) -> int:
    """What other nodes see of a password, to tell whether theirs is the same; 0 for none.

    It says little: 16 bits of a hash that takes some milliseconds and 4 MiB to compute.
    """
    if not password:
        return 0
    salt = b"disque-tx cluster " + cluster_name
    digest = hashlib.scrypt(password, salt=salt, n=4096, r=8, p=1, dklen=2)
    return max(int.from_bytes(digest, "big"), 1)
