"""Job IDs as the original makes them (cluster protocol, section 15.2; client protocol, 6.3).

``D-<first 8 of the node ID>-<24 characters>-<TTL in minutes, 4 hex digits>``; the last digit is odd
when the job may be delivered again, even when it is delivered at most once.
"""

from __future__ import annotations

from hashlib import sha1
from typing import Final

from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import i64

from disque_tx.messages import IdSource

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SUFFIXES_KEPT: Final = 1024


def ttl_field(ttl_s: i64, retry_s: i64) -> bytes:
    """The last five characters of an ID: a dash and the TTL in whole minutes, at most 65535."""
    minutes = min(ttl_s // 60, 65535)
    minutes = minutes | 1 if retry_s > 0 else minutes & ~1
    return b"-%04x" % minutes


def unique_part(digest: bytes) -> bytes:
    """24 characters out of a SHA-1 digest of 20 bytes; the fourth of each group is drawn from the
    byte after the one base64 would use, as the original does."""
    writer = BytesWriter()
    _write_unique(writer, digest)
    return writer.getvalue()


def _write_unique(writer: BytesWriter, digest: bytes) -> None:
    alphabet = _ALPHABET
    at: i64 = 0
    while at < 18:
        a: i64 = digest[at]
        b: i64 = digest[at + 1]
        c: i64 = digest[at + 2]
        d: i64 = digest[at + 3]
        writer.append(alphabet[a >> 2])
        writer.append(alphabet[(a << 4 | b >> 4) & 63])
        writer.append(alphabet[(b << 2 | c >> 6) & 63])
        writer.append(alphabet[d & 63])
        at += 3


class JobIdSource(IdSource):
    """``seed``: 40 random hex characters, drawn at process start."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._counter: i64 = 0
        self._node_id = b""
        self._prefix = b""
        self._suffixes: dict[int, bytes] = {}

    def next_id(self, node_id: bytes, ttl_s: i64, retry_s: i64) -> bytes:
        if node_id is not self._node_id:
            self._node_id = node_id
            self._prefix = b"D-" + node_id[:8] + b"-"
        self._counter += 1
        counted = BytesWriter()
        counted.write(self._seed)
        write_i64_le(counted, self._counter)
        key: int = ttl_s * 2 + (1 if retry_s > 0 else 0)
        suffix = self._suffixes.get(key)
        if suffix is None:
            if len(self._suffixes) >= _SUFFIXES_KEPT:
                self._suffixes.clear()
            suffix = ttl_field(ttl_s, retry_s)
            self._suffixes[key] = suffix
        writer = BytesWriter()
        writer.write(self._prefix)
        _write_unique(writer, sha1(counted.getvalue()).digest())
        writer.write(suffix)
        return writer.getvalue()
