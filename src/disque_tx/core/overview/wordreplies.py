"""A reply as words of a report, and back: any value that a command may answer with (cluster
protocol, section 21.5).

One word per value, of which the first byte is the kind, as in RESP. The elements of arrays and maps
follow the word that announces how many there are.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.overview.counts import number_of
from disque_tx.messages import JobRecord, ReplySink

#: Arrays within arrays that are believed.
_DEPTH_MAX: Final = 4
_DIGITS_MAX: Final = 20


class WordReplies(ReplySink):
    """Collects one reply. ``words``: so far."""

    __slots__ = ("words",)

    def __init__(self) -> None:
        self.words: list[bytes] = []

    def status(self, text: bytes) -> None:
        self.words.append(b"+" + text)

    def error(self, line: bytes) -> None:
        self.words.append(b"-" + line)

    def integer(self, value: int) -> None:
        self.words.append(b":%d" % value)

    def bulk(self, data: bytes) -> None:
        self.words.append(b"$" + data)

    def null(self) -> None:
        self.words.append(b"_")

    def null_array(self) -> None:
        self.words.append(b"~")

    def array(self, size: int) -> None:
        self.words.append(b"*%d" % size)

    def mapping(self, size: int) -> None:
        self.words.append(b"%%%d" % size)

    def jobs(self, jobs: list[JobRecord], with_counters: bool) -> None:
        self.array(len(jobs))
        for job in jobs:
            self.array(7 if with_counters else 3)
            self.bulk(job.queue)
            self.bulk(job.id)
            self.bulk(job.body)
            if with_counters:
                self.bulk(b"nacks")
                self.integer(job.nacks)
                self.bulk(b"additional-deliveries")
                self.integer(job.deliveries)

    def mark(self) -> int:
        return len(self.words)

    def rewind(self, mark: int) -> None:
        del self.words[mark:]

    def speaking(self, version: int) -> ReplySink:
        return self


def is_reply(words: list[bytes]) -> bool:
    """Whether these words, of another node, are exactly one reply."""
    left: list[i64] = [1]
    for word in words:
        while left and left[len(left) - 1] == 0:
            left.pop()
        if not left:
            return False
        left[len(left) - 1] -= 1
        kind = word[:1]
        if kind == b"*" or kind == b"%":
            size = number_of(word[1:])
            if size < 0 or size > len(words) or len(left) > _DEPTH_MAX:
                return False
            left.append(size if kind == b"*" else 2 * size)
        elif kind == b":":
            if not _is_integer(word[1:]):
                return False
        elif kind == b"_" or kind == b"~":
            if len(word) != 1:
                return False
        elif kind == b"+" or kind == b"-":
            if b"\r" in word or b"\n" in word:
                return False
        elif kind != b"$":
            return False
    return not any(left)


def _is_integer(word: bytes) -> bool:
    digits = word[1:] if word[:1] == b"-" else word
    return digits.isdigit() and len(digits) < _DIGITS_MAX


def write_reply(words: list[bytes], replies: ReplySink) -> None:
    """Write what :func:`is_reply` has found to be one."""
    for word in words:
        kind, rest = word[:1], word[1:]
        if kind == b"$":
            replies.bulk(rest)
        elif kind == b":":
            replies.integer(int(rest))
        elif kind == b"+":
            replies.status(rest)
        elif kind == b"*":
            replies.array(int(rest))
        elif kind == b"%":
            replies.mapping(int(rest))
        elif kind == b"-":
            replies.error(rest)
        elif kind == b"~":
            replies.null_array()
        else:
            replies.null()
