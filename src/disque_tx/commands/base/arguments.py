"""The words of a request: numbers, time-outs, job IDs and cursors (client protocol, section 6); how
error texts quote them (section 4); and which of them are passwords.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import valid_id
from disque_tx.errors import CommandError

_INT64_MAX: Final = (1 << 63) - 1
_INT64_MIN: Final = -(1 << 63)
#: A number that no 64-bit word holds: what :func:`integer` returns for what is not a number.
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
    """Like :func:`integer`; raises the generic error for anything that is not a number."""
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
    """All words after the command as job IDs; refused as a whole when one of them is malformed."""
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


def quoted(word: bytes) -> str:
    """A word of the request as an error text quotes it: up to its first NUL."""
    return word.partition(b"\0")[0].decode("latin-1")


def wrong_arguments(name: bytes) -> CommandError:
    """The error for a wrong number of words; ``name``: the original lower-case command name."""
    return CommandError("ERR", f"wrong number of arguments for '{name.decode('latin-1')}' command")


MASK: Final = b"(redacted)"
#: The directives that are passwords.
_PASSWORDS: Final = ([b"requirepass"], [b"readonly-password"])


def mask(argv: list[bytes], name: bytes = b"") -> list[bytes]:
    """The request with its passwords replaced; the same list when it has none.

    ``name``: the command's original name in lower case, for one that goes by another name;
    otherwise the first word counts.
    """
    hidden = _hidden(name if name else argv[0].lower(), argv)
    if not hidden:
        return argv
    return [MASK if place in hidden else word for place, word in enumerate(argv)]


def _hidden(name: bytes, argv: list[bytes]) -> list[int]:
    """The positions of the passwords."""
    if name == b"auth":
        return list(range(1, len(argv)))
    if name == b"config":
        words = [word.lower() for word in argv[1:3]]
        secret = words[:1] == [b"set"] and words[1:] in _PASSWORDS
        return list(range(3, len(argv))) if secret else []
    if name == b"hello":
        return _hidden_in_hello(argv)
    return []


def _hidden_in_hello(argv: list[bytes]) -> list[int]:
    """User and password after every AUTH, even where the request is malformed."""
    places: list[int] = []
    for place in range(2, len(argv)):
        if argv[place].lower() == b"auth":
            places += [place + 1, place + 2]
    return places
