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
#: Rankings that are remembered.
_REMEMBERED_MAX: Final = 4_096
#: Bits for the place of a node among all, beside its weight.
_PLACE_BITS: Final = 20
_PLACES: Final = (1 << _PLACE_BITS) - 1


class Owners:
    """Ranks nodes, and remembers what it worked out."""

    __slots__ = ("_ascending", "_by_key", "_hashes", "_nodes")

    def __init__(self) -> None:
        # Those that were ranked last: as they were given, by their IDs, and the hashes of these.
        self._nodes: list[bytes] = []
        self._ascending: list[bytes] = []
        self._hashes: list[int] = []
        self._by_key: dict[bytes, list[bytes]] = {}

    def ranking(self, key: bytes, nodes: list[bytes]) -> list[bytes]:
        """Like :func:`ranking`, cached per list of nodes. Do not modify the list or the result."""
        if nodes is not self._nodes or len(self._by_key) >= _REMEMBERED_MAX:
            if nodes is not self._nodes:
                self._nodes = nodes
                self._ascending = sorted(nodes)
                self._hashes = [int(_hash(node_id)) for node_id in self._ascending]
            self._by_key = {}
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = self._rank(key)
        return found

    def _rank(self, key: bytes) -> list[bytes]:
        mine = _hash(key)
        weighted: list[int] = []
        for place, node_hash in enumerate(self._hashes):
            weighted.append(int(_mixed(mine ^ node_hash) << _PLACE_BITS | place))
        weighted.sort(reverse=True)
        return [self._ascending[one & _PLACES] for one in weighted]


def ranking(key: bytes, node_ids: Iterable[bytes]) -> list[bytes]:
    """The nodes in the order in which they are to keep the key, the first one first.

    The order is that of falling weights; the greater ID is first should two be alike. A weight is
    made of the key's hash and the node's: their exclusive or, mixed as in :func:`_mixed`. A hash is
    the lower 31 bits of a BLAKE2b of 4 bytes, read as a big-endian number.
    """
    return Owners().ranking(key, list(node_ids))


def _hash(text: bytes) -> i64:
    return int.from_bytes(blake2b(text, digest_size=_HASH_BYTES).digest(), "big") & _31_BITS


def _mixed(value: i64) -> i64:
    """Every bit of the value changes all others; a number of 31 bits, too."""
    value = (value ^ (value >> 15)) * 0x2C1B_3C6D & _31_BITS
    value = (value ^ (value >> 12)) * 0x297A_2D39 & _31_BITS
    return value ^ (value >> 15)
