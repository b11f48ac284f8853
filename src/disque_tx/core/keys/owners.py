"""Which nodes look after a key: those whose IDs rank first with it.

Every node works it out alike, without asking. When a node joins or leaves, only the keys for which
it ranks first or second change their nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

_WEIGHT_BYTES: Final = 8


def ranking(key: bytes, node_ids: Iterable[bytes]) -> list[bytes]:
    """The nodes in the order in which they are to look after the key, the first one first.

    The order is that of falling BLAKE2b hashes, 8 bytes read as they stand, of the key's length
    (2 bytes, the greater first), the key and the node's ID; the greater ID is first should two
    hashes be alike. Keys have at most 65,535 bytes.
    """
    prefix = blake2b(len(key).to_bytes(2, "big") + key, digest_size=_WEIGHT_BYTES)
    weighted: list[tuple[bytes, bytes]] = []
    for node_id in node_ids:
        hashed = prefix.copy()
        hashed.update(node_id)
        weighted.append((hashed.digest(), node_id))
    weighted.sort(reverse=True)
    return [node_id for _, node_id in weighted]
