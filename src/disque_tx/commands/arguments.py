"""What the words of a request mean: numbers, time-outs, job IDs, cursors (client protocol, 6)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.job import valid_id
from disque_tx.errors import CommandError

_INT64_MAX: Final = (1 << 63) - 1
_INT64_MIN: Final = -(1 << 63)
#: A number that no 64-bit word holds; what :func:`integer` answers for anything that is none.
NOT_A_NUMBER: Final = 1 << 64
#: Nothing below waits longer than this; larger time-outs are none (milliseconds).
_FOREVER_MS: Final = 1 << 61


def integer(word: bytes) -> int:
    """An optional sign and decimal digits, in the signed 64-bit range; else ``NOT_A_NUMBER``."""
    size: i64 = len(word)
    if 0 < size < 19:
        # Nearly every number is a short one without sign.
        short: i64 = 0
        at: i64 = 0
        while at < size:
            digit: i64 = word[at] - 48
            if not 0 <= digit <= 9:
                break
            short = short * 10 + digit
            at += 1
        if at == size:
            return short
    digits = word[1:] if word[:1] in (b"-", b"+") else word
    if len(digits) > 64 or not digits.isdigit():
        return NOT_A_NUMBER
    value = int(word)
    return value if _INT64_MIN <= value <= _INT64_MAX else NOT_A_NUMBER


def required_integer(word: bytes) -> int:
    """Like :func:`integer`; raises the generic error for anything that is no number."""
    value = integer(word)
    if value == NOT_A_NUMBER:
        raise CommandError("ERR", "value is not an integer or out of range")
    return value


def timeout_ms(word: bytes) -> i64:
    """A time-out in milliseconds, 0 for none (section 6.2)."""
    value = integer(word)
    if value == NOT_A_NUMBER:
        raise CommandError("ERR", "timeout is not an integer or out of range")
    if value < 0:
        raise CommandError("ERR", "timeout is negative")
    return value if value < _FOREVER_MS else 0


def job_ids(argv: list[bytes]) -> list[bytes]:
    """All words behind the command as job IDs; nothing is done when one of them is none."""
    ids = argv[1:]
    for job_id in ids:
        if not valid_id(job_id):
            raise CommandError("BADID", "Invalid Job ID format.")
    return ids


def cursor(word: bytes) -> int:
    """A scan cursor: an unsigned number (section 6.4)."""
    if not word:
        return 0
    value = integer(word) if len(word) < 21 else NOT_A_NUMBER
    if value == NOT_A_NUMBER:
        unsigned = word.isdigit() and len(word) <= 20 and int(word) < 1 << 64
        if not unsigned:
            raise CommandError("ERR", "invalid cursor or option name")
        return int(word)
    return value & ((1 << 64) - 1)
