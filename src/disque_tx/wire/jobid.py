"""Job IDs as the original makes them (cluster protocol, section 15.2; client protocol, 6.3).

``D-<first 8 of the node ID>-<24 characters>-<TTL in minutes, 4 hex digits>``; the last digit is odd
when the job may be delivered again, even when it is delivered at most once.
"""

from __future__ import annotations

from hashlib import sha1
from struct import Struct
from typing import Final

from mypy_extensions import i64

from disque_tx.messages import IdSource

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#: Two characters for every 12 bits.
_PAIRS: Final = [bytes((_ALPHABET[n >> 6], _ALPHABET[n & 63])) for n in range(4096)]
_COUNTER: Final = Struct("<Q")
_SUFFIXES_KEPT: Final = 1024


def ttl_field(ttl_s: i64, retry_s: i64) -> bytes:
    """The last five characters of an ID: a dash and the TTL in whole minutes, at most 65535."""
    minutes = min(ttl_s // 60, 65535)
    minutes = minutes | 1 if retry_s > 0 else minutes & ~1
    return b"-%04x" % minutes


def unique_part(digest: bytes) -> bytes:
    """24 characters out of a SHA-1 digest of 20 bytes; the fourth of each group is drawn from the
    byte after the one base64 would use, as the original does."""
    return b"".join(
        (
            _group(digest[0], digest[1], digest[2], digest[3]),
            _group(digest[3], digest[4], digest[5], digest[6]),
            _group(digest[6], digest[7], digest[8], digest[9]),
            _group(digest[9], digest[10], digest[11], digest[12]),
            _group(digest[12], digest[13], digest[14], digest[15]),
            _group(digest[15], digest[16], digest[17], digest[18]),
        )
    )


def _group(a: i64, b: i64, c: i64, d: i64) -> bytes:
    """Four characters."""
    return _PAIRS[a << 4 | b >> 4] + _PAIRS[(b & 15) << 8 | (c & 192) | (d & 63)]


class JobIdSource(IdSource):
    """``seed``: 40 random hex characters, drawn at process start."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._counter = 0
        self._node_id = b""
        self._prefix = b""
        self._suffixes: dict[int, bytes] = {}

    def next_id(self, node_id: bytes, ttl_s: i64, retry_s: i64) -> bytes:
        if node_id is not self._node_id:
            self._node_id = node_id
            self._prefix = b"D-" + node_id[:8] + b"-"
        self._counter += 1
        digest = sha1(self._seed + _COUNTER.pack(self._counter)).digest()
        key: int = ttl_s * 2 + (1 if retry_s > 0 else 0)
        suffix = self._suffixes.get(key)
        if suffix is None:
            if len(self._suffixes) >= _SUFFIXES_KEPT:
                self._suffixes.clear()
            suffix = ttl_field(ttl_s, retry_s)
            self._suffixes[key] = suffix
        return b"".join((self._prefix, unique_part(digest), suffix))
