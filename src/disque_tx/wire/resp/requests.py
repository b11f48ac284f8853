"""From bytes to requests: the multibulk and inline forms (client protocol, section 3).

A parser holds what one client has sent and was not executed yet. It returns the next request,
``None`` for 'need more', or raises ``PeerError``, after which the connection must be closed.
Nothing is allocated because a header announces it: an argument exists when its bytes have arrived.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.errors import PeerError
from disque_tx.messages.records import RequestSource
from disque_tx.text.quoting import split

#: Limits of the original: words of a request, bytes of a word, bytes of a line.
MAX_ARGS: Final = 1024 * 1024
MAX_BULK: Final = 512 * 1024 * 1024
MAX_LINE: Final = 64 * 1024
#: What a client may send before it has authenticated.
MAX_ARGS_UNAUTHENTICATED: Final = 10
MAX_BULK_UNAUTHENTICATED: Final = 16 * 1024

_HTTP_VERBS: Final = frozenset(
    (b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"CONNECT")
)


class RequestParser(RequestSource):
    """Requests out of a stream of bytes."""

    __slots__ = ("_data", "_pos", "_late", "_missing", "_argc", "_argv", "_held")

    def __init__(self) -> None:
        super().__init__()
        self._data = b""
        self._pos: i64 = 0
        # While a large argument is incomplete, what arrives waits in _late until _missing is 0.
        self._late = bytearray()
        self._missing: i64 = 0
        # Arguments still to come of the request being read, and those that are here: none while
        # no request is being read.
        self._argc: i64 = 0
        self._argv: list[bytes] = []
        self._held: i64 = 0

    def pending_bytes(self) -> int:
        """Bytes received and not yet returned as part of a request."""
        return len(self._data) - self._pos + len(self._late) + self._held

    def feed(self, data: bytes) -> None:
        """Add bytes received from the socket."""
        size: i64 = len(data)
        if self._missing > 0:
            self._late += data
            self._missing -= size
            if self._missing > 0:
                return
            data = bytes(self._late)
            self._late = bytearray()
        if self._pos < len(self._data):
            data = self._data[self._pos :] + data
        self._data = data
        self._pos = 0

    def next(self) -> list[bytes] | None:
        """The next request, never an empty list; ``None`` when it is not complete yet.

        Raises ``PeerError`` with the text of the protocol error (section 3.1 and 3.2).
        """
        if self._missing > 0:
            return None
        while True:
            if self._argc == 0:
                data = self._data
                pos = self._pos
                if pos >= len(data):
                    return None
                if data[pos] != 42:
                    words = self._inline()
                    if words is None or words:
                        return words
                    continue
                argc: i64 = 0
                if pos + 3 < len(data) and 49 <= data[pos + 1] <= 57 and data[pos + 2] == 13:
                    # The common header: one digit, which no limit forbids.
                    argc = data[pos + 1] - 48
                    self._pos = pos + 4
                else:
                    argc = self._number(pos, "mbulk", "multibulk")
                if argc == -1:
                    return None
                if argc <= 0:
                    continue
                self._argc = argc
            if not self._arguments():
                return None
            argv = self._argv
            self._argv = []
            self._held = 0
            return argv

    def _arguments(self) -> bool:
        """Read arguments until the request is complete (True) or the bytes are used up."""
        data = self._data
        size: i64 = len(data)
        start: i64 = self._pos
        pos: i64 = start
        argv = self._argv
        while self._argc > 0:
            # The common header, read in place; whatever is unusual goes the exact way.
            head: i64 = pos
            length: i64 = -1
            if pos + 4 <= size and data[pos] == 36:
                digit: i64 = data[pos + 1] - 48
                at: i64 = pos + 2
                if 1 <= digit <= 9 or (digit == 0 and data[at] == 13):
                    length = digit
                    while at < size and 0 <= data[at] - 48 <= 9 and length < 4096:
                        length = length * 10 + data[at] - 48
                        at += 1
                    if length < 8192 and at + 1 < size and data[at] == 13:
                        pos = at + 2
                    else:
                        length = -1
            if length < 0:
                length = self._number(pos, "bulk", "bulk")
                if length < 0:
                    self._held += head - start
                    return False
                pos = self._pos
            end = pos + length
            if end + 2 > size:
                self._held += head - start
                self._await_argument(pos, length)
                return False
            argv.append(data[pos:end])
            pos = end + 2
            self._pos = pos
            self._argc -= 1
        return True

    def _await_argument(self, pos: i64, length: i64) -> None:
        """An argument is incomplete: keep its header in front, so that it is read again."""
        header = b"$%d\r\n" % length
        here = self._data[pos:]
        self._data = header + here
        self._pos = 0
        missing = length + 2 - len(here)
        if missing > MAX_LINE:
            # Only worth it for large arguments: small ones are looked at again at once.
            self._missing = missing
            self._late = bytearray()

    def _number(self, start: i64, kind: str, name: str) -> i64:
        """Read the number of a header line, and go to the next line; -1 when the line is not
        complete, 0 for a request without arguments."""
        data = self._data
        end: i64 = data.find(b"\r", start)
        if end < 0:
            if len(data) - start > MAX_LINE:
                raise PeerError(f"Protocol error: too big {kind} count string")
            self._pos = start
            return -1
        if end + 1 >= len(data):
            self._pos = start
            return -1
        if kind == "bulk" and data[start] != 36:
            got = chr(data[start]) if data[start] not in b"\r\n\0" else " "
            raise PeerError(f"Protocol error: expected '$', got '{got}'")
        value = _strict_decimal(data[start + 1 : end])
        self._pos = end + 2
        self._check(value, kind, name)
        if kind == "mbulk" and value < 0:
            return 0
        return value

    def _check(self, value: i64, kind: str, name: str) -> None:
        if kind == "mbulk":
            limit = MAX_ARGS
            small = MAX_ARGS_UNAUTHENTICATED
        else:
            limit = MAX_BULK
            small = MAX_BULK_UNAUTHENTICATED
        if value > limit or value == _NOT_A_NUMBER or (kind == "bulk" and value < 0):
            raise PeerError(f"Protocol error: invalid {name} length")
        if self.restricted and value > small:
            raise PeerError(f"Protocol error: unauthenticated {name} length")

    def _inline(self) -> list[bytes] | None:
        """The words of a line; empty for a line to ignore, ``None`` when it is not complete."""
        data = self._data
        end: i64 = data.find(b"\n", self._pos)
        if end < 0:
            if len(data) - self._pos > MAX_LINE:
                raise PeerError("Protocol error: too big inline request")
            return None
        line = data[self._pos : end]
        self._pos = end + 1
        if line.endswith(b"\r"):
            line = line[:-1]
        words = split(line)
        if words is None:
            raise PeerError("Protocol error: unbalanced quotes in request")
        if not words or not words[0]:
            return []
        _refuse_http(words)
        return words


_NOT_A_NUMBER: Final = -(1 << 60)


def _strict_decimal(text: bytes) -> i64:
    """A decimal without plus sign, blanks or leading zeros; ``_NOT_A_NUMBER`` for anything else."""
    digits = text[1:] if text.startswith(b"-") else text
    if not digits.isdigit() or len(digits) > 17:
        return _NOT_A_NUMBER
    if digits[0] == 48 and len(text) > 1:
        return _NOT_A_NUMBER
    return int(text)


def _refuse_http(words: list[bytes]) -> None:
    """Web pages can make browsers send requests here: a line of HTTP ends the connection."""
    first = words[0].upper()
    http = first in _HTTP_VERBS and words[-1].upper().startswith(b"HTTP/")
    if http or first == b"HOST:" or first == b"POST":
        raise PeerError("sent an HTTP request to the port of the job queue", silent=True)
