"""Job IDs as the original makes them (cluster protocol, section 15.2; client protocol, 6.3).

``D-<first 8 of the node ID>-<24 characters>-<TTL in minutes, 4 hex digits>``; the last digit is odd
when the job may be delivered again, even when it is delivered at most once.
"""

from __future__ import annotations

from binascii import b2a_base64
from hashlib import shake_128
from struct import Struct
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.limits import U16_MAX
from disque_tx.messages.records import IdSource
from disque_tx.text.hashes import ID_CHARACTERS

_COUNTER: Final = Struct("<Q")
_SUFFIXES_KEPT: Final = 1024
#: The 24 characters are 18 bytes in base64. A digest gives as many bytes as one likes, and is cheap
#: by the byte and dear by the piece: so one serves many IDs, as many as there are characters.
_BYTES_EACH: Final = 18
_CHARACTERS_EACH: Final = 24
_PER_DIGEST: Final = 64
#: Characters of the number of the digest, before the one of the ID among those of the digest.
_HIGH: Final = 4


def ttl_field(ttl_s: i64, retry_s: i64) -> bytes:
    """The last five characters of an ID: a dash and the TTL in whole minutes, at most 65535."""
    minutes = min(ttl_s // 60, U16_MAX)
    minutes = minutes | 1 if retry_s > 0 else minutes & ~1
    return b"-%04x" % minutes


class JobIdSource(IdSource):
    """``seed``: 40 random hex characters, drawn at process start. Of the 144 bits between the node
    and the TTL the first 30 count, from a number on that comes from the seed, so that jobs are
    neighbours in tables (see :func:`~disque_tx.text.hashes.place32`). The other 114 come from
    it, as many as the original uses."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._digests = int.from_bytes(shake_128(seed).digest(3), "big")
        self._characters = b""
        self._at: i64 = 0
        self._node_id = b""
        self._prefix = b""
        self._suffixes: dict[int, bytes] = {}

    def next_id(self, node_id: bytes, ttl_s: i64, retry_s: i64) -> bytes:
        if node_id is not self._node_id:
            self._node_id = node_id
            self._prefix = b"D-" + node_id[:8] + b"-"
        at = self._at
        if at == len(self._characters):
            self._draw()
            at = 0
        self._at = at + _CHARACTERS_EACH
        key: int = ttl_s * 2 + (1 if retry_s > 0 else 0)
        suffix = self._suffixes.get(key)
        if suffix is None:
            if len(self._suffixes) >= _SUFFIXES_KEPT:
                self._suffixes.clear()
            suffix = ttl_field(ttl_s, retry_s)
            self._suffixes[key] = suffix
        return self._prefix + self._characters[at : at + _CHARACTERS_EACH] + suffix

    def _draw(self) -> None:
        self._digests += 1
        digest = shake_128(self._seed + _COUNTER.pack(self._digests))
        raw = digest.digest(_BYTES_EACH * _PER_DIGEST)
        characters = bytearray(b2a_base64(raw, newline=False))
        count = self._digests
        for at in range(_HIGH - 1, -1, -1):
            digit = count & 63
            characters[at::_CHARACTERS_EACH] = ID_CHARACTERS[digit : digit + 1] * _PER_DIGEST
            count >>= 6
        characters[_HIGH::_CHARACTERS_EACH] = ID_CHARACTERS
        self._characters = bytes(characters)
