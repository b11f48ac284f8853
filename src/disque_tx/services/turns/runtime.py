"""The runtime: drives the turns of a node by a reactor.

``engine/turns.py`` says what a turn is, and in which order its effects leave; ``rounds.py`` makes
those in which sockets are served. Here are the block that makes one for any other input, and the
timers for what is due under reactors that do not run the rounds themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.engine.turns import Turns
from disque_tx.services.turns.clock import steady_ms, wall_us
from disque_tx.services.turns.interfaces import IClock, ITurn
from disque_tx.services.turns.pump import Pump, Session
from disque_tx.services.turns.rounds import Rounds

if TYPE_CHECKING:
    from disque_tx.commands.base.context import Server
    from disque_tx.commands.dispatch import Dispatcher
    from disque_tx.core.base.client import Client
    from disque_tx.core.node import Node


_log: Final = Logger()


@implementer(IClock)
class SystemClock:
    """The clocks of the machine."""

    steady_ms = staticmethod(steady_ms)
    wall_us = staticmethod(wall_us)


@implementer(ITurn)
class Runtime:
    """Runs the turns of a node. ``turns``: what is to be done in each of them, and in which order.
    ``rounds``: the turns in which sockets are served. ``calls``: operations of programs that embed
    the node, by client ID. ``on_resume``: called when a pause of all clients is over. ``fatal``:
    called with the reason why the process must end."""

    def __init__(
        self,
        node: Node,
        server: Server,
        dispatcher: Dispatcher,
        clock: IClock,
        reactor: IReactorTime,
        fatal: Callable[[str], object] | None = None,
    ) -> None:
        self.node = node
        self.server = server
        self.dispatcher = dispatcher
        self.pump = Pump(server, dispatcher)
        self.calls: dict[int, Any] = self.pump.calls
        self.fatal = fatal or (lambda why: _log.critical("{why}", why=why))
        self.on_resume: list[Callable[[], object]] = []
        self._part = nullcontext(node)
        self._reactor = reactor
        self._steady_ms = clock.steady_ms
        self.turns = Turns(
            server,
            dispatcher,
            self.pump,
            steady_ms=clock.steady_ms,
            wall_us=clock.wall_us,
            fatal=self._broken,
            report=self._report,
        )
        self.rounds = Rounds(self.turns, self.pump, clock.steady_ms, self._schedule)
        self._late_call: IDelayedCall | None = None
        self._timer: IDelayedCall | None = None
        self._timer_ms = -1

    def turn(self) -> AbstractContextManager[Node]:
        """Input that is part of the turn under way, or else a turn of its own, which ends however
        the block is left."""
        return self._part if self.turns.active else self

    def __enter__(self) -> Node:
        """Use :meth:`turn`."""
        self.rounds.begin()
        return self.node

    def __exit__(self, *_fault: object) -> None:
        """The input is executed: write and send its effects, and schedule what comes next."""
        self.rounds.end()

    # -- for the turns -----------------------------------------------------------------------

    def _broken(self, error: Exception) -> None:
        self.fatal(
            "A fault in this program: it is unknown what was written to disk, so the node stops"
            f" here and answers nothing more. {Failure(error).getTraceback()}"
        )

    def _report(self, what: str, error: Exception) -> None:
        _log.failure(
            "A fault in this program: {what}. Please report what follows.",
            Failure(error),
            what=what,
        )

    def output_bytes(self, client: Client) -> int:
        """Bytes of replies that the client has not read."""
        if isinstance(client, Session):
            size: int = client.connection.output_bytes()
            return size
        found = self.calls.get(client.id)
        return 0 if found is None else found.output_bytes()

    def resume_all(self) -> None:
        """A pause of all clients is over: look at what they sent meanwhile."""
        for client in self.server.clients.values():
            if isinstance(client, Session):
                self.pump.late.append(client)
        for resume in self.on_resume:
            resume()

    def call_soon(self, work: Callable[[], object]) -> None:
        """Call it after the turn under way."""
        self._reactor.callLater(0, work)

    # -- under reactors that do not run the rounds themselves ----------------------------------

    def _schedule(self, more: bool) -> None:
        """Set the timers for what comes after this turn."""
        if self.rounds.stopped:
            return
        if more and self._late_call is None:
            self._late_call = self._reactor.callLater(0, self._go_on)
        due_ms = self.turns.next_due_ms()
        if due_ms >= 0 and (self._timer_ms < 0 or due_ms < self._timer_ms):
            self._arm(due_ms)

    def _go_on(self) -> None:
        self._late_call = None
        with self.turn():
            self.pump.drain_late()

    def _arm(self, due_ms: int) -> None:
        delay_s = max(0, due_ms - self._steady_ms()) / 1000
        self._timer_ms = due_ms
        if self._timer is None:
            self._timer = self._reactor.callLater(delay_s, self._on_time)
        else:
            self._timer.reset(delay_s)

    def _on_time(self) -> None:
        self._timer = None
        self._timer_ms = -1
        # After a fault, what was due with it is due again: the turn sets the next timer.
        with self.turn():
            self.turns.run_due()

    def stop(self) -> None:
        """No more timers."""
        self.rounds.stop()
        for call in (self._timer, self._late_call):
            if call is not None and call.active():
                call.cancel()
        self._timer = self._late_call = None
