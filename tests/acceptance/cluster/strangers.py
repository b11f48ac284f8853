"""Messages that a stranger may send to the port of the bus, made without the code under test."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "bus"
HEADER_BYTES = 144
REPLJOB = 4
YOURJOBS = 13
NEEDJOBS = 12
NOBODY = "b" * 40
_U32 = struct.Struct(">I")
_U16 = struct.Struct(">H")
_LE32 = struct.Struct("<I")
_LENGTH_AT, _TYPE_AT, _COUNT_AT, _SENDER_AT = 4, 12, 14, 16
_SIZE_AT = HEADER_BYTES + 4
_JOB_AT = HEADER_BYTES + 8
_QUEUE_AT = _JOB_AT + 72


def recorded(name: str, number: int = 0) -> bytearray:
    """A message recorded from the original."""
    rows: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())
    return bytearray.fromhex(rows[number]["hex"])


def sent_by(message: bytearray, sender: str) -> bytearray:
    """The message with another sender."""
    message[_SENDER_AT : _SENDER_AT + 40] = sender.encode()
    return message


def relength(message: bytearray) -> bytearray:
    """The message with the correct length in its header."""
    _U32.pack_into(message, _LENGTH_AT, len(message))
    return message


def huge_header(size: int) -> bytes:
    """A header that announces ``size`` bytes, without any of them."""
    message = recorded("PING")
    _U32.pack_into(message, _LENGTH_AT, size)
    return bytes(message)


def node_count(count: int, sender: str) -> bytes:
    """A REPLJOB whose job claims to be on ``count`` nodes."""
    message = sent_by(recorded("REPLJOB"), sender)
    queue = int(_LE32.unpack_from(message, _QUEUE_AT)[0])
    body_at = _QUEUE_AT + 4 + queue
    body = int(_LE32.unpack_from(message, body_at)[0])
    _LE32.pack_into(message, body_at + 4 + body, count)
    return bytes(message)


def data_size(size: int, sender: str) -> bytes:
    """A REPLJOB that claims ``size`` bytes of jobs."""
    message = sent_by(recorded("REPLJOB"), sender)
    _U32.pack_into(message, _SIZE_AT, size)
    return bytes(message)


def queue_length(length: int, sender: str) -> bytes:
    """A NEEDJOBS that claims a queue name of ``length`` bytes."""
    message = sent_by(recorded("NEEDJOBS"), sender)
    _U32.pack_into(message, _SIZE_AT, length)
    return bytes(message)


def gossip_count(count: int, sender: str) -> bytes:
    """A PING that claims ``count`` entries of gossip."""
    message = sent_by(recorded("PING"), sender)
    _U16.pack_into(message, _COUNT_AT, count)
    return bytes(message)


def many_jobs(count: int, sender: str) -> bytes:
    """A YOURJOBS that claims ``count`` jobs and has one."""
    message = sent_by(recorded("REPLJOB"), sender)
    _U16.pack_into(message, _TYPE_AT, YOURJOBS)
    _U32.pack_into(message, HEADER_BYTES, count)
    return bytes(message)


def truncated_jobs(sender: str) -> list[bytes]:
    """A REPLJOB truncated after every byte of its job; the lengths of header and body are
    correct."""
    whole = sent_by(recorded("REPLJOB"), sender)
    messages = []
    for end in range(_JOB_AT, len(whole)):
        message = relength(bytearray(whole[:end]))
        _U32.pack_into(message, _SIZE_AT, end - _JOB_AT)
        messages.append(bytes(message))
    return messages


def meet(sender: str = NOBODY) -> bytes:
    """A MEET, which asks to join the cluster."""
    return bytes(sent_by(recorded("MEET"), sender))


def ping(sender: str = NOBODY) -> bytes:
    """A PING without gossip."""
    return bytes(sent_by(recorded("PING"), sender))


def unknown_type(number: int, sender: str) -> bytes:
    """A message of a type that does not exist."""
    message = sent_by(recorded("PING"), sender)
    _U16.pack_into(message, _TYPE_AT, number)
    return bytes(message)
