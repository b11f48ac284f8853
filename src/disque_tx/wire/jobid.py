"""Job IDs as the original makes them (cluster protocol, section 15.2; client protocol, 6.3).

``D-<first 8 of the node ID>-<24 characters>-<TTL in minutes, 4 hex digits>``; the last digit is odd
when the job may be delivered again, even when it is delivered at most once.
"""

from __future__ import annotations

from binascii import b2a_base64
from hashlib import sha1
from struct import Struct
from typing import Final

from mypy_extensions import i64

from disque_tx.messages import IdSource

_COUNTER: Final = Struct("<Q")
_SUFFIXES_KEPT: Final = 1024
#: How many IDs are prepared at once: a hash that is computed right after another one costs a third
#: of one that is computed now and then, when the processor's caches hold other things.
_PREPARED: Final = 32


def ttl_field(ttl_s: i64, retry_s: i64) -> bytes:
    """The last five characters of an ID: a dash and the TTL in whole minutes, at most 65535."""
    minutes = min(ttl_s // 60, 65535)
    minutes = minutes | 1 if retry_s > 0 else minutes & ~1
    return b"-%04x" % minutes


def unique_parts(digests: list[bytes]) -> list[bytes]:
    """24 characters out of each SHA-1 digest of 20 bytes; the fourth of each group is drawn from
    the byte after the one base64 would use, as the original does."""
    text = bytearray(b2a_base64(b"".join([digest[:18] for digest in digests]), newline=False))
    next_bytes = b"".join([digest[1:19] for digest in digests])
    text[3::4] = b2a_base64(next_bytes, newline=False)[3::4]
    return [bytes(text[at : at + 24]) for at in range(0, len(text), 24)]


class JobIdSource(IdSource):
    """``seed``: 40 random hex characters, drawn at process start."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._counter = 0
        self._node_id = b""
        self._prefix = b""
        self._prepared: list[bytes] = []
        self._suffixes: dict[int, bytes] = {}

    def next_id(self, node_id: bytes, ttl_s: i64, retry_s: i64) -> bytes:
        if node_id is not self._node_id:
            self._node_id = node_id
            self._prefix = b"D-" + node_id[:8] + b"-"
        if not self._prepared:
            self._prepare()
        key: int = ttl_s * 2 + (1 if retry_s > 0 else 0)
        suffix = self._suffixes.get(key)
        if suffix is None:
            if len(self._suffixes) >= _SUFFIXES_KEPT:
                self._suffixes.clear()
            suffix = ttl_field(ttl_s, retry_s)
            self._suffixes[key] = suffix
        return b"".join((self._prefix, self._prepared.pop(), suffix))

    def _prepare(self) -> None:
        """The random parts of the next IDs, the first one last."""
        digests: list[bytes] = []
        for number in range(self._counter + 1, self._counter + _PREPARED + 1):
            digests.append(sha1(self._seed + _COUNTER.pack(number)).digest())
        self._counter += _PREPARED
        self._prepared = unique_parts(digests)
        self._prepared.reverse()
