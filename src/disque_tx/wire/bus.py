"""The cluster bus as bytes (cluster protocol, sections 3, 4 and 6).

off  size  field, in network order
  0     4  signature
  4     4  length of header and body
  8     2  version, always 1
 12     2  type
 14     2  number of gossip entries
 16    40  ID of the sender
 56    46  address at which the sender wants to be called *
102     2  bus port of the sender *
104     8  epoch of the connection *
112     8  serial of the message *
136     2  client port of the sender
138     2  node flags of the sender
141     1  message flags
144        body, by type

``*`` are ours; the original leaves them zero and looks at none of them, as all bytes not listed.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.busmessages import BusSink, Gossip, JobSignal, Message
from disque_tx.errors import LocalError, PeerError
from disque_tx.messages import NODE_ID_LENGTH
from disque_tx.wire.busbodies import (
    IP_FIELD_BYTES,
    body_parts,
    clean_ip,
    ip_field,
    read_body,
    sized,
)

#: Enough for the MEET of a node that knows 600 others; no unknown node needs more.
STRANGER_BYTES_MAX: Final = 64 * 1024
#: The largest job a client can make, with room for its queue, its nodes and the header.
PEER_BYTES_MAX: Final = 513 * 1024 * 1024

_SIGNATURE: Final = b"DbuZ"
_VERSION: Final = 1
_START: Final = struct.Struct(">4sI")
_START_BYTES: Final = 8
_HEADER_BYTES: Final = 144
#: The fields between length and body; read without the address, which is rarely set.
_TAIL: Final = struct.Struct(">HxxHH40s46sHQQ16xHHxB2x")
_TAIL_FIELDS: Final = struct.Struct(">HxxHH40s46xHQQ16xHHxB2x")
_IP_AT: Final = 56
#: Length of a message about a job, and its first bytes.
_SIGNAL_MESSAGE_BYTES: Final = _HEADER_BYTES + 44
_SIGNAL_START: Final = _START.pack(_SIGNATURE, _SIGNAL_MESSAGE_BYTES)
_NUMBER_END: Final = 1 << 63


# -- to bytes ----------------------------------------------------------------------------------


class _Tails:
    """Finished headers of one sender, while its own fields stay the same: all but the
    length, by type and message flags."""

    __slots__ = ("bus_port", "flags", "ip", "port", "tails")

    def __init__(self, message: Message) -> None:
        self.port: i64 = message.port
        self.flags: i64 = message.flags
        self.ip: bytes = message.ip
        self.bus_port: i64 = message.bus_port
        self.tails: dict[int, bytes] = {}

    def fit(self, message: Message) -> bool:
        """Whether the sender's own fields are still the same."""
        return (
            self.port == message.port
            and self.flags == message.flags
            and self.bus_port == message.bus_port
            and (self.ip is message.ip or self.ip == message.ip)
        )


_senders: Final[dict[bytes, _Tails]] = {}
#: Senders remembered; a process has one, a simulated cluster some.
_SENDERS_MAX: Final = 256


def encode(message: Message) -> bytes:
    """The message as it goes over the wire, made once: afterwards it must not change.

    Raises ``LocalError`` when something in it does not fit into its field.
    """
    data = message.encoded
    if not data:
        try:
            data = _encode(message)
        except struct.error as error:
            raise LocalError(f"bus message of type {message.type}: {error}") from None
        message.encoded = data
    return data


def _encode(message: Message) -> bytes:
    parts = body_parts(message)
    if isinstance(message, JobSignal):
        return b"".join((_SIGNAL_START, _known_tail(message), *parts))
    size: i64 = _HEADER_BYTES
    for part in parts:
        size += len(part)
    start = _START.pack(_SIGNATURE, size)
    if isinstance(message, Gossip):
        return b"".join((start, _tail(message, len(message.entries)), *parts))
    return b"".join((start, _known_tail(message), *parts))


def _known_tail(message: Message) -> bytes:
    """The header after the length, of a message that is not gossip."""
    if message.serial or message.epoch:
        return _tail(message, 0)
    known = _senders.get(message.sender)
    if known is None or not known.fit(message):
        if len(_senders) >= _SENDERS_MAX:
            _senders.clear()
        known = _Tails(message)
        _senders[message.sender] = known
    key = message.type * 256 + message.mflags
    tail = known.tails.get(key)
    if tail is None:
        tail = _tail(message, 0)
        known.tails[key] = tail
    return tail


def _tail(message: Message, count: i64) -> bytes:
    return _TAIL.pack(
        _VERSION,
        message.type,
        count,
        sized(message.sender, NODE_ID_LENGTH, "sender"),
        ip_field(message.ip),
        message.bus_port,
        message.epoch,
        message.serial,
        message.port,
        message.flags,
        message.mflags,
    )


