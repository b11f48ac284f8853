"""How each type of message on the bus is written and read: one table (cluster protocol, sections 3,
4 and 21).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.errors import LocalError
from disque_tx.messages.bus import Bulk, Gossip, Message, NodeForgotten, QueryMessage
from disque_tx.messages.bustypes import (
    BULK,
    DEMAND,
    FORGET,
    HANDOVER,
    HOLDERS,
    KEY_ANSWER,
    KEY_CHECK,
    KEY_COPY,
    KEY_RESERVE,
    NEEDMATCH,
    OWN_TYPES,
    QUERY,
    REPORT,
    TABLE_CHANGE,
    TABLE_DIGEST,
    TABLE_PULL,
    TYPES,
    MessageType,
)
from disque_tx.messages.demands import DemandMessage
from disque_tx.messages.handover import HandoverMessage
from disque_tx.messages.holders import HoldersMessage
from disque_tx.messages.keys import KeyMessage
from disque_tx.messages.records import NODE_ID_LENGTH
from disque_tx.messages.tables import TableChange
from disque_tx.wire.bus.bodies import body_parts, read_body
from disque_tx.wire.bus.bulk import bulk_parts, read_values
from disque_tx.wire.bus.demands import demand_parts, read_demand
from disque_tx.wire.bus.handover import handover_parts, read_handover
from disque_tx.wire.bus.header import sized
from disque_tx.wire.bus.holders import holders_parts, read_holders
from disque_tx.wire.bus.keys import key_body, read_keys
from disque_tx.wire.bus.queries import query_parts, read_query
from disque_tx.wire.bus.tables import read_table, table_parts


class Format:
    """The body of a message. This one is that of the original's types."""

    def parts(self, message: Message) -> list[bytes]:
        """The body in pieces; ``LocalError`` and ``struct.error`` for what does not fit."""
        return [*body_parts(message)]

    def count(self, message: Message) -> i64:
        """The count that the header announces."""
        return len(message.entries) if isinstance(message, Gossip) else 0

    def read(self, kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
        """The message whose body is ``data`` from ``at`` to ``end``, still without the fields of
        the header; ``None`` if the body is not what type and ``count`` ask for."""
        return read_body(kind, count, data, at, end - at)


class _TableFormat(Format):
    def parts(self, message: Message) -> list[bytes]:
        return table_parts(message)

    def count(self, message: Message) -> i64:
        return len(message.registers) if isinstance(message, TableChange) else 0

    def read(self, kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
        return read_table(kind, count, data, at, end)


class _BulkFormat(Format):
    def parts(self, message: Message) -> list[bytes]:
        if not isinstance(message, Bulk):
            raise _wrong(message)
        return bulk_parts(message)

    def count(self, message: Message) -> i64:
        return len(message.messages) if isinstance(message, Bulk) else 0

    def read(self, kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
        return read_values(count, data, at, end)


class _KeyFormat(Format):
    def parts(self, message: Message) -> list[bytes]:
        if not isinstance(message, KeyMessage):
            raise _wrong(message)
        return [key_body(message)]

    def count(self, message: Message) -> i64:
        return len(message.entries) if isinstance(message, KeyMessage) else 0

    def read(self, kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
        return read_keys(kind, count, data, at, end)


class _QueryFormat(Format):
    def parts(self, message: Message) -> list[bytes]:
        if not isinstance(message, QueryMessage):
            raise _wrong(message)
        return query_parts(message)

    def count(self, message: Message) -> i64:
        return 0

    def read(self, kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
        return read_query(kind, data, at, end)


class _DemandFormat(Format):
    def parts(self, message: Message) -> list[bytes]:
        if not isinstance(message, DemandMessage):
            raise _wrong(message)
        return demand_parts(message)

    def count(self, message: Message) -> i64:
        return len(message.entries) if isinstance(message, DemandMessage) else 0

    def read(self, kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
        return read_demand(count, data, at, end)


class _HoldersFormat(Format):
    def parts(self, message: Message) -> list[bytes]:
        if not isinstance(message, HoldersMessage):
            raise _wrong(message)
        return holders_parts(message)

    def count(self, message: Message) -> i64:
        return len(message.holders) if isinstance(message, HoldersMessage) else 0

    def read(self, kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
        return read_holders(count, data, at, end)


class _HandoverFormat(Format):
    def parts(self, message: Message) -> list[bytes]:
        if not isinstance(message, HandoverMessage):
            raise _wrong(message)
        return handover_parts(message)

    def count(self, message: Message) -> i64:
        return len(message.entries) if isinstance(message, HandoverMessage) else 0

    def read(self, kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
        return read_handover(count, data, at, end)


class _ForgetFormat(Format):
    def parts(self, message: Message) -> list[bytes]:
        if not isinstance(message, NodeForgotten):
            raise _wrong(message)
        return [sized(message.about, NODE_ID_LENGTH, "node ID")]

    def read(self, kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
        return NodeForgotten(data[at:end]) if end - at == NODE_ID_LENGTH else None


def _wrong(message: Message) -> LocalError:
    return LocalError(f"a bus message of type {message.type} with the body of another type")


_TABLE: Final = _TableFormat()
_KEY: Final = _KeyFormat()
_QUERY: Final = _QueryFormat()
_ORIGINAL: Final = Format()
#: Types of ours → their formats; those of the original have one in common.
_FORMATS: Final[dict[int, Format]] = {
    TABLE_CHANGE: _TABLE,
    TABLE_DIGEST: _TABLE,
    TABLE_PULL: _TABLE,
    BULK: _BulkFormat(),
    KEY_RESERVE: _KEY,
    KEY_ANSWER: _KEY,
    KEY_COPY: _KEY,
    KEY_CHECK: _KEY,
    NEEDMATCH: _QUERY,
    QUERY: _QUERY,
    REPORT: _QUERY,
    DEMAND: _DemandFormat(),
    FORGET: _ForgetFormat(),
    HOLDERS: _HoldersFormat(),
    HANDOVER: _HandoverFormat(),
}


class KnownType:
    """A type of message, and how it is written and read."""

    __slots__ = ("feature", "format")

    def __init__(self, known: MessageType) -> None:
        self.feature: i64 = known.feature
        self.format: Format = _ORIGINAL if known.number < OWN_TYPES else _FORMATS[int(known.number)]


_KNOWN: Final[dict[int, KnownType]] = {int(one.number): KnownType(one) for one in TYPES}
#: By number; ``None`` for numbers that no type has.
_BY_NUMBER: Final[list[KnownType | None]] = [_KNOWN.get(n) for n in range(max(_KNOWN) + 1)]


def known_type(kind: i64) -> KnownType | None:
    """The type with this number."""
    return _BY_NUMBER[kind] if kind < len(_BY_NUMBER) else None
