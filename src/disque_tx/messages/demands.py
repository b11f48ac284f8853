"""Demand that stands until it changes: how many jobs of which queues a node can use (cluster
protocol, section 21.8)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import DEMAND

#: Entries of one message, and bytes of their words after which no further entry is added.
ENTRIES_MAX: Final = 1_000
WORDS_BYTES_MAX: Final = 48 * 1024

#: Message flag of DEMAND: all that was demanded on this link before has ended.
RESET: Final = 1

#: Message flags of YOURJOBS: the jobs answer a demand; there are more of them; they are given back
#: because nobody took them. Values that no other message uses, so that they are never confused.
DEMANDED: Final = 8
MORE: Final = 16
RETURNED: Final = 32


# What words begin with.
QUEUE: Final = b"="
MATCH: Final = b"+"
EXCEPT: Final = b"-"
WITHOUT: Final = b"!"


def globs(words: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The patterns among the words of DEMAND or NEEDMATCH, and those that are excepted."""
    patterns = [word[1:] for word in words if word[:1] == MATCH]
    return patterns, [word[1:] for word in words if word[:1] == EXCEPT]


@mypyc_attr(acyclic=True)
class DemandEntry:
    """Demand of one queue, or of all queues that match.

    ``words``: one queue is ``=`` and its name; patterns are globs, each behind ``+``, or behind
    ``-`` if names must not match it, and names of queues that must not be given from behind ``!``.
    ``credit``: how many jobs the node can use from now on, 0 for none. ``waiting``: how many of
    these clients wait for. ``age_ms``: how long the first of them has waited.
    """

    __slots__ = ("age_ms", "credit", "waiting", "words")

    def __init__(self, words: list[bytes], credit: i64, waiting: i64, age_ms: i64) -> None:
        self.words: list[bytes] = words
        self.credit: i64 = credit
        self.waiting: i64 = waiting
        self.age_ms: i64 = age_ms


@mypyc_attr(acyclic=True)
class DemandMessage(Message):
    """DEMAND: what changed since the last one on the same link, or with ``RESET`` all there is."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[DemandEntry]) -> None:
        super().__init__(DEMAND)
        self.entries: list[DemandEntry] = entries
