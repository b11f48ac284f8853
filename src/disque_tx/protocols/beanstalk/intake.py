"""From bytes to lines and bodies, however they are split."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.protocols.beanstalk.requests import LINE_BYTES_MAX

# What comes next.
NOTHING: Final = 0
LINE: Final = 1
LONG_LINE: Final = 2
BODY: Final = 3
NO_BODY: Final = 4
SKIPPED: Final = 5


class Intake:
    """What a client sent and nobody has read. ``taken``: the line, without its end, or the body,
    that :meth:`next` found. Bytes are joined only when something is complete."""

    def __init__(self) -> None:
        self.taken: bytes = b""
        self._data: bytes = b""
        self._at: i64 = 0
        self._more: list[bytes] = []
        self._more_bytes: i64 = 0
        self._body_bytes: i64 = -1
        self._skipped_bytes: i64 = 0
        self._long_line: bool = False

    def feed(self, data: bytes) -> None:
        """Take bytes that were received."""
        if self._at == len(self._data) and not self._more:
            self._data = data
            self._at = 0
        else:
            self._more.append(data)
            self._more_bytes += len(data)

    def unread(self) -> i64:
        """Bytes that were not taken yet."""
        return len(self._data) - self._at + self._more_bytes

    def expect_body(self, size: i64) -> None:
        """A body of this size comes next, and its end."""
        self._body_bytes = size

    def skip_body(self, size: i64) -> None:
        """Ignore a body of this size, which comes next."""
        self._skipped_bytes = size + 2

    def next(self) -> i64:
        """What is complete: ``LINE``; ``LONG_LINE``, which is not kept; ``BODY``; ``NO_BODY``, one
        without its end; ``SKIPPED``, a body that was to be skipped; ``NOTHING``."""
        if self._skipped_bytes > 0:
            return self._skip()
        if self._body_bytes >= 0:
            if self.unread() < self._body_bytes + 2:
                return NOTHING
            self._join()
            return self._next_body()
        self._join()
        at = self._at
        end: i64 = self._data.find(b"\r\n", at)
        if end < 0:
            return self._part_of_line()
        self._at = end + 2
        if self._long_line or end + 2 - at > LINE_BYTES_MAX:
            self._long_line = False
            return LONG_LINE
        self.taken = self._data[at:end]
        return LINE

    def _part_of_line(self) -> i64:
        size = len(self._data) - self._at
        if self._long_line or size > LINE_BYTES_MAX:
            self._long_line = True
            self._at += max(0, size - 1)  # the next byte may complete the end
        return NOTHING

    def _next_body(self) -> i64:
        end = self._at + self._body_bytes
        data = self._data
        self.taken = data[self._at : end]
        self._at = end + 2
        self._body_bytes = -1
        return BODY if data[end : end + 2] == b"\r\n" else NO_BODY

    def _join(self) -> None:
        if self._more:
            self._data = b"".join([self._data[self._at :], *self._more])
            self._at = 0
            self._more = []
            self._more_bytes = 0

    def _skip(self) -> i64:
        size = self.unread()
        if size < self._skipped_bytes:
            self._skipped_bytes -= size
            self._data = b""
            self._at = 0
            self._more = []
            self._more_bytes = 0
            return NOTHING
        self._join()
        self._at += self._skipped_bytes
        self._skipped_bytes = 0
        return SKIPPED
