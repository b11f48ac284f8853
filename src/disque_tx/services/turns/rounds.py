"""Rounds: what is ready is served within a turn, what is due is done on time. Compiled, and free of
Twisted.

The reactor of this package (``net/reactor.py``) hands its time to :meth:`Rounds.run`, which waits
for all sockets and for the reactor's own poller in one epoll object, and returns only when the
reactor has something to do. Under any other reactor the epoll object is one of its readers, and
:meth:`Rounds.serve_ready` is called whenever one of the sockets is ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.engine.buspump import BusPump
from disque_tx.engine.linkend import LinkEnd
from disque_tx.engine.turns import Turns
from disque_tx.services.turns.pump import Pump, Session

Events = list[tuple[int, int]]

_EVENTS_PER_TURN: Final = 512
#: EPOLLERR, EPOLLHUP, EPOLLRDHUP: the other end sends nothing more.
_ENDING: Final = 0x8 | 0x10 | 0x2000
#: How often :meth:`Rounds.serve_ready` looks for more before it returns: a turn of another reactor
#: costs as much as serving several requests.
_ROUNDS: Final = 16
_NEVER: Final = -1


class Rounds:
    """The rounds of one node.

    ``sessions``: by descriptor, the clients whose sockets the pump reads itself. ``links``: the
    connections to other nodes that ``bus`` reads, ``None`` for a node without. ``driven``: a
    reactor runs :meth:`run`, so timers and late requests need no calls of the reactor.
    ``reactor_fd``: the descriptor of that reactor's poller. ``interrupted``: the reactor is to get
    control after the turn under way. ``stopped``: nothing is due any more.

    ``schedule``: called at the end of turns that :meth:`run` does not see, with whether another
    turn should follow soon.
    """

    def __init__(
        self,
        turns: Turns,
        pump: Pump,
        steady_ms: Callable[[], int],
        schedule: Callable[[bool], object],
    ) -> None:
        self.sessions: dict[int, Session] = {}
        self.links: dict[int, LinkEnd] = {}
        self.bus: BusPump | None = None
        self.driven: bool = False
        self.reactor_fd: i64 = -1
        self.interrupted: bool = False
        self.stopped: bool = False
        self._turns = turns
        self._pump = pump
        self._steady_ms = steady_ms
        self._schedule = schedule
        self._more: bool = False
        self._poll: Callable[[float, int], Events] | None = None
        self._serve_unusual: Callable[[int, int], object] | None = None

    def open(
        self, poll: Callable[[float, int], Events], serve_unusual: Callable[[int, int], object]
    ) -> None:
        """Begin. ``poll``: waits for events; its arguments are the most seconds to wait, negative
        for no limit, and the most events. ``serve_unusual``: called within a turn with a descriptor
        and its event, for everything that neither the pump nor the bus serves; it raises
        nothing."""
        self._poll = poll
        self._serve_unusual = serve_unusual

    def stop(self) -> None:
        """Stop running due work and postponed requests; sockets are still served."""
        self.stopped = True
        self._more = False

    def close(self) -> None:
        """No more rounds."""
        self._poll = None
        self._serve_unusual = None

    # -- turns -------------------------------------------------------------------------------

    def in_turn(self) -> bool:
        """Whether a turn is under way."""
        return self._turns.active

    def begin(self) -> None:
        """Begin a turn."""
        self._turns.begin()

    def end(self) -> None:
        """End the turn, and see to it that what comes next is done on time."""
        more = self._turns.end()
        if self.driven:
            if more and not self.stopped:
                self._more = True
        elif not self._turns.failed:
            self._schedule(more)

    def _serve(self, events: Events) -> bool:
        """Serve these sockets in one turn; returns whether the reactor's poller is among them."""
        ready = False
        self._turns.begin()
        try:
            # Compiled, a list costs less than a generator.
            gone = [event for event in events if event[1] & _ENDING and self._waits(event[0])]
            if gone:
                self._serve_gone(gone)
                served = set(gone)
                events = [event for event in events if event not in served]
            unusual = self._pump.serve(events, self.sessions)
            if unusual and self.bus is not None:
                unusual = self.bus.serve(unusual, self.links, self._pump.again)
            for event in unusual:
                if event[0] == self.reactor_fd:
                    ready = True
                elif self._serve_unusual is not None:
                    self._serve_unusual(event[0], event[1])
        finally:
            self.end()
        return ready

    def _waits(self, fd: int) -> bool:
        """Whether a client waits on this socket, such as for a job."""
        session = self.sessions.get(fd)
        return session is not None and session.blocked != 0

    def _serve_gone(self, events: Events) -> None:
        """Serve waiting clients that have hung up before all others: a job that came first would be
        delivered to one of them, and come back after its RETRY only. What they sent is not executed
        while they wait, so this takes no time from others."""
        for event in self._pump.serve(events, self.sessions):
            if self._serve_unusual is not None:
                self._serve_unusual(event[0], event[1])

    def _go_on(self) -> None:
        """Execute requests that were postponed, in one turn."""
        self._more = False
        self._turns.begin()
        try:
            self._pump.drain_late()
        finally:
            self.end()

    def _run_due(self) -> None:
        """Run due work in one turn."""
        self._turns.begin()
        try:
            self._turns.run_due()
        finally:
            self.end()

    def _and_waiting(self, events: Events) -> Events:
        """Add the requests that wait from the last turn, in front, so that none waits forever."""
        if not self._pump.again:
            return events
        waiting, self._pump.again = self._pump.again, []
        return waiting + events

    def is_waiting(self) -> bool:
        """Whether something waits for the next round, whatever the sockets do."""
        return self._more or bool(self._pump.again)

    # -- for reactors ------------------------------------------------------------------------

    def run(self, timeout_ms: i64) -> bool:
        """Serve for ``timeout_ms``, without limit if negative, or until the reactor has something
        to do; at least one round. Returns whether the reactor's poller is ready.

        A fault ends the round that met it, and is raised.
        """
        self.interrupted = False
        now_ms: i64 = self._steady_ms()
        end_ms: i64 = now_ms + timeout_ms if timeout_ms >= 0 else _NEVER
        while self._poll is not None:
            due_ms: i64 = _NEVER if self.stopped else self._turns.next_due_ms()
            wait_s = 0.0 if self.is_waiting() else _wait_s(now_ms, end_ms, due_ms)
            events = self._poll(wait_s, _EVENTS_PER_TURN)
            ready = len(events) == 1 and events[0][0] == self.reactor_fd
            if ready:
                events = []
            events = self._and_waiting(events)
            if events and self._serve(events):
                ready = True
            if self._more:
                self._go_on()
            now_ms = self._steady_ms()
            if 0 <= due_ms <= now_ms and not self.stopped:
                self._run_due()
            if ready or self.interrupted or 0 <= end_ms <= now_ms:
                return ready
        return False

    def serve_ready(self) -> None:
        """Serve every socket that is ready, once per round, for a few rounds. Afterwards the pump
        may have events that wait for the next call."""
        for _ in range(_ROUNDS):
            if self._poll is None:
                return
            events = self._and_waiting(self._poll(0.0, _EVENTS_PER_TURN))
            if not events:
                return
            self._serve(events)
            if self._pump.is_turn_over():
                return  # new connections and timers are served between two long turns


def _wait_s(now_ms: i64, end_ms: i64, due_ms: i64) -> float:
    """How long to wait for input, in seconds; negative: without limit."""
    until_ms = end_ms
    if until_ms < 0 or 0 <= due_ms < until_ms:
        until_ms = due_ms
    if until_ms < 0:
        return -1.0
    wait_ms: int = max(until_ms - now_ms, 0)
    return wait_ms / 1000
