"""What SCHEDULE LIST and GET show (client protocol, section 30.1); long lists come in slices."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.context import Server
from disque_tx.core.base.client import BLOCKED_TASK, REPLY_OFF, Client
from disque_tx.core.base.slices import SlicedTask
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.node import Node
from disque_tx.core.tables.calendar import NEVER
from disque_tx.core.tables.definition import Definition
from disque_tx.errors import CommandError
from disque_tx.messages.records import ReplyPart, ReplySink

#: Schedules of which a list is made at once, and of which a slice of a longer one consists.
AT_ONCE: Final = 50
#: Lists that are being made.
_TASKS_MAX: Final = 1_000


class Row:
    """All there is to know about a schedule. ``times``: its next occurrences, in seconds since
    1970. ``maker``: the ID of the node that makes its jobs now."""

    __slots__ = ("definition", "error", "last_s", "maker", "name", "times")

    def __init__(self, name: bytes, definition: Definition, times: list[int]) -> None:
        self.name: bytes = name
        self.definition: Definition = definition
        self.times: list[int] = times
        self.last_s: i64 = 0
        self.maker: bytes = b""
        self.error: str = ""


def row_of(node: Node, name: bytes, count: i64) -> Row:
    """The row of a schedule, with this number of occurrences to come."""
    definition = node.timetable.definitions[name]
    times = next_times(node, name, count)
    row = Row(name, definition, times)
    row.last_s = node.timetable.last_s(name)
    row.maker = node.recurring.maker(name)
    active = node.recurring.find(name)
    if active is not None:
        row.error = active.error
    return row


def next_times(node: Node, name: bytes, count: i64) -> list[int]:
    """The next occurrences that are to be made, in seconds since 1970; none while it is paused."""
    definition = node.timetable.definitions[name]
    times: list[int] = []
    time_s: i64 = max(node.recurring.position_s(name), node.timetable.skipped_s(name))
    while len(times) < count and not definition.paused:
        time_s = definition.recurrence.after(node.recurring.calendar, time_s)
        if time_s == NEVER:
            break
        times.append(int(time_s))
    return times


def write_row(replies: ReplySink, row: Row) -> None:
    """A schedule as a map."""
    definition = row.definition
    request = definition.request
    replies.mapping(12)
    _field(replies, b"name", row.name)
    _field(replies, b"when", definition.text)
    _field(replies, b"zone", definition.zone if definition.zone else b"UTC")
    _field(replies, b"missed", definition.missed)
    _field(replies, b"state", b"paused" if definition.paused else b"on")
    _field(replies, b"queue", request.queue)
    _field(replies, b"body", request.body)
    options = _options(request)
    replies.bulk(b"options")
    replies.array(len(options))
    for word in options:
        replies.bulk(word)
    replies.bulk(b"last")
    replies.integer(row.last_s)
    replies.bulk(b"next")
    replies.array(len(row.times))
    for time_s in row.times:
        replies.integer(time_s)
    _field(replies, b"node", row.maker)
    _field(replies, b"error", row.error.encode())


def _field(replies: ReplySink, name: bytes, value: bytes) -> None:
    replies.bulk(name)
    replies.bulk(value)


def _options(request: AddRequest) -> list[bytes]:
    """The options of ADDJOB that were given."""
    words: list[bytes] = []
    numbers = (
        (b"REPLICATE", request.replicate),
        (b"TTL", request.ttl_s),
        (b"RETRY", request.retry_s),
        (b"DELAY", request.delay_s),
        (b"MAXLEN", request.maxlen),
    )
    for name, number in numbers:
        if number >= 0:
            words += [name, b"%d" % number]
    return [*words, b"ASYNC"] if request.asynchronous else words


def list_schedules(server: Server, client: Client) -> None:
    """Answer with all schedules, at once if they are few; otherwise the client waits."""
    listing = _Listing(server.node, client)
    if listing.step(server.node.now_ms):
        return
    if server.node.state.slices.count() >= _TASKS_MAX:
        raise CommandError("ERR", "Too many long requests are under way, try again later")
    listing.wait = server.node.waiters.wait_for_task(client)
    server.node.state.slices.add(listing)


class _Listing(SlicedTask):
    """A list for a client. ``wait``: the number of its wait, 0 while it does not wait. What is
    deleted meanwhile is left out."""

    __slots__ = ("_client", "_names", "_node", "_parts", "_place", "_rows", "wait")

    def __init__(self, node: Node, client: Client) -> None:
        self.wait: i64 = 0
        self._node: Node = node
        self._client: Client = client
        self._names: list[bytes] = node.timetable.names()
        self._place: i64 = 0
        self._rows: i64 = 0
        self._parts: list[ReplyPart] = []

    def step(self, now_ms: i64) -> bool:
        client = self._client
        if self.wait and (client.blocked != BLOCKED_TASK or client.blocked_number != self.wait):
            return True  # it is gone
        mark = client.replies.mark()
        for name in self._names[self._place : self._place + AT_ONCE]:
            if name in self._node.timetable.definitions:
                write_row(client.replies, row_of(self._node, name, 1))
                self._rows += 1
        self._parts.append(client.replies.cut(mark))
        self._place += AT_ONCE
        if self._place < len(self._names):
            return False
        self._finish()
        return True

    def _finish(self) -> None:
        client = self._client
        if not self.wait or client.reply_mode != REPLY_OFF:
            client.replies.array(self._rows)
            for part in self._parts:
                client.replies.paste(part)
        if self.wait:
            self._node.waiters.answered(client)
