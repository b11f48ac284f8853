"""Text forms of single values: whole numbers and memory sizes.

Client protocol, sections 6.1 and 6.5. Text that is not valid raises ``ValueError`` with a
message for people; an empty text is never a number.
"""

from __future__ import annotations

import re
from typing import Final

from disque_tx.text.quoting import quote

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

# Nineteen digits reach the end of the range; more are allowed for leading zeros. Longer texts are
# not converted.
_DIGITS_MAX: Final = 64
_INT: Final = re.compile(rb"[+-]?[0-9]+")
_MEMORY: Final = re.compile(rb"(-?[0-9]+)([a-z]*)")
_UNITS: Final = {
    b"": 1,
    b"b": 1,
    b"k": 1000,
    b"kb": 1024,
    b"m": 1000**2,
    b"mb": 1024**2,
    b"g": 1000**3,
    b"gb": 1024**3,
}
_EXACT_UNITS: Final = (b"gb", b"mb", b"kb")


def printable(data: bytes) -> str:
    """``data`` for a message: everything but printable ASCII is escaped."""
    return quote(data)[1:-1].decode("ascii")


def _bounded(digits: bytes) -> int | None:
    """The number, or ``None`` when it is outside the signed 64-bit range."""
    if len(digits) > _DIGITS_MAX:
        return None
    number = int(digits)
    return number if INT64_MIN <= number <= INT64_MAX else None


def parse_int(data: bytes) -> int:
    """A signed 64-bit decimal number (section 6.1); ``+5`` and ``007`` are fine."""
    number = _bounded(data) if _INT.fullmatch(data) else None
    if number is None:
        raise ValueError(f"Invalid number '{printable(data)}'")
    return number


def parse_memory(data: bytes) -> int:
    """Bytes from a number and a unit such as ``10mb`` (section 6.5), within signed 64 bits."""
    match = _MEMORY.fullmatch(data.lower())
    number = _bounded(match[1]) if match else None
    factor = _UNITS.get(match[2]) if match else None
    if number is None or factor is None or not INT64_MIN <= number * factor <= INT64_MAX:
        raise ValueError(f"Invalid memory size '{printable(data)}'")
    return number * factor


def show_memory(size_bytes: int) -> bytes:
    """The shortest exact form: the largest of gb, mb and kb that divides the size, if any."""
    for unit in _EXACT_UNITS:
        if size_bytes and size_bytes % _UNITS[unit] == 0:
            return b"%d%s" % (size_bytes // _UNITS[unit], unit)
    return b"%d" % size_bytes
