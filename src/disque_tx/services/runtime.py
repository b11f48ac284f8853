"""The runtime: tells the node what time it is, and performs what the node wants done.

A turn is one batch of input. Everything in it is executed first; then, in this order, the log is
written (and synced, if the policy says so), messages to other nodes leave, and the replies leave,
one write per connection (cluster protocol, section 13.1). Connections to other nodes are made and
closed after that. Input of clients that a turn unblocks belongs to the same turn.

A turn ends in any case, and at once:

1. A fault while the input is executed is raised, after what was done before it has left.
2. A fault while it is written down ends the process: nobody knows what the disk holds, so nothing
   leaves that depends on it, neither now nor later.
3. A fault while it leaves costs the connection or the message that it met.
4. What closing connections changes is input of the turn under way, and leaves with the next one,
   which is never inside this one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.errors import LocalError
from disque_tx.services.interfaces import IClock, ITurn
from disque_tx.services.pump import Pump, Session

if TYPE_CHECKING:
    from disque_tx.commands.context import Server
    from disque_tx.commands.dispatch import Dispatcher
    from disque_tx.core.node import Node
    from disque_tx.core.outbox import Outbox


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


class CommitsLog(Protocol):
    """What the runtime needs of the log."""

    @property
    def write_error(self) -> str:
        """Why the log does not hold what was recorded; empty when it does."""

    def commit(self) -> None:
        """Write, and by policy sync, what was recorded."""


class PerformsBus(Protocol):
    """What the runtime needs of the bus."""

    def flush(self) -> None:
        """Let out what was said to other nodes."""

    def perform(self) -> bool:
        """Make and close the connections that the outbox asks for; whether there were any."""


class TakesEvents(Protocol):
    """What the runtime needs of the event log."""

    def turn_ended(self) -> None:
        """Take the events, if there are many."""


class Deadline(Protocol):
    """A part of the node that has something to do at times of its own; steady clock."""

    def next_due_ms(self) -> int:
        """When :meth:`run_due` has something to do next, -1 for never."""

    def run_due(self, now_ms: int) -> object:
        """Do what is due by now, a bounded part of it; the rest stays due."""


@implementer(ITurn)
class Runtime:
    """One per node. ``calls``: operations of programs that embed the node, by client ID.

    ``log``: committed before anything leaves. ``save_nodes``: writes the node table down when it
    changed, also before anything leaves. ``bus``: ``None`` for a node that is alone.
    ``eventlog``: ``None`` for a node without.
    ``deadlines``: what has to be woken on time besides the node. ``fatal``: called with the reason
    why the process must end.
    """

    def __init__(
        self,
        node: Node,
        server: Server,
        dispatcher: Dispatcher,
        clock: IClock,
        reactor: IReactorTime,
    ) -> None:
        self.node = node
        self.server = server
        self.dispatcher = dispatcher
        self.pump = Pump(server, dispatcher)
        self.calls: dict[int, Any] = {}
        self.log: CommitsLog | None = None
        self.save_nodes: Callable[[], None] = self.node.membership.saved
        self.bus: PerformsBus | None = None
        self.eventlog: TakesEvents | None = None
        self.deadlines: list[Deadline] = []
        self.fatal: Callable[[str], object] = lambda why: _log.critical("{why}", why=why)
        self.in_turn = False
        self._dead = False
        self._part = nullcontext(node)
        self._reactor = reactor
        self._outbox = node.outbox
        self._steady_ms = clock.steady_ms
        self._wall_us = clock.wall_us
        self._late_call: IDelayedCall | None = None
        self._timer: IDelayedCall | None = None
        self._timer_ms = -1
        self.stopped = False
        node.begin(self._steady_ms(), self._wall_us())

    def turn(self) -> AbstractContextManager[Node]:
        """Input that is part of the turn under way, or else a turn of its own, which ends however
        the block is left."""
        return self._part if self.in_turn else self

    def __enter__(self) -> Node:
        """Use :meth:`turn`. Input follows: the clocks are read once."""
        self.in_turn = True
        self.node.begin(self._steady_ms(), self._wall_us())
        self.dispatcher.begin()
        return self.node

    def __exit__(self, *_fault: object) -> None:
        """The input is executed: let everything out, in order."""
        outbox = self._outbox
        pump = self.pump
        bus = self.bus
        try:
            if self._dead:
                return
            while outbox.resumed:
                resumed, outbox.resumed = outbox.resumed, []
                for client in resumed:
                    if isinstance(client, Session) and client.connection.session is client:
                        pump.drain_resumed(client)
            log = self.log
            if log is not None:
                log.commit()
                if log.write_error:
                    self.server.troubled = True
            if self.node.membership.changed:
                self.save_nodes()
        except Exception as error:
            self._die(error)
            raise
        else:
            more = self._let_out(outbox, pump, bus)
        finally:
            self.in_turn = False
        if more and self._late_call is None and not self.stopped:
            self._late_call = self._reactor.callLater(0, self._go_on)
        due_ms = self._next_due_ms()
        if due_ms >= 0 and (self._timer_ms < 0 or due_ms < self._timer_ms):
            self._arm(due_ms)

    def _die(self, error: Exception) -> None:
        """Nobody knows what was written down: nothing may leave any more."""
        self._dead = True
        if not isinstance(error, LocalError):  # else it was said where it happened
            self.fatal(
                "A fault in this program: nobody knows what was written down, so the node stops"
                f" here and answers nothing more. {Failure().getTraceback()}"
            )

    def _let_out(self, outbox: Outbox, pump: Pump, bus: PerformsBus | None) -> bool:
        """Messages, replies and connections; whether there is more to do in another turn."""
        more = False
        if bus is not None:
            try:
                bus.flush()
            except Exception:
                self._report("Messages to other nodes could not be sent")
        touched = outbox.touched
        if touched:
            outbox.touched = []
            for client in pump.flush_all(touched):
                call = self.calls.get(client.id)
                if call is not None:
                    call.flush()
        if bus is not None:
            # Turns within this one are parts of it: what they leave is let out by the next one.
            try:
                more = bus.perform()
            except Exception:
                self._report("Connections to other nodes could not be made or closed")
        if outbox.events is not None and self.eventlog is not None:
            try:
                self.eventlog.turn_ended()
            except Exception:
                self._report("Events could not be logged")
        return more or bool(pump.late) or bool(outbox.touched)

    def _report(self, what: str) -> None:
        _log.failure("A fault in this program: {what}. Please report what follows.", what=what)

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

    def _next_due_ms(self) -> int:
        due_ms: int = self.node.next_due_ms()
        for deadline in self.deadlines:
            other_ms = deadline.next_due_ms()
            if due_ms < 0 or 0 <= other_ms < due_ms:
                due_ms = other_ms
        return due_ms

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
        with self.turn() as node:
            begun_ms = node.now_ms
            node.run_due()
            for deadline in self.deadlines:
                deadline.run_due(begun_ms)
            took_ms = self._steady_ms() - begun_ms
            self.server.latency.sample(b"jobs-processing", node.wall_us // 1_000_000, took_ms)

    def stop(self) -> None:
        """No more timers."""
        self.stopped = True
        for call in (self._timer, self._late_call):
            if call is not None and call.active():
                call.cancel()
        self._timer = self._late_call = None
