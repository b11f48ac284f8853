"""MessagePack, read for people: bodies of Celery with that serializer, and of others.

A body is a stranger's: what it announces is compared with the bytes that are there before anything
is made, and nesting and the number of values have limits.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from typing import Any, Final

DEPTH_MAX: Final = 32
#: So many are read within a few milliseconds, and are more than people read.
VALUES_MAX: Final = 2_000
#: First byte of a number → its struct; the length of texts and lists is written in the same way.
_NUMBERS: Final = {
    0xCA: struct.Struct(">f"),
    0xCB: struct.Struct(">d"),
    0xCC: struct.Struct(">B"),
    0xCD: struct.Struct(">H"),
    0xCE: struct.Struct(">I"),
    0xCF: struct.Struct(">Q"),
    0xD0: struct.Struct(">b"),
    0xD1: struct.Struct(">h"),
    0xD2: struct.Struct(">i"),
    0xD3: struct.Struct(">q"),
}
_U8, _U16, _U32 = _NUMBERS[0xCC], _NUMBERS[0xCD], _NUMBERS[0xCE]
_BYTES: Final = {0xC4: _U8, 0xC5: _U16, 0xC6: _U32}
_TEXTS: Final = {0xD9: _U8, 0xDA: _U16, 0xDB: _U32}
_EXTENSIONS: Final = {0xC7: _U8, 0xC8: _U16, 0xC9: _U32}
_FIXED_EXTENSIONS: Final = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_LISTS: Final = {0xDC: _U16, 0xDD: _U32}
_MAPS: Final = {0xDE: _U16, 0xDF: _U32}
_CONSTANTS: Final = {0xC0: None, 0xC2: False, 0xC3: True}


def is_container(data: bytes) -> bool:
    """Whether this begins like a list or a map; anything may begin like a number."""
    return bool(data) and (0x80 <= data[0] <= 0x9F or data[0] in _LISTS or data[0] in _MAPS)


def unpacked(data: bytes) -> Any:
    """The value as JSON has it: bytes are text where they are UTF-8, and otherwise an object with
    ``base64``; extensions are described; keys are text.

    :raises ValueError: these bytes are not one value of MessagePack, or it is beyond the limits.
    """
    reader = _Unpacker(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise ValueError("There is something behind the value.")
    return value


class _Unpacker:
    """``at``: the next byte."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._values = 0
        self.at = 0

    def value(self, depth: int) -> Any:
        """The next value."""
        self._values += 1
        if self._values > VALUES_MAX or depth > DEPTH_MAX:
            raise ValueError("There are too many values, or they are nested too deeply.")
        kind = self._take(1)[0]
        if kind < 0x80:
            return kind
        if kind >= 0xE0:
            return kind - 0x100
        if kind < 0xC0:
            return self._short(kind, depth)
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        return self._long(kind, depth)

    def _short(self, kind: int, depth: int) -> Any:
        """What has its length in the first byte."""
        if kind < 0x90:
            return self._map(kind & 0x0F, depth)
        if kind < 0xA0:
            return self._list(kind & 0x0F, depth)
        return _text(self._take(kind & 0x1F))

    def _long(self, kind: int, depth: int) -> Any:
        """What has its length behind the first byte."""
        if kind in _TEXTS:
            return _text(self._take(self._number(_TEXTS[kind])))
        if kind in _BYTES:
            return _shown(self._take(self._number(_BYTES[kind])))
        if kind in _LISTS:
            return self._list(self._number(_LISTS[kind]), depth)
        if kind in _MAPS:
            return self._map(self._number(_MAPS[kind]), depth)
        if kind in _EXTENSIONS:
            return self._extension(self._number(_EXTENSIONS[kind]))
        if kind in _FIXED_EXTENSIONS:
            return self._extension(_FIXED_EXTENSIONS[kind])
        raise ValueError("There is no such kind of value.")

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self._data):
            raise ValueError("The value is not complete.")
        found = self._data[self.at : end]
        self.at = end
        return found

    def _number(self, form: struct.Struct) -> Any:
        return form.unpack(self._take(form.size))[0]

    def _extension(self, size: int) -> str:
        kind = self._number(_NUMBERS[0xD0])
        self._take(size)
        return f"(extension {kind}, {size} bytes)"

    def _list(self, count: int, depth: int) -> list[Any]:
        self._check(count)
        return [self.value(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[str, Any]:
        self._check(2 * count)
        found: dict[str, Any] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            found[key if isinstance(key, str) else str(key)] = self.value(depth + 1)
        return found

    def _check(self, count: int) -> None:
        """Each value has a byte at least."""
        if count > len(self._data) - self.at:
            raise ValueError("The value is not complete.")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _shown(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}
