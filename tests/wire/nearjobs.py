"""Nearly valid job records, and an independent, plain implementation of the checks that a reader
must make (cluster protocol, section 5)."""

from __future__ import annotations

import struct
from random import Random
from typing import Final

from disque_tx.messages.records import JobRecord
from disque_tx.wire.jobs.codec import encode_stored

_FIXED: Final = 76
_SHORTEST: Final = 84
_ID: Final = 40

#: Why a record is refused, in the order of the checks.
REFUSALS: Final = (
    *("too short", "creation time", "length", "queue", "body length", "body"),
    *("node count", "node IDs"),
)


def near(random: Random) -> bytes:
    """A record in storage form with up to two defects."""
    data = bytearray(encode_stored(_record(random)))
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        random.choice((_bend, _bend, _flip, _cut, _cut_and_say_so, _extend, _date))(random, data)
    return bytes(data)


def _record(random: Random) -> JobRecord:
    queue, body = (random.randbytes(random.choice((0, 1, 5, 30))) for _ in range(2))
    nodes = tuple(random.randbytes(_ID) for _ in range(random.choice((0, 1, 2, 3))))
    job_id, ctime = random.randbytes(_ID), random.getrandbits(63)
    etime_s, delay_s, retry_s = (random.getrandbits(32) for _ in range(3))
    repl = random.getrandbits(16)
    job = JobRecord(
        job_id, queue, body, nodes, ctime, etime_s, delay_s=delay_s, retry_s=retry_s, repl=repl
    )
    job.state, job.flags = random.getrandbits(4), random.getrandbits(8)
    job.nacks, job.deliveries = random.getrandbits(16), random.getrandbits(16)
    return job


def _lengths(data: bytes | bytearray) -> list[int]:
    """The offsets of the four lengths, as far as they can be found."""
    places = [0]
    at = _FIXED - 4
    while len(places) < 4 and at + 4 <= len(data):
        places.append(at)
        at += 4 + int.from_bytes(data[at : at + 4], "little")
    return [place for place in places if place + 4 <= len(data)]


def _bend(random: Random, data: bytearray) -> None:
    """A length is off by a little, or enormous."""
    places = _lengths(data)
    if places:
        place = random.choice(places)
        length = int.from_bytes(data[place : place + 4], "little")
        wrong = random.choice((length - 1, length + 1, length + random.randint(-90, 90), 2**32 - 1))
        struct.pack_into("<I", data, place, wrong % 2**32)


def _flip(random: Random, data: bytearray) -> None:
    """A byte changes."""
    if data:
        data[random.randrange(len(data))] ^= random.randint(1, 255)


def _cut(random: Random, data: bytearray) -> None:
    """The end is missing."""
    del data[random.randint(0, len(data)) :]


def _cut_and_say_so(random: Random, data: bytearray) -> None:
    """The end is missing, and the total length agrees; often right after a field."""
    ends = [at + 4 for at in _lengths(data)]
    end = random.choice((random.choice(ends or [0]), random.randint(0, len(data))))
    end = min(len(data), max(_SHORTEST, end + random.randint(-2, 2)))
    del data[end:]
    if len(data) >= 4:
        struct.pack_into("<I", data, 0, len(data) - 4)


def _extend(random: Random, data: bytearray) -> None:
    """Bytes follow the record, and often the total length includes them."""
    data += random.randbytes(random.choice((1, 4, 40, 44)))
    if random.random() < 0.5:
        struct.pack_into("<I", data, 0, len(data) - 4)


def _date(random: Random, data: bytearray) -> None:
    """The creation time is out of range."""
    data[59:60] = b"\xff"


def verdict(data: bytes) -> tuple[str, tuple[object, ...]]:
    """Why the record is refused, or an empty string and all its fields."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little")

    nothing: tuple[object, ...] = ()
    if len(data) < _SHORTEST:
        return "too short", nothing
    if number(52, 8) >= 2**63:
        return "creation time", nothing
    end = 4 + number(0, 4)
    if end > len(data):
        return "length", nothing
    body_at = _FIXED + number(72, 4)
    if body_at > end:
        return "queue", nothing
    if body_at + 4 > end:
        return "body length", nothing
    nodes_at = body_at + 4 + number(body_at, 4)
    if nodes_at > end:
        return "body", nothing
    if nodes_at + 4 > end:
        return "node count", nothing
    ids_at = nodes_at + 4
    if ids_at + _ID * number(nodes_at, 4) != end:
        return "node IDs", nothing
    return "", (
        data[4:44],
        data[_FIXED:body_at],
        data[body_at + 4 : nodes_at],
        tuple(data[at : at + _ID] for at in range(ids_at, end, _ID)),
        *(number(52, 8), number(48, 4), number(60, 4), number(64, 4)),
        *(number(46, 2), data[44] & 15, data[45], number(68, 2), number(70, 2)),
    )
