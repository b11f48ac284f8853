"""The messages about shared tables as bytes (cluster protocol, section 21.3).

TABLE CHANGE; the count in the header is the number of registers::

off  size  field, in network order
  0     4  table: 1, policies; 2, schedules
  4     4  flags: 1 when it answers a TABLE PULL, 2 when there are no more registers behind these,
           4 when each register has a generation
  8        the registers

A register::

off  size  field, in network order
  0     8  counter
  8     8  when it was deleted, in seconds since 1970; 0 for a value
 16    40  ID of the node that made it
 56     2  p, bytes of the pattern
 58     2  n, bytes of the name of the setting
 60     4  v, bytes of the value
 64  p+n+v pattern, name and value
        8  generation, with flag 4 only

TABLE DIGEST: table, number of registers (4 bytes each), digest (8 bytes). TABLE PULL: table (4
bytes), p and n (2 bytes each), then pattern and name of the last register that is there already.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.errors import LocalError
from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import TABLE_CHANGE, TABLE_DIGEST
from disque_tx.messages.records import NODE_ID_LENGTH
from disque_tx.messages.tables import (
    CHANGES_MAX,
    NAME_BYTES_MAX,
    PATTERN_BYTES_MAX,
    REGISTER_BYTES,
    SCHEDULE_BYTES_MAX,
    SCHEDULES,
    VALUE_BYTES_MAX,
    Register,
    TableChange,
    TableDigest,
    TablePull,
)
from disque_tx.wire.bus.header import sized

_CHANGE: Final = struct.Struct(">II")
_REGISTER: Final = struct.Struct(">QQ40sHHI")
_DIGEST: Final = struct.Struct(">IIQ")
_PULL: Final = struct.Struct(">IHH")
_GENERATION: Final = struct.Struct(">Q")
_PULLED: Final = 1
_LAST: Final = 2
_GENERATIONS: Final = 4
_NUMBER_END: Final = 1 << 63


# -- to bytes ----------------------------------------------------------------------------------


def table_parts(message: Message) -> list[bytes]:
    """The body in pieces; ``LocalError`` and ``struct.error`` for what does not fit."""
    if isinstance(message, TableChange):
        if len(message.registers) > CHANGES_MAX:
            raise LocalError(f"{len(message.registers)} registers in a bus message")
        flags = (_PULLED if message.pulled else 0) | (_LAST if message.last else 0)
        if any(register.generation != 0 for register in message.registers):
            flags |= _GENERATIONS
        parts = [_CHANGE.pack(message.table, flags)]
        for register in message.registers:
            parts.append(_register_bytes(register))
            if flags & _GENERATIONS:
                parts.append(_GENERATION.pack(register.generation))
        return parts
    if isinstance(message, TableDigest):
        return [_DIGEST.pack(message.table, message.registers, message.digest)]
    if isinstance(message, TablePull):
        pattern, name = message.pattern, message.name
        return [_PULL.pack(message.table, len(pattern), len(name)), pattern, name]
    raise LocalError(f"a bus message of type {message.type} about a table")


def _register_bytes(register: Register) -> bytes:
    pattern, name, value = register.pattern, register.name, register.value
    node = sized(register.node, NODE_ID_LENGTH, "node ID")
    sizes = (len(pattern), len(name), len(value))
    numbers = (int(register.counter), int(register.deleted_s))
    return _REGISTER.pack(*numbers, node, *sizes) + pattern + name + value


# -- from bytes --------------------------------------------------------------------------------


def read_table(kind: i64, count: i64, data: bytes, at: i64, end: i64) -> Message | None:
    """The message whose body is between these positions; ``None`` if it is damaged. ``count``: of
    registers, as the header announces. The fields of the header are still missing in it."""
    if kind == TABLE_CHANGE:
        return _read_change(count, data, at, end)
    if kind == TABLE_DIGEST:
        if end - at != _DIGEST.size:
            return None
        table, registers, digest = _DIGEST.unpack_from(data, at)
        return TableDigest(digest, registers, table)
    return _read_pull(data, at, end)


def _read_change(count: i64, data: bytes, at: i64, end: i64) -> TableChange | None:
    if count > CHANGES_MAX or end - at < _CHANGE.size:
        return None
    table, flags = _CHANGE.unpack_from(data, at)
    at += _CHANGE.size
    value_bytes_max: i64 = SCHEDULE_BYTES_MAX if table == SCHEDULES else VALUE_BYTES_MAX
    generations = flags & _GENERATIONS != 0
    registers: list[Register] = []
    while len(registers) < count:
        register = _read_register(data, at, end, value_bytes_max)
        if register is None:
            return None
        at += register.wire_bytes()
        if generations:
            if end - at < _GENERATION.size:
                return None
            (generation,) = _GENERATION.unpack_from(data, at)
            if int(generation) >= _NUMBER_END:
                return None
            register.generation = generation
            at += _GENERATION.size
        registers.append(register)
    if at != end:
        return None
    return TableChange(registers, flags & _PULLED != 0, flags & _LAST != 0, table)


def _read_register(data: bytes, at: i64, end: i64, value_bytes_max: i64) -> Register | None:
    """The register at ``at``; ``None`` if it goes beyond ``end``, or holds what none can."""
    if end - at < REGISTER_BYTES:
        return None
    counter, deleted_s, node, *sizes = _REGISTER.unpack_from(data, at)
    pattern_bytes, name_bytes, value_bytes = sizes
    if int(counter) >= _NUMBER_END or int(deleted_s) >= _NUMBER_END:
        return None
    if pattern_bytes > PATTERN_BYTES_MAX or name_bytes > NAME_BYTES_MAX:
        return None
    if value_bytes > value_bytes_max:
        return None
    at += REGISTER_BYTES
    name_at: i64 = at + pattern_bytes
    value_at: i64 = name_at + name_bytes
    value_end: i64 = value_at + value_bytes
    if value_end > end:
        return None
    name, value = data[name_at:value_at], data[value_at:value_end]
    return Register(data[at:name_at], name, value, counter, node, deleted_s)


def _read_pull(data: bytes, at: i64, end: i64) -> TablePull | None:
    if end - at < _PULL.size:
        return None
    table, pattern_bytes, name_bytes = _PULL.unpack_from(data, at)
    at += _PULL.size
    name_at: i64 = at + pattern_bytes
    if name_at + name_bytes != end or pattern_bytes > PATTERN_BYTES_MAX:
        return None
    if name_bytes > NAME_BYTES_MAX:
        return None
    return TablePull(data[at:name_at], data[name_at:end], table)
