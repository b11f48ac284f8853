"""The runtime: drives the turns of a node by a reactor.

``engine/turns.py`` says what a turn is, and in which order its effects leave. Here are the block
that makes one, the clocks, the timer for what is due, and what comes back to clients that are
no connections: the operations of programs that embed the node.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.engine.turns import Turns
from disque_tx.services.interfaces import IClock, ITurn
from disque_tx.services.pump import Pump, Session

if TYPE_CHECKING:
    from disque_tx.commands.context import Server
    from disque_tx.commands.dispatch import Dispatcher
    from disque_tx.core.client import Client
    from disque_tx.core.node import Node


_log: Final = Logger()


@implementer(IClock)
class SystemClock:
    """The clocks of the machine."""

    def steady_ms(self) -> int:
        """Milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    def wall_us(self) -> int:
        """Microseconds since 1970."""
        return time.time_ns() // 1_000


@implementer(ITurn)
class Runtime:
    """One per node. ``turns``: what is to be done in each of them, and in which order. ``calls``:
    operations of programs that embed the node, by client ID. ``fatal``: called with the reason
    why the process must end.
    """

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
        self.calls: dict[int, Any] = {}
        self.fatal = fatal or (lambda why: _log.critical("{why}", why=why))
        self._part = nullcontext(node)
        self._reactor = reactor
        self._steady_ms = clock.steady_ms
        self.turns = Turns(
            server,
            dispatcher,
            self,
            steady_ms=clock.steady_ms,
            wall_us=clock.wall_us,
            fatal=self._broken,
            report=self._report,
        )
        self._late_call: IDelayedCall | None = None
        self._timer: IDelayedCall | None = None
        self._timer_ms = -1
        self.stopped = False

    def turn(self) -> AbstractContextManager[Node]:
        """Input that is part of the turn under way, or else a turn of its own, which ends however
        the block is left."""
        return self._part if self.turns.active else self

    def __enter__(self) -> Node:
        """Use :meth:`turn`."""
        self.turns.begin()
        return self.node

    def __exit__(self, *_fault: object) -> None:
        """The input is executed: write and send its effects, and schedule what comes next."""
        turns = self.turns
        more = turns.end()
        if turns.dead:
            return
        if more and self._late_call is None and not self.stopped:
            self._late_call = self._reactor.callLater(0, self._go_on)
        due_ms = turns.next_due_ms()
        if due_ms >= 0 and (self._timer_ms < 0 or due_ms < self._timer_ms):
            self._arm(due_ms)

    # -- for the turns -----------------------------------------------------------------------

    def resume(self, clients: list[Client]) -> None:
        """Execute what clients sent while they were blocked."""
        for client in clients:
            if isinstance(client, Session) and client.connection.session is client:
                self.pump.drain_resumed(client)

    def flush(self, clients: list[Client]) -> bool:
        """Send replies; returns whether requests wait for another turn."""
        for client in self.pump.flush_all(clients):
            call = self.calls.get(client.id)
            if call is not None:
                call.flush()
        return bool(self.pump.late)

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
        if not isinstance(client, Session):
            return 0
        size: int = client.connection.output_bytes()
        return size

    def resume_all(self) -> None:
        """A pause of all clients is over: look at what they sent meanwhile."""
        for client in self.server.clients.values():
            if isinstance(client, Session):
                self.pump.late.append(client)

    def _go_on(self) -> None:
        self._late_call = None
        with self.turn():
            self.pump.drain_late()

    # -- time --------------------------------------------------------------------------------

    def _arm(self, due_ms: int) -> None:
        if self.stopped:
            return
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
        self.stopped = True
        for call in (self._timer, self._late_call):
            if call is not None and call.active():
                call.cancel()
        self._timer = self._late_call = None
