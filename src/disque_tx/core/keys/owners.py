"""Which nodes keep a key: the nodes whose IDs rank first for the key.

Every node works it out alike, without asking. When a node joins or leaves, only the keys for which
it ranks first or second change their nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

_HASH_BYTES: Final = 4
_31_BITS: Final = 0x7FFF_FFFF
#: Hashes of nodes, and rankings of keys, that are remembered.
_REMEMBERED_MAX: Final = 4_096


class Owners:
    """Ranks nodes, and remembers what it worked out."""

    __slots__ = ("_by_key", "_nodes", "_hashes")

    def __init__(self) -> None:
        self._hashes: dict[bytes, int] = {}
        # Of the nodes for which rankings are remembered.
        self._nodes: list[bytes] = []
        self._by_key: dict[bytes, list[bytes]] = {}

    def ranking(self, key: bytes, nodes: list[bytes]) -> list[bytes]:
        """Like :func:`ranking`, cached per list of nodes. Do not modify the list or the result."""
        if nodes is not self._nodes or len(self._by_key) >= _REMEMBERED_MAX:
            self._nodes = nodes
            self._by_key = {}
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = self._rank(key, nodes)
        return found

    def _rank(self, key: bytes, nodes: Iterable[bytes]) -> list[bytes]:
        mine = _hash(key)
        weighted: list[tuple[int, bytes]] = []
        for node_id in nodes:
            weighted.append((int(_mixed(mine ^ self._hash_of(node_id))), node_id))
        weighted.sort(reverse=True)
        return [node_id for _, node_id in weighted]

    def _hash_of(self, node_id: bytes) -> i64:
        known = self._hashes.get(node_id)
        if known is not None:
            return known
        if len(self._hashes) >= _REMEMBERED_MAX:
            self._hashes = {}
        value = _hash(node_id)
        self._hashes[node_id] = int(value)
        return value


def ranking(key: bytes, node_ids: Iterable[bytes]) -> list[bytes]:
    """The nodes in the order in which they are to keep the key, the first one first.

    The order is that of falling weights; the greater ID is first should two be alike. A weight is
    made of the key's hash and the node's: their exclusive or, mixed as in :func:`_mixed`. A hash is
    the lower 31 bits of a BLAKE2b of 4 bytes, read as a big-endian number.
    """
    return Owners()._rank(key, node_ids)


def _hash(text: bytes) -> i64:
    return int.from_bytes(blake2b(text, digest_size=_HASH_BYTES).digest(), "big") & _31_BITS


def _mixed(value: i64) -> i64:
    """Every bit of the value changes all others; a number of 31 bits, too."""
    value = (value ^ (value >> 15)) * 0x2C1B_3C6D & _31_BITS
    value = (value ^ (value >> 12)) * 0x297A_2D39 & _31_BITS
    return value ^ (value >> 15)
