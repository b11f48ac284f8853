"""A turn: the order in which a batch of input is executed, and in which its effects leave.

Everything in a batch is executed first; then, in this order, the log is written (and synced, if the
policy says so), the node table is saved if it changed, messages to other nodes leave, and replies
leave, one write per connection (cluster protocol, section 13.1). Connections to other nodes are
made and closed after that. Input of clients that a turn unblocks belongs to the same turn.

A turn ends in any case, and at once:

1. A fault while the input is executed is raised, after what was done before it has left.
2. A fault while effects are written to disk ends the process: it is unknown what the disk holds, so
   nothing leaves that depends on it, neither now nor later.
3. A fault while effects are sent costs the connection or the message that it met.
4. What closing connections changes is input of the turn under way, and leaves with the next one,
   which is never inside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mypy_extensions import i64, mypyc_attr

from disque_tx.commands.base.context import Server
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.core.base.client import Client
from disque_tx.errors import LocalError


@mypyc_attr(allow_interpreted_subclasses=True)
class Clients:
    """The connections of clients."""

    def resume(self, clients: list[Client]) -> None:
        """Execute what clients sent while they were blocked."""
        raise NotImplementedError

    def flush(self, clients: list[Client]) -> bool:
        """Send the replies of these clients; returns whether input waits for another turn."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class CommittedLog:
    """The log of the jobs. ``is_open``: there is a file, so a turn without records may have
    something to do for it, too."""

    is_open: bool = False

    def commit(self) -> str:
        """Write, and by policy sync, what was recorded; returns why the log does not hold it, empty
        when it does. Raises ``LocalError`` when the process ends because that failed."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class OutgoingLinks:
    """The links to other nodes."""

    def flush(self) -> None:
        """Send the messages of this turn."""
        raise NotImplementedError

    def perform(self) -> bool:
        """Make and close the connections that the outbox asks for; whether there were any."""
        raise NotImplementedError


class TurnEventLog(Protocol):
    """The log of what happens to jobs."""

    def turn_ended(self) -> None:
        """Write the events collected so far, if there are many."""


class Deadline(Protocol):
    """A part of the node with deadlines of its own, on the steady clock."""

    def next_due_ms(self) -> int:
        """When :meth:`run_due` has something to do next, -1 for never."""

    def run_due(self) -> object:
        """Do what is due by now, a bounded part of it; the rest stays due."""


class Turns:
    """The turns of one node, one after the other. ``active``: one is under way.

    ``log``: ``None`` without one. ``save_nodes``: writes the node table to disk. ``links``:
    ``None`` for a node that is alone. ``eventlog``: ``None`` without one. ``deadlines``: what is to
    be run on time besides the node. ``dead``: what a turn did could not be written to disk.

    ``fatal``: called with a fault met while writing to disk that was not logged where it happened;
    the process must end. ``report``: called with what could not be done, and the fault.
    """

    def __init__(
        self,
        server: Server,
        dispatcher: Dispatcher,
        clients: Clients,
        *,
        steady_ms: Callable[[], int],
        wall_us: Callable[[], int],
        fatal: Callable[[Exception], object],
        report: Callable[[str, Exception], object],
    ) -> None:
        self.active: bool = False
        self.failed: bool = False
        self.log: CommittedLog | None = None
        self.save_nodes: Callable[[], None] = server.node.membership.saved
        self.links: OutgoingLinks | None = None
        self.eventlog: TurnEventLog | None = None
        self.deadlines: list[Deadline] = []
        self._server = server
        self._node = server.node
        self._outbox = server.node.outbox
        self._dispatcher = dispatcher
        self._clients = clients
        self._steady_ms = steady_ms
        self._wall_us = wall_us
        self._fatal = fatal
        self._report = report
        self._node.begin(steady_ms(), wall_us())

    def connect(
        self,
        log: CommittedLog,
        save_nodes: Callable[[], None],
        links: OutgoingLinks,
        eventlog: TurnEventLog | None,
    ) -> None:
        """Where the effects of turns go; before the first one."""
        self.log = log
        self.save_nodes = save_nodes
        self.links = links
        self.eventlog = eventlog

    def begin(self) -> None:
        """Input follows: the clocks are read once."""
        self.active = True
        self._node.begin(self._steady_ms(), self._wall_us())
        self._dispatcher.begin()

    def end(self) -> bool:
        """The input is executed: write and send its effects, in order; returns whether another turn
        should follow soon. Raises a fault met while writing to disk."""
        try:
            if self.failed:
                return False
            try:
                self._commit()
            except Exception as error:
                self.failed = True
                if not isinstance(error, LocalError):
                    self._fatal(error)
                raise
            return self._send_effects()
        finally:
            self.active = False

    def _commit(self) -> None:
        """Write everything to disk that must be there before anything is sent."""
        outbox = self._outbox
        while outbox.resumed:
            resumed, outbox.resumed = outbox.resumed, []
            self._clients.resume(resumed)
        self._node.finish()
        log = self.log
        if log is not None and (log.is_open or outbox.log is not None):
            if log.commit():
                self._server.degraded = True
        if self._node.membership.changed:
            self.save_nodes()

    def _send_effects(self) -> bool:
        """Messages, replies and connections."""
        outbox = self._outbox
        links = self.links
        if links is not None:
            try:
                links.flush()
            except Exception as error:
                self._report("Messages to other nodes could not be sent", error)
        touched, outbox.touched = outbox.touched, []
        more = self._clients.flush(touched)
        if links is not None:
            # Turns within this one are parts of it: their effects leave with the next one.
            try:
                if links.perform():
                    more = True
            except Exception as error:
                self._report("Connections to other nodes could not be made or closed", error)
        if outbox.events is not None and self.eventlog is not None:
            try:
                self.eventlog.turn_ended()
            except Exception as error:
                self._report("Events could not be logged", error)
        return more or bool(outbox.touched)

    # -- time --------------------------------------------------------------------------------

    def next_due_ms(self) -> i64:
        """When something is to be done next, by the steady clock; -1 for never."""
        due_ms: i64 = self._node.next_due_ms()
        for deadline in self.deadlines:
            other_ms: i64 = deadline.next_due_ms()
            if due_ms < 0 or 0 <= other_ms < due_ms:
                due_ms = other_ms
        return due_ms

    def run_due(self) -> None:
        """Do what is due, within a turn."""
        begun_ms = self._node.now_ms
        self._node.run_due()
        for deadline in self.deadlines:
            deadline.run_due()
        took_ms = self._steady_ms() - begun_ms
        self._server.latency.sample(b"jobs-processing", self._node.wall_us // 1_000_000, took_ms)
