"""The header of bus messages (cluster protocol, section 3).

off  size  field, in network order
  0     4  signature
  4     4  length of header and body
  8     2  version, always 1
 12     2  type
 14     2  number of gossip entries, or of messages in a bulk
 16    40  ID of the sender
 56    46  address at which the sender wants to be called *
102     2  bus port of the sender *
104     8  epoch of the connection *
112     8  serial of the message *
120     4  features of the sender *
124     8  what the wall clock of the sender shows, in unix milliseconds *
132     4  mark of the name of the sender's cluster *
136     2  client port of the sender
138     2  node flags of the sender
141     1  message flags
142     2  mark of the password of the sender's cluster *
144        body, by type

``*`` are ours; the original leaves them zero and looks at none of them, as all bytes not listed.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.errors import LocalError
from disque_tx.messages.bus import Message, Sender
from disque_tx.messages.bustypes import BULK
from disque_tx.messages.records import NODE_ID_LENGTH

SIGNATURE: Final = b"DbuZ"
VERSION: Final = 1
HEADER_BYTES: Final = 144
START_BYTES: Final = 8
#: Bytes for an address as text; the original looks for a zero byte among them.
IP_FIELD_BYTES: Final = 46

_START: Final = struct.Struct(">4sI")
#: The fields behind the length; read without the address, which is rarely set.
_TAIL: Final = struct.Struct(">HxxHH40s46sHQQIQIHHxBH")
_TAIL_FIELDS: Final = struct.Struct(">HxxHH40s46xHQQIQIHHxBH")
_SENDER_AT: Final = 16
_IP_AT: Final = 56
#: The fields up to the count, and where they end.
_TO_COUNT: Final = struct.Struct(">4sIHxxHH")
_COUNT_END: Final = 16
_REST_KEY: Final = -1
#: Headers remembered per sender.
_HEADERS_MAX: Final = 512
_NUMBER_END: Final = 1 << 63
#: Of the marks of a cluster, that of the password stands in the low bits.
_PASSWORD_BITS: Final = 16
_PASSWORD_MASK: Final = (1 << 16) - 1
_IP_CHARACTERS: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz.:"


# -- to bytes ----------------------------------------------------------------------------------


def header_of(message: Message, count: i64, body_bytes: i64) -> bytes:
    """The header of a message with a body of this size; ``LocalError`` for what does not fit into
    its field."""
    signer = message.signer
    numbered = message.epoch | message.serial | message.features | message.mflags
    if signer is not None and numbered == 0:
        return _signed(signer, message.type, count, body_bytes)
    return _START.pack(SIGNATURE, HEADER_BYTES + body_bytes) + _TAIL.pack(
        VERSION,
        message.type,
        count,
        sized(message.sender, NODE_ID_LENGTH, "sender"),
        ip_field(message.ip),
        message.bus_port,
        message.epoch,
        message.serial,
        message.features,
        message.clock_ms,
        message.cluster >> _PASSWORD_BITS,
        message.port,
        message.flags,
        message.mflags,
        message.cluster & _PASSWORD_MASK,
    )


def _signed(sender: Sender, kind: i64, count: i64, body_bytes: i64) -> bytes:
    """The header of a message that has no numbers of its own: what stands behind the count is the
    same for all of them."""
    rest = sender.headers.get(_REST_KEY)
    if rest is None:
        message = Message(kind)
        sender.sign(message)
        message.signer = None
        rest = sender.headers[_REST_KEY] = header_of(message, 0, 0)[_COUNT_END:]
    return _TO_COUNT.pack(SIGNATURE, HEADER_BYTES + body_bytes, VERSION, kind, count) + rest


def plain_header(sender: Sender, kind: i64, mflags: i64, body_bytes: i64) -> bytes:
    """The header of a message without numbers; made once per sender, type, flags and size, as long
    as the size is one of few."""
    key = (body_bytes * 64 + kind) * 256 + mflags
    header = sender.headers.get(key)
    if header is None:
        message = Message(kind)
        message.mflags = mflags
        sender.sign(message)
        header = header_of(message, 0, body_bytes)
        if len(sender.headers) < _HEADERS_MAX:
            sender.headers[key] = header
    return header


def bulk_header(sender: Sender, count: i64, body_bytes: i64) -> bytes:
    """The header of a bulk of ``count`` messages."""
    return _signed(sender, BULK, count, body_bytes)


def sized(text: bytes, length: int, what: str) -> bytes:
    """``text``; ``LocalError`` when it has not this length."""
    if len(text) != length:
        raise LocalError(f"{what} of {len(text)} bytes in a bus message, it must have {length}")
    return text


def ip_field(ip: bytes) -> bytes:
    """``ip``; ``LocalError`` when no zero byte would be left behind it in its field."""
    if len(ip) >= IP_FIELD_BYTES:
        raise LocalError(f"address of {len(ip)} bytes, the bus carries {IP_FIELD_BYTES - 1}")
    return ip


# -- from bytes --------------------------------------------------------------------------------


def read_header(message: Message, data: bytes, start: i64) -> bool:
    """Give the message the fields of the header at ``start``, but for its type; ``False`` when it
    has a number out of range, which does not tell whether it is new: only gossip is processed."""
    tail = _TAIL_FIELDS.unpack_from(data, start + START_BYTES)
    message.sender = tail[3]
    message.port = tail[10]
    message.flags = tail[11]
    message.mflags = tail[12]
    if int(tail[5]) >= _NUMBER_END or int(tail[6]) >= _NUMBER_END:
        return False
    message.bus_port = tail[4]
    message.epoch = tail[5]
    message.serial = tail[6]
    message.features = tail[7]
    if int(tail[8]) < _NUMBER_END:
        message.clock_ms = tail[8]
    message.cluster = (i64(tail[9]) << _PASSWORD_BITS) | i64(tail[13])
    ip_at = start + _IP_AT
    if data[ip_at] != 0:
        message.ip = clean_ip(data[ip_at : ip_at + IP_FIELD_BYTES])
    return True


def is_plain(data: bytes, start: i64, sender: bytes) -> bool:
    """Whether the header at ``start`` is of this version and sender, with numbers in range."""
    return (
        data[start + 8] == 0
        and data[start + 9] == VERSION
        and data[start + 104] < 128
        and data[start + 112] < 128
        and data[start + _SENDER_AT : start + _SENDER_AT + NODE_ID_LENGTH] == sender
    )


def clean_ip(field: bytes) -> bytes:
    """The text before the first zero byte; empty without one, or with what no address holds."""
    ip, zero, _ = field.partition(b"\0")
    return ip if zero and not ip.strip(_IP_CHARACTERS) else b""
