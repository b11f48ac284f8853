"""Events of jobs at the other processes of the daemon, for streams of one of them: by way of the
parent, which only passes them on.

1. ``["follow", n, kinds, pattern]`` to the parent, which sends ``["followed", process, n, ...]`` to
   all others; again every second, so that a process that is started meanwhile gets to know it, too.
2. ``["events", process, n, dropped, rows]`` to the parent, which sends ``["happened", n, dropped,
   rows]`` to the process that follows. What happens in a tenth of a second goes together.
3. A process that does not hear of a stream for three seconds forgets it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from disque_tx.messages.limits import QUEUE_BYTES_MAX
from disque_tx.plugins.interfaces import IHost
from disque_tx.plugins.values import JobEvent
from disque_tx.services.processes.channel import Message
from disque_tx.text.globs import NamePattern

RENEW_S: Final = 1.0
FORGET_S: Final = 3.0
FLUSH_S: Final = 0.1
#: Events of one stream that wait; more are dropped, and counted.
WAITING_MAX: Final = 1_000
#: Bytes of JSON in a message, about; and of an event besides six for each byte of its queue's name.
_MESSAGE_BYTES: Final = 64 * 1024
_EVENT_BYTES: Final = 150

Tell = Callable[[list[JobEvent], int], None]


class Following:
    """What this process wants to know of the others. ``send``: to the parent."""

    def __init__(self, reactor: Any, send: Callable[[Message], object]) -> None:
        self._reactor = reactor
        self._send = send
        self._open: dict[int, tuple[list[int], str, Tell]] = {}
        self._last = 0
        self._planned = False

    def follow(self, kinds: Collection[int], pattern: str, tell: Tell) -> Callable[[], None]:
        """Call ``tell`` with events and how many were dropped, until the function that is returned
        is called."""
        self._last += 1
        number = self._last
        self._open[number] = (sorted(kinds), pattern, tell)
        self._send(["follow", number, sorted(kinds), pattern])
        self._plan()
        return lambda: self._end(number)

    def _end(self, number: int) -> None:
        self._open.pop(number, None)

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            self._reactor.callLater(RENEW_S, self._renew)

    def _renew(self) -> None:
        self._planned = False
        for number, (kinds, pattern, _tell) in self._open.items():
            self._send(["follow", number, kinds, pattern])
        if self._open:
            self._plan()

    def happened(self, number: int, dropped: int, rows: list[list[Any]]) -> None:
        """Events of another process."""
        if number in self._open:
            self._open[number][2]([_event(*row) for row in rows], dropped)


class Followed:
    """What the others want to know of this process. ``host``: whose events."""

    def __init__(self, reactor: Any, host: IHost, send: Callable[[Message], object]) -> None:
        self._reactor = reactor
        self._host = host
        self._send = send
        self._open: dict[tuple[int, int], _Source] = {}

    def followed(self, process: int, number: int, kinds: list[int], pattern: str) -> None:
        """A process wants to know this, or still does."""
        key = (process, number)
        source = self._open.get(key)
        if source is not None and source.wanted != (kinds, pattern):
            source.forgotten.cancel()
            self._forget(key)  # the process was started again, and counts from one
            source = None
        if source is None:
            source = self._open[key] = _Source(self._reactor, self._send, process, number)
            source.wanted = (kinds, pattern)
            wants = None if pattern == "*" else NamePattern(pattern, QUEUE_BYTES_MAX).matches
            source.ends = self._host.watch(source.happened, kinds, wants)
        else:
            source.forgotten.cancel()
        source.forgotten = self._reactor.callLater(FORGET_S, self._forget, key)

    def _forget(self, key: tuple[int, int]) -> None:
        self._open.pop(key).end()


class _Source:
    """The events of this process for one stream."""

    def __init__(
        self, reactor: Any, send: Callable[[Message], object], process: int, number: int
    ) -> None:
        self.ends: Callable[[], None] = lambda: None
        self.wanted: tuple[list[int], str] = ([], "")
        self.forgotten: Any = None
        self._reactor = reactor
        self._send = send
        self._process = process
        self._number = number
        self._waiting: list[JobEvent] = []
        self._dropped = 0
        self._flush: Any = None

    def happened(self, event: JobEvent) -> None:
        """Queue an event for the stream, or count it as dropped if too many are waiting."""
        if len(self._waiting) >= WAITING_MAX:
            self._dropped += 1
            return
        self._waiting.append(event)
        if self._flush is None:
            self._flush = self._reactor.callLater(FLUSH_S, self._pass_on)

    def end(self) -> None:
        """Stop following events: the stream that read them has ended."""
        self.ends()
        if self._flush is not None:
            self._flush.cancel()

    def _pass_on(self) -> None:
        self._flush = None
        events, self._waiting = self._waiting, []
        dropped, self._dropped = self._dropped, 0
        rows: list[list[Any]] = []
        size = 0
        for event in events:
            rows.append(_row(event))
            size += _EVENT_BYTES + 6 * len(event.queue)
            if size >= _MESSAGE_BYTES:
                self._send(["events", self._process, self._number, 0, rows])
                rows, size = [], 0
        self._send(["events", self._process, self._number, dropped, rows])


def _row(event: JobEvent) -> list[Any]:
    queue, job_id = event.queue.decode("latin-1"), event.job_id.decode("latin-1")
    return [event.kind, event.wall_us, queue, job_id, event.reason, event.elapsed_ms]


def _event(
    kind: int, wall_us: int, queue: str, job_id: str, reason: int, elapsed_ms: int
) -> JobEvent:
    queue_name, job = queue.encode("latin-1"), job_id.encode("latin-1")
    return JobEvent(kind, wall_us, queue_name, job, reason, elapsed_ms)
