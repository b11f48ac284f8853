"""What the records of the append only file say, and where records lie in a damaged one
(cluster protocol, sections 14.2 and 14.6)."""

from __future__ import annotations

import re
from typing import Final

from disque_tx.errors import PeerError
from disque_tx.messages import JobRecord
from disque_tx.wire.aoflog import LogDecoder
from disque_tx.wire.jobcodec import decode_stored

_RECORD_START: Final = re.compile(rb"\n(?=\*2\r\n\$(?:7\r\nLOADJOB|6\r\nDELJOB)\r\n)")
_JOB_ID: Final = re.compile(rb"D-.{8}-.{24}-.{4}", re.DOTALL)
#: A body may contain what looks like the start of a record: so many are tried, so far each.
_STARTS_TRIED: Final = 100
_PIECE_BYTES: Final = 1024 * 1024


def understand(words: list[bytes]) -> JobRecord | bytes:
    """The job of a LOADJOB record, or the ID in a DELJOB record.

    Raises ``PeerError`` for any other record.
    """
    command = words[0].upper()
    if command not in (b"LOADJOB", b"DELJOB"):
        raise PeerError(f"unknown command {words[0][:40]!r}")
    if len(words) != 2:
        raise PeerError(f"{command.decode()} with {len(words) - 1} arguments instead of one")
    return decode_stored(words[1]) if command == b"LOADJOB" else words[1]


def holds_records(tail: bytes) -> bool:
    """Whether complete records lie somewhere behind the beginning of an incomplete one."""
    for number, match in enumerate(_RECORD_START.finditer(tail)):
        if number == _STARTS_TRIED:
            break
        decoder = LogDecoder()
        decoder.feed(tail[match.end() : match.end() + _PIECE_BYTES])
        try:
            words = decoder.next()
            record = understand(words) if words is not None else b""
        except PeerError:
            continue
        if isinstance(record, JobRecord) or _JOB_ID.fullmatch(record):
            return True
    return False
