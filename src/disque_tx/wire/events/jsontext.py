"""Numbers and strings of JSON, written fast (see :mod:`disque_tx.wire.events.lines`)."""

from __future__ import annotations

import json
from typing import Final

from librt.strings import BytesWriter, read_i64_le
from mypy_extensions import i64

#: Eight bytes at once: the highest bit of each, and the least byte that JSON shows as it is, the
#: quote and the backslash, in each.
_HIGHEST: Final = -0x7F7F7F7F7F7F7F80
_SPACES: Final = 0x2020202020202020
_QUOTES: Final = 0x2222222222222222
_BACKSLASHES: Final = 0x5C5C5C5C5C5C5C5C
_ONES: Final = 0x0101010101010101
#: Numbers below a thousand; and with all three digits.
SMALL: Final = [b"%d" % number for number in range(1_000)]
PADDED: Final = [b"%03d" % number for number in range(1_000)]


def write_number(writer: BytesWriter, number: i64) -> None:
    """Decimal digits."""
    if 0 <= number < 1_000:
        writer.write(SMALL[number])
    else:
        writer.write(str(number).encode())


def write_quoted(writer: BytesWriter, data: bytes) -> None:
    """Any bytes as a JSON string, fast for what job IDs consist of."""
    if not _is_plain(data):
        writer.write(quoted(data).encode())
        return
    writer.append(34)
    writer.write(data)
    writer.append(34)


def _is_plain(data: bytes) -> bool:
    """Whether a text in JSON holds these bytes as they are; ``False`` for some that it does."""
    size: i64 = len(data)
    if size % 8:
        return False
    for at in range(0, size, 8):
        eight = read_i64_le(data, at)
        # With a highest bit in none of them, a difference has one where a byte was less.
        quoted = ((eight ^ _QUOTES) - _ONES) | ((eight ^ _BACKSLASHES) - _ONES)
        if (eight | (eight - _SPACES) | quoted) & _HIGHEST != 0:
            return False
    return True


def quoted(data: bytes) -> str:
    """Any bytes as a JSON string."""
    return json.dumps(text_of(data))


def text_of(data: bytes) -> str:
    """Any bytes as a text; what is not UTF-8 as ``\\xff``."""
    return data.decode("utf-8", "backslashreplace")
