"""The replies to QCOUNT, QLIST and QFLUSH: made of the results of one node or of several."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.counting.counts import NUMBERS, QueueNumbers, number_of, rows_of
from disque_tx.core.counting.listing import ListRequest
from disque_tx.core.counting.rankings import BY_NAME, key_of
from disque_tx.messages.records import ReplySink

_RATES: Final = (7, 8)


class Answer:
    """Takes results, one by one, and writes the reply."""

    __slots__ = ()

    def receive(self, words: list[bytes], sender: bytes) -> bool:
        """The result of one node, of this one if ``sender`` is empty; ``False`` if it is none."""
        raise NotImplementedError

    def next_words(self) -> list[bytes]:
        """The next question to all nodes, which the results so far lead to; empty if none."""
        return []

    def write(self, replies: ReplySink, nodes: i64, missing: list[bytes], now_ms: i64) -> None:
        """The reply. ``nodes``: how many results are in it; ``missing``: nodes without one."""
        raise NotImplementedError


class CountAnswer(Answer):
    """QCOUNT."""

    __slots__ = ("_counts",)

    def __init__(self, name: bytes) -> None:
        self._counts = QueueNumbers(name, [0] * len(NUMBERS))

    def receive(self, words: list[bytes], sender: bytes) -> bool:
        rows = rows_of(words)
        if rows is None or len(rows) != 1:
            return False
        self._counts.add(rows[0].numbers)
        return True

    def write(self, replies: ReplySink, nodes: i64, missing: list[bytes], now_ms: i64) -> None:
        replies.mapping(len(NUMBERS) + 2)
        _write_numbers(replies, self._counts)
        _write_nodes(replies, nodes, missing)


class ListAnswer(Answer):
    """QLIST.

    Of several nodes, each one's page by name holds all that the merged page can hold. In any other
    order what is little at each node may be much in all: the queues that come first at some node
    are counted at all of them then.
    """

    __slots__ = ("_everywhere", "_more", "_names", "_request", "_rows")

    def __init__(self, request: ListRequest, everywhere: bool) -> None:
        self._request = request
        self._everywhere: bool = everywhere
        self._more: bool = False
        self._rows: dict[bytes, QueueNumbers] = {}
        self._names: list[bytes] = []

    def receive(self, words: list[bytes], sender: bytes) -> bool:
        counted = bool(self._names)
        rows = rows_of(words if counted else words[1:])
        if rows is None or len(rows) > max(self._request.count, len(self._names)):
            return False
        if not counted and words[:1] == [b"1"]:
            self._more = True
        for row in rows:
            known = self._rows.get(row.name)
            if known is None:
                self._rows[row.name] = row
            else:
                known.add(row.numbers)
        return True

    def next_words(self) -> list[bytes]:
        if not self._everywhere or self._request.sort == BY_NAME or self._names:
            return []
        self._names = [row.name for row in self._sorted(0)[: self._request.count]]
        self._rows = {}
        return [b"COUNT", *self._names] if self._names else []

    def _sorted(self, now_ms: i64) -> list[QueueNumbers]:
        keys = [key_of(self._request.sort, row, now_ms) for row in self._rows.values()]
        return [self._rows[name] for _, name in sorted(keys)]

    def write(self, replies: ReplySink, nodes: i64, missing: list[bytes], now_ms: i64) -> None:
        rows = self._sorted(now_ms)
        page = rows[: self._request.count]
        resumable = not self._everywhere or self._request.sort == BY_NAME
        more = resumable and (self._more or len(rows) > len(page)) and bool(page)
        replies.mapping(4)
        replies.bulk(b"cursor")
        if more:
            key, name = key_of(self._request.sort, page[len(page) - 1], now_ms)
            replies.bulk(b"%d:%s" % (key, name))
        else:
            replies.bulk(b"0")
        replies.bulk(b"queues")
        replies.array(len(page))
        for row in page:
            replies.mapping(len(NUMBERS) + 1)
            replies.bulk(b"name")
            replies.bulk(row.name)
            _write_numbers(replies, row)
        _write_nodes(replies, nodes, missing)


class JobCount:
    """How many jobs something was about. ``value``: -1 as long as that is not known."""

    __slots__ = ("value",)

    def __init__(self, value: i64 = -1) -> None:
        self.value: i64 = value


class FlushAnswer(Answer):
    """QFLUSH. ``details``: which nodes did not flush their part, too. ``count``: gets the sum."""

    __slots__ = ("_count", "_details", "_flushed")

    def __init__(self, details: bool, count: JobCount | None) -> None:
        self._count: JobCount | None = count
        self._details: bool = details
        self._flushed: int = 0

    def receive(self, words: list[bytes], sender: bytes) -> bool:
        flushed = number_of(words[0]) if len(words) == 1 else -1
        if flushed < 0:
            return False
        self._flushed += int(flushed)
        return True

    def write(self, replies: ReplySink, nodes: i64, missing: list[bytes], now_ms: i64) -> None:
        if self._count is not None:
            self._count.value = self._flushed
        if not self._details:
            replies.integer(self._flushed)
            return
        replies.mapping(3)
        replies.bulk(b"flushed")
        replies.integer(self._flushed)
        _write_nodes(replies, nodes, missing)


def _write_numbers(replies: ReplySink, counts: QueueNumbers) -> None:
    for place in range(len(NUMBERS)):
        number = counts.numbers[place]
        replies.bulk(NUMBERS[place])
        if place in _RATES:
            replies.bulk(b"%d.%03d" % (number // 1000, number % 1000))
        else:
            replies.integer(number)


def _write_nodes(replies: ReplySink, nodes: i64, missing: list[bytes]) -> None:
    replies.bulk(b"nodes")
    replies.integer(int(nodes))
    replies.bulk(b"nodes-missing")
    replies.array(len(missing))
    for node in missing:
        replies.bulk(node)
