"""The events of one job for those who ask for them part by part, so that no part holds up the node:
other nodes, and the HTTP API (EVENTS, a question of ASK)."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall

from disque_tx.errors import CommandError
from disque_tx.services.events.lookup import Lookup

#: Events of one job that are given, the newest files first.
EVENTS_MAX: Final = 1_000
#: Of one part: steps of the lookup, and events.
_STEPS: Final = 4
_PART_EVENTS: Final = 50
#: Lookups that may be gone on with, and for how long nobody has to.
OPEN_MAX: Final = 16
IDLE_S: Final = 5.0
_TYPE: Final = "disque.job."
#: Members of an event, and the names of their values in the log; those that are there are given.
_MEMBERS: Final = {
    "node": "source",
    "client": "messaging.client.id",
    "wait_ms": "wait_ms",
    "run_ms": "run_ms",
    "backoff_ms": "backoff_ms",
    "reason": "reason",
    "note": "note",
    "successor": "successor",
}

#: The number with which to go on, 0 at the end; at the end, whether the whole log was looked at;
#: events, as objects of JSON.
Part = tuple[int, bool, list[bytes]]


class _OpenLookup:
    """A lookup between two parts. ``call``: ends it when nobody goes on."""

    def __init__(self, lookup: Lookup, job_id: bytes) -> None:
        self.job_id = job_id
        self.call: IDelayedCall | None = None
        self.ended = False
        self._lookup = lookup
        self._steps = iter(lookup)
        self._files = 0
        self._found = 0
        self._more = False
        self._lines: deque[bytes] = deque()

    @property
    def complete(self) -> bool:
        """At the end: whether there are no other events in the log."""
        return self._lookup.complete and not self._more

    def part(self) -> list[bytes]:
        """The next events."""
        steps = 0
        while steps < _STEPS and len(self._lines) < _PART_EVENTS and not self.ended:
            self._step()
            steps += 1
        events: list[bytes] = []
        while self._lines and len(events) < _PART_EVENTS:
            event = _event(self._lines.popleft(), self.job_id)
            if event is not None:
                events.append(event)
        self._found += len(events)
        return events

    def is_done(self) -> bool:
        """Whether there is nothing left to give."""
        return self.ended and not self._lines

    def _step(self) -> None:
        lines = next(self._steps, None)
        if lines is None:
            self.ended = True
            return
        if self._lookup.files > self._files and self._found + len(self._lines) >= EVENTS_MAX:
            self.ended = self._more = True  # not within a file: its newest lines come last
            return
        self._files = self._lookup.files
        self._lines.extend(lines)


class Lookups:
    """Lookups in the event logs in the folders that ``folders`` gives. ``reactor``: its timers
    close those that nobody goes on with."""

    def __init__(self, folders: Callable[[], list[str]], reactor: Any) -> None:
        self.folders = folders
        self._reactor = reactor
        self._open: OrderedDict[int, _OpenLookup] = OrderedDict()
        self._last = 0

    def read(self, job_id: bytes, number: int) -> Part:
        """The first part, if the number is 0, or the next one. ``CommandError`` if nobody has gone
        on for some seconds."""
        if number == 0:
            one = _OpenLookup(Lookup(self.folders(), job_id), job_id)
        else:
            one = self._take(number, job_id)
        events = one.part()
        if one.is_done():
            return 0, one.complete, events
        return self._keep(one), False, events

    def _take(self, number: int, job_id: bytes) -> _OpenLookup:
        one = self._open.get(number)
        if one is None or one.job_id != job_id:
            raise CommandError("ERR", "This lookup is over, begin again with 0")
        self._close(number)
        return one

    def _keep(self, one: _OpenLookup) -> int:
        self._last += 1
        while len(self._open) >= OPEN_MAX:
            self._close(next(iter(self._open)))
        self._open[self._last] = one
        one.call = self._reactor.callLater(IDLE_S, self._close, self._last)
        return self._last

    def _close(self, number: int) -> None:
        call = self._open.pop(number).call
        if call is not None and call.active():
            call.cancel()

    def close_all(self) -> None:
        """The node stops."""
        for number in list(self._open):
            self._close(number)


def _event(line: bytes, job_id: bytes) -> bytes | None:
    """What is given of a line of the log, if it is about this job."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    if not isinstance(values, dict) or values.get("subject") != job_id.decode("latin-1"):
        return None
    event = {"time": values["time"], "kind": values["type"].removeprefix(_TYPE)}
    event |= {name: values[key] for name, key in _MEMBERS.items() if key in values}
    return json.dumps(event, separators=(",", ":")).encode()
