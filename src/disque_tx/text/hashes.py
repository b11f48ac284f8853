"""The numbers by which tables find entries: the hash of a name, and the place of a job."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i32, i64

#: The characters that a number is written with in a job ID, by their value.
ID_CHARACTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_VALUES: Final = bytes([max(0, ID_CHARACTERS.find(byte)) for byte in range(256)])
#: Where the number is in an ID, behind the node's (cluster protocol, section 15.2).
_FIRST: Final = 11
_COUNTING: Final = 5
#: Places have 7 bits behind the point: 2^32 times two and a half, times the golden ratio squared.
_PLACE_FACTOR: Final = 4_101_328_817


def hash32(key: bytes) -> i32:
    """The low 32 bits of the hash, as a signed number."""
    return _signed(i64(hash(key)))


def place32(job_id: bytes) -> i32:
    """Where a job has its place among others, as a signed number of 32 bits.

    IDs that a node makes one after the other have places one after the other. Multiplying them by
    the golden ratio keeps places even where every second or every hundredth job is left over. Any
    IDs may be given; those of originals have places all over.
    """
    values = _VALUES
    count: i64 = 0
    at: i64 = _FIRST
    end: i64 = min(_FIRST + _COUNTING, len(job_id))
    while at < end:  # a range would make an object of each number
        count = count << 6 | values[job_id[at]]
        at += 1
    return _signed(count * _PLACE_FACTOR >> 25)


def _signed(value: i64) -> i32:
    low = value % 0x1_0000_0000
    return i32(low if low < 0x8000_0000 else low - 0x1_0000_0000)
