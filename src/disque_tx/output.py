"""Replies as bytes: what every protocol on a connection collects, until the turn ends."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disque_tx.messages import ReplyPart, ReplySink


class _Bytes(ReplyPart):
    """A part as bytes."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data: bytes = data


@mypyc_attr(allow_interpreted_subclasses=True)
class Output(ReplySink):
    """A sink that makes bytes. ``size``: bytes collected and not yet taken."""

    __slots__ = ("_chunks", "size")

    def __init__(self) -> None:
        self.size: i64 = 0
        self._chunks: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send these bytes at the end of the turn."""
        self._chunks.append(data)
        self.size += len(data)

    def take(self) -> bytes:
        """Everything collected, in order; there is nothing afterwards."""
        chunks = self._chunks
        if not chunks:
            return b""
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self._chunks = []
        self.size = 0
        return data

    def pieces(self) -> int:
        """How many pieces are collected."""
        return len(self._chunks)

    def mark(self) -> int:
        return len(self._chunks)

    def rewind(self, mark: int) -> None:
        while len(self._chunks) > mark:
            self.size -= len(self._chunks.pop())

    def cut(self, mark: int) -> ReplyPart:
        data = b"".join(self._chunks[mark:])
        self.rewind(mark)
        return _Bytes(data)

    def paste(self, part: ReplyPart) -> None:
        assert isinstance(part, _Bytes)
        self.write(part.data)
