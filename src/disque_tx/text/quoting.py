"""The shell-like quoting of inline requests, configuration files, nodes files and the prompt.

Client protocol, section 3.2. ``split`` and ``quote`` are each other's inverse.
"""

from __future__ import annotations

from typing import Final

_SPACE: Final = b" \t\n\v\f\r"
_END_OF_WORD: Final = b" \n\r\t"
_ESCAPES: Final = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7}
#: Quotes, and the two blanks that do not end a word: a line without them is split by Python.
_UNUSUAL: Final = (b'"', b"'", b"\v", b"\f")
_HEX: Final = b"0123456789abcdefABCDEF"
_QUOTED: Final = {
    10: b"\\n",
    13: b"\\r",
    9: b"\\t",
    8: b"\\b",
    7: b"\\a",
    34: b'\\"',
    92: b"\\\\",
}


class _Splitter:
    """One pass over a line; ``pos`` is the next byte to look at."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.pos = 0

    def words(self) -> list[bytes] | None:
        words: list[bytes] = []
        line = self.line
        size = len(line)
        while True:
            while self.pos < size and line[self.pos] in _SPACE:
                self.pos += 1
            if self.pos >= size:
                return words
            word = self._word()
            if word is None:
                return None
            words.append(word)

    def _word(self) -> bytes | None:
        out = bytearray()
        line = self.line
        size = len(line)
        while self.pos < size:
            byte = line[self.pos]
            if byte in _END_OF_WORD:
                break
            self.pos += 1
            if byte == 34 or byte == 39:
                closed = self._double(out) if byte == 34 else self._single(out)
                if not closed or (self.pos < size and line[self.pos] not in _SPACE):
                    return None
                break
            out.append(byte)
        return bytes(out)

    def _double(self, out: bytearray) -> bool:
        line = self.line
        size = len(line)
        while self.pos < size:
            byte = line[self.pos]
            self.pos += 1
            if byte == 34:
                return True
            if byte == 92 and self.pos < size:
                byte = line[self.pos]
                self.pos += 1
                pair = line[self.pos : self.pos + 2]
                if byte == 120 and len(pair) == 2 and pair[0] in _HEX and pair[1] in _HEX:
                    byte = int(pair, 16)
                    self.pos += 2
                else:
                    byte = _ESCAPES.get(byte, byte)
            out.append(byte)
        return False

    def _single(self, out: bytearray) -> bool:
        line = self.line
        size = len(line)
        while self.pos < size:
            byte = line[self.pos]
            self.pos += 1
            if byte == 39:
                return True
            if byte == 92 and self.pos < size and line[self.pos] == 39:
                self.pos += 1
                byte = 39
            out.append(byte)
        return False


def split(line: bytes) -> list[bytes] | None:
    """The words of ``line``, or ``None`` when its quotes are unbalanced."""
    for byte in _UNUSUAL:
        if byte in line:
            return _Splitter(line).words()
    return line.split()


def quote(data: bytes) -> bytes:
    """``data`` in double quotes, with every byte that is not printable ASCII escaped."""
    out = bytearray(b'"')
    for byte in data:
        escaped = _QUOTED.get(byte)
        if escaped is not None:
            out += escaped
        elif 32 <= byte < 127:
            out.append(byte)
        else:
            out += b"\\x%02x" % byte
    out.append(34)
    return bytes(out)