class BusWriter(BusSink):
    """The messages sent on one link in one turn, to be taken and written in one piece.

    ``written``: the list to which it adds itself when it has something to write, once until that is
    taken. ``pending_bytes``: how much that is.
    """

    __slots__ = ("_chunks", "_written", "pending_bytes")

    def __init__(self, written: list[BusWriter]) -> None:
        self.pending_bytes: i64 = 0
        self._written: list[BusWriter] = written
        self._chunks: list[bytes] = []

    def send(self, message: Message) -> None:
        data = encode(message)
        chunks = self._chunks
        if not chunks:
            self._written.append(self)
        chunks.append(data)
        self.pending_bytes += len(data)

    def take(self) -> bytes:
        """Everything sent since the last call, in order."""
        chunks = self._chunks
        self._chunks = []
        self.pending_bytes = 0
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)


# -- from bytes --------------------------------------------------------------------------------


class BusParser:
    """Messages out of a stream of bytes.

    ``limit_bytes``: length of the longest message; may be changed between any two messages.
    ``received``: messages that were complete. ``ignored``: those of them that cannot be used: of
    another version, of an unknown type, or of a length that is not what type and counts ask for.
    Nothing is allocated because a header announces it.
    """

    __slots__ = ("_data", "_late", "_missing", "_pos", "ignored", "limit_bytes", "received")

    def __init__(self, limit_bytes: i64) -> None:
        self.limit_bytes: i64 = limit_bytes
        self.received: i64 = 0
        self.ignored: i64 = 0
        self._data: bytes = b""
        self._pos: i64 = 0
        # While a message is incomplete, what arrives waits in _late until _missing is 0.
        self._late: bytearray = bytearray()
        self._missing: i64 = 0

    def pending_bytes(self) -> int:
        """Bytes received that are no part of a complete message yet, or of one not asked for."""
        return len(self._data) - self._pos + len(self._late)

    def feed(self, data: bytes) -> None:
        """Add bytes received from the socket."""
        if self._missing > 0:
            self._late += data
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = bytes(self._late)
            self._late = bytearray()
        if self._pos < len(self._data):
            data = self._data[self._pos :] + data
        self._data = data
        self._pos = 0

    def next(self) -> Message | None:
        """The next message that can be used; ``None`` when there is no complete one.

        Raises ``PeerError`` for malformed bytes: the connection must be closed then.
        """
        if self._missing > 0:
            return None
        data = self._data
        size: i64 = len(data)
        while True:
            start = self._pos
            length = self._length(data, start, size)
            if length < 0 or size - start < length:
                self._keep(start, length)
                return None
            self._pos = start + length
            self.received += 1
            message = _decode(data, start, length)
            if message is not None:
                return message
            self.ignored += 1

    def _length(self, data: bytes, start: i64, size: i64) -> i64:
        """The length that the next header announces, -1 when that is not there yet."""
        if size - start < _START_BYTES:
            return -1
        if not data.startswith(_SIGNATURE, start):
            raise PeerError("the data on the bus does not start with the bus signature")
        length: i64 = _START.unpack_from(data, start)[1]
        if length < _HEADER_BYTES:
            raise PeerError(f"bus message of {length} bytes, shorter than its header")
        if length > self.limit_bytes:
            raise PeerError(f"bus message of {length} bytes, the limit is {self.limit_bytes}")
        return length

    def _keep(self, start: i64, length: i64) -> None:
        """The message at ``start`` is incomplete: keep what is there, and nothing else."""
        rest = self._data[start:]
        self._pos = 0
        if length < 0:
            self._data = rest
        else:
            self._data = b""
            self._late = bytearray(rest)
            self._missing = length - len(rest)


def _decode(data: bytes, start: i64, length: i64) -> Message | None:
    """The message of ``length`` bytes, at least a header, at ``start``; ``None`` to ignore it."""
    tail = _TAIL_FIELDS.unpack_from(data, start + _START_BYTES)
    if tail[0] != _VERSION:
        return None
    message = read_body(tail[1], tail[2], data, start + _HEADER_BYTES, length - _HEADER_BYTES)
    if message is None:
        return None
    message.sender = tail[3]
    message.port = tail[7]
    message.flags = tail[8]
    message.mflags = tail[9]
    if int(tail[5]) < _NUMBER_END and int(tail[6]) < _NUMBER_END:
        message.bus_port = tail[4]
        message.epoch = tail[5]
        message.serial = tail[6]
        ip_at = start + _IP_AT
        if data[ip_at] != 0:
            message.ip = clean_ip(data[ip_at : ip_at + IP_FIELD_BYTES])
    elif not isinstance(message, Gossip):
        # A number out of range does not tell whether the message is new; gossip is always
        # processed.
        return None
    return message
