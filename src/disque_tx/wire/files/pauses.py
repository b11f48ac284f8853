"""The text of the file of queues that PAUSE paused (cluster protocol, section 21.4).

Lines, with words quoted as in configuration files::

    # Queues paused by PAUSE at a node of disque-tx.
    version 1
    pause <1 in, 2 out, 3 both> <seconds since 1970> <queue> <who>
    checksum <hash of all lines before, in hexadecimal digits>
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from disque_tx.errors import PeerError
from disque_tx.text.quoting import quote, split
from disque_tx.wire.files.tables import checksum

#: Queue, flags, who, and seconds since 1970.
Row = tuple[bytes, int, bytes, int]

_TITLE: Final = b"# Queues paused by PAUSE at a node of disque-tx.\nversion 1\n"
_CHECKSUM: Final = b"checksum "
_FLAGS: Final = (b"1", b"2", b"3")
_DIGITS_MAX: Final = 18


def render(rows: Iterable[Row]) -> bytes:
    """The whole file."""
    lines = [_TITLE]
    for name, flags, who, at_s in rows:
        lines.append(b"pause %d %d %s %s\n" % (flags, at_s, quote(name), quote(who)))
    text = b"".join(lines)
    return text + _CHECKSUM + checksum(text) + b"\n"


def parse(text: bytes) -> list[Row]:
    """The rows of a file; ``PeerError`` with what is wrong with it."""
    if not text.startswith(_TITLE):
        raise PeerError("it begins with something else, or is of a later version")
    head, mark, found = text.rpartition(_CHECKSUM)
    if not mark or found != checksum(head) + b"\n":
        raise PeerError("its checksum is wrong or missing: it was not written to its end")
    rows: list[Row] = []
    for number, line in enumerate(head[len(_TITLE) :].split(b"\n"), 3):
        if not line:
            continue
        words = split(line)
        if words is None or len(words) != 5 or words[0] != b"pause" or words[1] not in _FLAGS:
            raise PeerError(f"line {number} is not one of its kinds")
        if not words[2].isdigit() or len(words[2]) > _DIGITS_MAX:
            raise PeerError(f"line {number} has no time")
        rows.append((words[3], int(words[1]), words[4], int(words[2])))
    return rows
