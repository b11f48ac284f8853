"""The requests that took long, newest first (client protocol, section 8, SLOWLOG)."""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.arguments import mask
from disque_tx.core.base.client import Client

WORDS_MAX: Final = 32
WORD_BYTES_MAX: Final = 128


class SlowEntry:
    """One request: when it ran, how long it took, and its words, shortened. ``addr``, ``client``:
    address and name of a client that came by the protocol of a plugin, else empty."""

    __slots__ = ("id", "unix_s", "duration_us", "words", "addr", "client")

    def __init__(self, entry_id: i64, unix_s: i64, duration_us: i64, words: list[bytes]) -> None:
        self.id: i64 = entry_id
        self.unix_s: i64 = unix_s
        self.duration_us: i64 = duration_us
        self.words: list[bytes] = words
        self.addr: bytes = b""
        self.client: bytes = b""


class SlowLog:
    """``slower_than_us``: what counts as slow, 0 for everything, negative for nothing.
    ``len_max``: entries kept. ``entries``: newest first. IDs grow by one and never start again."""

    __slots__ = ("slower_than_us", "len_max", "entries", "_next_id")

    def __init__(self) -> None:
        self.slower_than_us: i64 = 10_000
        self.len_max: i64 = 128
        self.entries: deque[SlowEntry] = deque()
        self._next_id: i64 = 0

    def record(
        self,
        argv: list[bytes],
        unix_s: i64,
        duration_us: i64,
        name: bytes = b"",
        plugged: Client | None = None,
    ) -> None:
        """A request ran; kept when it was slow. ``name`` as in :func:`arguments.mask`.
        ``plugged``: the client, if it came by the protocol of a plugin."""
        if self.slower_than_us >= 0 and duration_us >= self.slower_than_us:
            words = shorten(mask(argv, name))
            entry = SlowEntry(self._next_id, unix_s, duration_us, words)
            if plugged is not None:
                entry.addr, entry.client = plugged.addr, plugged.name
            self.entries.appendleft(entry)
            self._next_id += 1
        while len(self.entries) > max(self.len_max, 0):
            self.entries.pop()

    def set_length(self, len_max: i64) -> None:
        """Keep at most this many entries from now on."""
        self.len_max = len_max
        while len(self.entries) > max(len_max, 0):
            self.entries.pop()

    def reset(self) -> None:
        """Forget all entries."""
        self.entries.clear()


def shorten(argv: list[bytes]) -> list[bytes]:
    """At most 32 words of about 128 bytes; what is missing is counted in their place."""
    kept = argv if len(argv) <= WORDS_MAX else argv[: WORDS_MAX - 1]
    words = [_shorten_word(word) for word in kept]
    if len(kept) < len(argv):
        words.append(b"... (%d more arguments)" % (len(argv) - len(kept)))
    return words


def _shorten_word(word: bytes) -> bytes:
    more = len(word) - WORD_BYTES_MAX
    return word if more <= 0 else word[:WORD_BYTES_MAX] + b"... (%d more bytes)" % more
