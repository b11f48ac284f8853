"""Questions and answers of nodes that do not count jobs that came from the log (cluster protocol,
section 21.5).

1. A node with the feature is asked ``COUNT-LOADED`` and ``LIST-LOADED`` instead of ``COUNT`` and
   ``LIST``: the rows of its answer have one number more.
2. Whoever asks ``COUNT`` or ``LIST`` gets rows without it: loaded jobs are among those in backoff
   there, because they wait for another attempt, too.
3. A node without the feature is told to flush the states that it knows. When it asks for jobs in
   backoff to be flushed, loaded ones are, too, for it was told that they are among them.
"""

from __future__ import annotations

from typing import Final

from disque_tx.core.counting.counts import NUMBERS, number_of
from disque_tx.core.counting.flushing import FLUSH_BACKOFF, FLUSH_LOADED

_SUFFIX: Final = b"-LOADED"
_COUNTING: Final = (b"COUNT", b"LIST")
#: Words of a row, with and without the last number.
_WIDE: Final = len(NUMBERS) + 1
_NARROW: Final = len(NUMBERS)
#: Where in a row jobs in backoff are.
_BACKOFF: Final = 3


def question_for(words: list[bytes], knows_loaded: bool) -> list[bytes]:
    """A question as one node understands it; empty if it cannot be asked this."""
    if words[0] in _COUNTING:
        return [words[0] + _SUFFIX, *words[1:]] if knows_loaded else words
    if words[0] == b"FLUSH" and not knows_loaded:
        states = number_of(words[2]) & ~FLUSH_LOADED
        return [words[0], words[1], b"%d" % states] if states else []
    return words


def understood(words: list[bytes], older: bool) -> tuple[list[bytes], bool]:
    """A question of another node as this node asks itself, and whether the answer is to be
    :func:`narrowed`. ``older``: it certainly does not count loaded jobs."""
    kind = words[0] if words else b""
    if kind in _COUNTING:
        return words, True
    if kind.endswith(_SUFFIX):
        return [kind.removesuffix(_SUFFIX), *words[1:]], False
    if older and kind == b"FLUSH" and len(words) > 2:
        states = number_of(words[2])
        if states > 0 and states & FLUSH_BACKOFF:
            return [words[0], words[1], b"%d" % (states | FLUSH_LOADED), *words[3:]], False
    return words, False


def narrowed(kind: bytes, answer: list[bytes]) -> list[bytes]:
    """The rows of an answer without their last number. ``kind``: of the question."""
    start = 1 if kind == b"LIST" else 0
    words = answer[:start]
    for at in range(start, len(answer), _WIDE):
        row = answer[at : at + _WIDE]
        row[_BACKOFF] = b"%d" % (int(row[_BACKOFF]) + int(row[_WIDE - 1]))
        words += row[:_NARROW]
    return words


def widened(kind: bytes, answer: list[bytes]) -> list[bytes]:
    """The answer of a node that does not count loaded jobs, as of one that has none. ``kind``: of
    the question."""
    if kind not in _COUNTING:
        return answer
    start = 1 if kind == b"LIST" else 0
    words = answer[:start]
    for at in range(start, len(answer), _NARROW):
        words += answer[at : at + _NARROW]
        words.append(b"0")
    return words
