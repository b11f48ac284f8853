"""Messages of the cluster bus as bytes, and back (cluster protocol, sections 3, 4, 6 and 21).

Any message can be read as a value by :meth:`BusParser.next`. Who takes many of them reads the hot
ones without objects: :meth:`BusParser.advance`, then :meth:`BusParser.read_hot`, and
:meth:`BusParser.message` for what is left.
"""

from __future__ import annotations

import struct
from typing import Final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.bus import Bulk, Gossip, Message
from disque_tx.messages.bustypes import ALL_FEATURES, BULK, CAN_BULK, REPLJOB
from disque_tx.messages.limits import U16_MAX, U32_MAX
from disque_tx.wire.bus.bodies import PREFIX_BYTES, SIGNAL_BYTES
from disque_tx.wire.bus.bulk import (
    HotMessages,
    is_bulk,
    is_signal,
    read_bulk,
    read_copy,
    read_signal,
)
from disque_tx.wire.bus.formats import known_type
from disque_tx.wire.bus.header import (
    HEADER_BYTES,
    START_BYTES,
    VERSION,
    header_of,
    is_plain,
    read_header,
)
from disque_tx.wire.jobs.codec import RecordReader, record_end

#: Enough for the MEET of a node that knows 600 others; no unknown node needs more.
STRANGER_BYTES_MAX: Final = 64 * 1024
#: The largest job a client can make, with room for its queue, its nodes and the header.
PEER_BYTES_MAX: Final = 513 * 1024 * 1024

#: The signature as a number.
_SIGNATURE: Final = 0x4462755A
_TYPE_AT: Final = 12
_COUNT_AT: Final = 14
_MFLAGS_AT: Final = 141


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
    known = known_type(message.type)
    if known is None:
        raise LocalError(f"a bus message of the unknown type {message.type}")
    parts = known.format.parts(message)
    size: i64 = 0
    for part in parts:
        size += len(part)
    return b"".join([header_of(message, known.format.count(message), size), *parts])


class BusParser:
    """Messages out of a stream of bytes.

    ``limit_bytes``: length of the longest message; may be changed between any two messages.
    ``received``: messages that were complete; those in a bulk count one by one. ``ignored``: those
    of them that cannot be used: of another version, of an unknown type, or of a length that is not
    what type and counts ask for. ``features``: those of this node; types that need another one are
    unknown. Nothing is allocated because a header announces it.
    """

    __slots__ = (
        "_at",
        "_data",
        "_late",
        "_length",
        "_missing",
        "_pos",
        "_records",
        "features",
        "ignored",
        "limit_bytes",
        "received",
    )

    def __init__(self, limit_bytes: i64) -> None:
        self.limit_bytes: i64 = limit_bytes
        self.received: i64 = 0
        self.ignored: i64 = 0
        self.features: i64 = ALL_FEATURES
        self._records = RecordReader()
        self._data: bytes = b""
        self._pos: i64 = 0
        # Where the message found last starts, and its length.
        self._at: i64 = 0
        self._length: i64 = 0
        # While a message is incomplete, what arrives waits in _late until _missing is 0.
        self._late: bytearray = bytearray()
        self._missing: i64 = 0

    def pending_bytes(self) -> int:
        """Bytes received that are not yet part of a complete message, or of one not asked for."""
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
        while self.advance():
            message = self.message()
            if message is not None:
                return message
        return None

    def advance(self) -> bool:
        """Go on to the next complete message, if there is one.

        Raises ``PeerError`` as :meth:`next`.
        """
        if self._missing > 0:
            return False
        data = self._data
        start = self._pos
        room = len(data) - start
        length = self._announced(data, start, room)
        if length < 0 or room < length:
            self._keep(start, length)
            return False
        self._at = start
        self._length = length
        self._pos = start + length
        return True

    def _announced(self, data: bytes, start: i64, room: i64) -> i64:
        """The length that the next header announces, -1 when that is not there yet."""
        if room < START_BYTES:
            return -1
        if read_i32_be(data, start) != _SIGNATURE:
            raise PeerError("the data on the bus does not start with the bus signature")
        length: i64 = i64(read_i32_be(data, start + 4)) & U32_MAX
        if length < HEADER_BYTES:
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

    # -- the message that was found ----------------------------------------------------------

    def message(self) -> Message | None:
        """The message as a value; ``None`` if it cannot be used."""
        data, start = self._data, self._at
        self.received += 1
        message = self._decoded(data, start)
        if message is None:
            self.ignored += 1
        elif isinstance(message, Bulk):
            self.received += len(message.messages) - 1
        return message

    def _decoded(self, data: bytes, start: i64) -> Message | None:
        if data[start + 8] != 0 or data[start + 9] != VERSION:
            return None
        kind = i64(read_i16_be(data, start + _TYPE_AT)) & U16_MAX
        count = i64(read_i16_be(data, start + _COUNT_AT)) & U16_MAX
        at = start + HEADER_BYTES
        end = start + self._length
        known = known_type(kind)
        if known is None or known.feature & ~self.features:
            return None
        message = known.format.read(kind, count, data, at, end)
        if message is None:
            return None
        if not read_header(message, data, start) and not isinstance(message, Gossip):
            return None
        if isinstance(message, Bulk):
            for one in message.messages:
                mflags = one.mflags
                read_header(one, data, start)
                one.mflags = mflags
        return message

    def read_hot(self, sender: bytes, to: HotMessages) -> bool:
        """Hand over the message if it is one of the hot types, or a bulk of them, undamaged and
        from ``sender``; ``False`` if it is to be read as a value."""
        data, start = self._data, self._at
        kind = i64(read_i16_be(data, start + _TYPE_AT))
        at = start + HEADER_BYTES
        size = self._length - HEADER_BYTES
        if is_signal(kind):
            if size != SIGNAL_BYTES or not is_plain(data, start, sender):
                return False
            self.received += 1
            read_signal(data, at, kind, data[start + _MFLAGS_AT], to)
            return True
        if kind == BULK:
            count = i64(read_i16_be(data, start + _COUNT_AT)) & U16_MAX
            end = at + size
            if not self.features & CAN_BULK or not is_plain(data, start, sender):
                return False
            if not is_bulk(count, data, at, end):
                return False
            self.received += count
            read_bulk(data, at, end, self._records, to)
            return True
        if kind == REPLJOB and size > PREFIX_BYTES and is_plain(data, start, sender):
            return self._read_copy(data, start, at, size, to)
        return False

    def _read_copy(self, data: bytes, start: i64, at: i64, size: i64, to: HotMessages) -> bool:
        announced = i64(read_i32_be(data, at + 4)) & U32_MAX
        if read_i32_be(data, at) != 1 or announced != size - PREFIX_BYTES:
            return False
        at += PREFIX_BYTES
        try:
            record_end(data, at, at + announced)
        except PeerError:
            return False
        self.received += 1
        read_copy(data, at, data[start + _MFLAGS_AT], self._records, to)
        return True
