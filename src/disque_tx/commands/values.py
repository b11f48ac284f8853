"""Replies as Python values, for tests and for programs that embed a node."""

from __future__ import annotations

from typing import Final

from disque_tx.messages import JobRecord, ReplyPart, ReplySink


class Status:
    """A status word; equal to another one with the same text."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text: Final[bytes] = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Status) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Status({self.text!r})"


class Error:
    """An error line, code and text; equal to another one with the same line."""

    __slots__ = ("line",)

    def __init__(self, line: bytes) -> None:
        self.line: Final[bytes] = line

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Error) and other.line == self.line

    def __hash__(self) -> int:
        return hash((b"-", self.line))

    def __repr__(self) -> str:
        return f"Error({self.line!r})"


#: A bulk string is ``bytes``, no value is ``None``, arrays and maps hold values.
Value = Status | Error | bytes | int | None | list["Value"] | dict["Value", "Value"]


class _Open:
    """An array or map that was announced; its elements follow."""

    __slots__ = ("size", "pairs")

    def __init__(self, size: int, pairs: bool) -> None:
        self.size: int = size
        self.pairs: bool = pairs


class _IncompleteError(Exception):
    """The elements of an array or map are not complete yet."""


class _Items(ReplyPart):
    """A part of a long reply."""

    __slots__ = ("items",)

    def __init__(self, items: list[Value | _Open]) -> None:
        self.items: list[Value | _Open] = items


class ValueReplies(ReplySink):
    """Collects replies; :attr:`values` holds those that are complete, oldest first."""

    __slots__ = ("_items", "_pos")

    def __init__(self) -> None:
        self._items: list[Value | _Open] = []
        self._pos: int = 0

    @property
    def values(self) -> list[Value]:
        """One value per complete reply."""
        values: list[Value] = []
        self._pos = 0
        try:
            while self._pos < len(self._items):
                values.append(self._next())
        except _IncompleteError:
            pass
        return values

    def clear(self) -> None:
        """Forget everything collected so far."""
        self._items.clear()

    def _next(self) -> Value:
        if self._pos >= len(self._items):
            raise _IncompleteError
        item = self._items[self._pos]
        self._pos += 1
        if not isinstance(item, _Open):
            return item
        if item.pairs:
            pairs: dict[Value, Value] = {}
            for _ in range(item.size):
                key = self._next()
                pairs[key] = self._next()
            return pairs
        return [self._next() for _ in range(item.size)]

    def status(self, text: bytes) -> None:
        self._items.append(Status(text))

    def error(self, line: bytes) -> None:
        self._items.append(Error(line))

    def integer(self, value: int) -> None:
        self._items.append(value)

    def bulk(self, data: bytes) -> None:
        self._items.append(data)

    def null(self) -> None:
        self._items.append(None)

    def null_array(self) -> None:
        self._items.append(None)

    def array(self, size: int) -> None:
        self._items.append(_Open(size, False))

    def mapping(self, size: int) -> None:
        self._items.append(_Open(size, True))

    def jobs(self, jobs: list[JobRecord], with_counters: bool) -> None:
        self.array(len(jobs))
        for job in jobs:
            self._items.append(_job_value(job, with_counters))

    def mark(self) -> int:
        return len(self._items)

    def rewind(self, mark: int) -> None:
        del self._items[mark:]

    def cut(self, mark: int) -> ReplyPart:
        part = _Items(self._items[mark:])
        del self._items[mark:]
        return part

    def paste(self, part: ReplyPart) -> None:
        assert isinstance(part, _Items)
        self._items += part.items

    def speaking(self, version: int) -> ValueReplies:
        replies = ValueReplies()  # values are the same in both protocols
        replies._items, self._items = self._items, []
        return replies


def _job_value(job: JobRecord, with_counters: bool) -> Value:
    value: list[Value] = [job.queue, job.id, job.body]
    if with_counters:
        value += [b"nacks", int(job.nacks), b"additional-deliveries", int(job.deliveries)]
    return value
