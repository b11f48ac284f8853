"""The text of the file of what happened at a node: its last actions, and the history of its queues
(cluster protocol, section 21.4).

Lines, with words quoted as in configuration files::

    # What happened at a node of disque-tx.
    version 1
    action <ms since 1970> <command> <who> <request> <why it was refused> <jobs, -1 if not known>
    record <weight> <queue> <points>, <points>, <points>
    checksum <hash of all lines before, in hexadecimal digits>

Actions are newest first. The first record is of all queues. The points of the three rings are
Base64 of numbers of 16 bits, little-endian.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from typing import Final

from disque_tx.errors import PeerError
from disque_tx.text.quoting import quote, split
from disque_tx.wire.files.tables import checksum

#: When, command, who, request, refusal, and how many jobs.
ActionRow = tuple[int, bytes, bytes, bytes, bytes, int]
#: Queue, weight, and the points of each ring.
RecordRow = tuple[bytes, int, list[bytes]]

_TITLE: Final = b"# What happened at a node of disque-tx.\nversion 1\n"
_CHECKSUM: Final = b"checksum "
_DIGITS_MAX: Final = 18
_RINGS: Final = 3


def render(actions: Iterable[ActionRow], records: Iterable[RecordRow]) -> bytes:
    """The whole file."""
    lines = [_TITLE]
    for at_ms, command, who, what, refused, jobs in actions:
        texts = b" ".join(map(quote, (command, who, what, refused)))
        lines.append(b"action %d %s %d\n" % (at_ms, texts, jobs))
    for name, weight, rings in records:
        points = b" ".join([quote(b2a_base64(ring, newline=False)) for ring in rings])
        lines.append(b"record %d %s %s\n" % (min(weight, 10**_DIGITS_MAX - 1), quote(name), points))
    text = b"".join(lines)
    return text + _CHECKSUM + checksum(text) + b"\n"


def parse(text: bytes) -> tuple[list[ActionRow], list[RecordRow]]:
    """The actions and the records of a file; ``PeerError`` with what is wrong with it."""
    if not text.startswith(_TITLE):
        raise PeerError("it begins with something else, or is of a later version")
    head, mark, found = text.rpartition(_CHECKSUM)
    if not mark or found != checksum(head) + b"\n":
        raise PeerError("its checksum is wrong or missing: it was not written to its end")
    actions: list[ActionRow] = []
    records: list[RecordRow] = []
    for number, line in enumerate(head[len(_TITLE) :].split(b"\n"), 3):
        if not line:
            continue
        words = split(line)
        if words is None or len(words) < 3 or not _is_number(words[1]):
            raise _bad(number)
        if words[0] == b"action" and len(words) == 7 and _is_number(words[6].removeprefix(b"-")):
            texts = (words[2], words[3], words[4], words[5])
            actions.append((int(words[1]), *texts, int(words[6])))
        elif words[0] == b"record" and len(words) == 3 + _RINGS:
            records.append((words[2], int(words[1]), [_points(word, number) for word in words[3:]]))
        else:
            raise _bad(number)
    return actions, records


def _is_number(word: bytes) -> bool:
    return word.isdigit() and len(word) <= _DIGITS_MAX


def _points(word: bytes, number: int) -> bytes:
    try:
        return a2b_base64(word, strict_mode=True)
    except ValueError:
        raise _bad(number) from None


def _bad(number: int) -> PeerError:
    return PeerError(f"line {number} is not one of its kinds")
