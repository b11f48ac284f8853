"""The order in which a node starts and stops (cluster protocol, section 16).

Start: load the log, while clients get LOADING; prepare whatever else must be there; write the nodes
file; queue what was queued at the stop before; only then start to serve. A node whose start fails
before that leaves its files as they were.

Stop: accept no more connections; disconnect blocked clients; write and sync the log; close the
connections; write what is queued, the nodes file, and the policies file if it lacks anything.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Protocol

from disque_tx.config.paths import os_error_text
from disque_tx.core.tables.table import SharedTable
from disque_tx.engine.interfaces import OperatorLog
from disque_tx.errors import CommandError

if TYPE_CHECKING:
    from disque_tx.commands.base.context import Server
    from disque_tx.core.node import Node

_STOPPING: Final = "This node is shutting down, please connect to a different one"

Done = Callable[[Exception | None], object]


class QueuedJobsFile(Protocol):
    """What is queued, from a clean stop to the next start."""

    def resume(self) -> bool:
        """Queue some of what was queued when the node stopped; whether there is more."""

    def later(self, work: Callable[[], object]) -> None:
        """Call this in another turn."""

    def save(self) -> None:
        """Write what is queued, for the next start."""


class SyncedLog(Protocol):
    """The log of the jobs."""

    @property
    def queued(self) -> QueuedJobsFile:
        """What is queued, at a stop."""

    def flush_and_sync(self) -> None:
        """Everything recorded is on the disk afterwards; ``OSError`` when it cannot be."""


class Host(Protocol):
    """The process around a node."""

    def load(self, done: Done) -> None:
        """Load the log."""

    def prepare(self, done: Done) -> None:
        """The log is loaded: prepare everything else that must be ready."""

    def start_serving(self) -> None:
        """The node is ready: connect to other nodes, serve clients."""

    def start_failed(self, error: Exception) -> None:
        """The node cannot start."""

    def stop_accepting(self) -> None:
        """Accept no more connections."""

    def save_nodes(self, sync: bool = False) -> None:
        """Write the nodes file; ``OSError`` when it is out of date."""

    def nodes_file_failed(self, error: OSError) -> None:
        """The nodes file cannot be written: a node that cannot store its own ID must end."""


class Lifecycle:
    """The start and the stop of one node. ``member``: it serves, so the nodes file is its own to
    write. ``turn``: the block of a turn."""

    def __init__(
        self,
        server: Server,
        log: SyncedLog,
        turn: Callable[[], AbstractContextManager[Node]],
        host: Host,
        reports: OperatorLog,
    ) -> None:
        self.serving = False
        self._written = False
        self._server = server
        self._log = log
        self._turn = turn
        self._host = host
        self._reports = reports

    def begin(self) -> None:
        """Load the log and what follows."""
        self._server.degraded = True
        self._host.load(self._loaded)

    def _loaded(self, error: Exception | None) -> None:
        if error is not None:
            self._host.start_failed(error)
            return
        self._server.degraded = self._server.waiting
        self._host.prepare(self._prepared)

    def _prepared(self, error: Exception | None) -> None:
        if error is not None:
            self._host.start_failed(error)
            return
        self.serving = True
        node = self._server.node
        node.recurring.begin()
        self.nodes_changed()
        self._resume()

    def _resume(self) -> None:
        with self._turn():
            more = self._log.queued.resume()
        if more:
            self._log.queued.later(self._resume)
        else:
            self._host.start_serving()

    def nodes_changed(self) -> None:
        """Write the nodes file. A node that does not serve yet leaves it as it is."""
        if not self.serving:
            return
        try:
            self._host.save_nodes()
        except OSError as error:
            self._server.node.membership.saved()
            self._host.nodes_file_failed(error)

    def end(self) -> bool:
        """Accept no more connections, disconnect blocked clients, write and sync the log; returns
        whether the log holds everything. Connections are closed after that."""
        self._host.stop_accepting()
        with self._turn() as node:
            for client in node.dismiss(CommandError("LEAVING", _STOPPING)):
                client.closing = True
        try:
            self._log.flush_and_sync()
        except OSError as error:
            reason = os_error_text(error)
            self._reports.warning(f"The log could not be written at shutdown: {reason}")
            return False
        self._written = True
        return True

    def finish(self) -> bool:
        """The connections are closed: write what is queued, and the nodes file; whether that
        worked."""
        if not self.serving:
            return True
        if self._written:
            self._log.queued.save()
        try:
            self._host.save_nodes()
        except OSError as error:
            reason = os_error_text(error)
            self._reports.warning(f"The nodes file could not be written at shutdown: {reason}")
            return False
        control, node = self._server.control, self._server.node
        saved = self._saved(node.policy_table, control.save_policies)
        return self._saved(node.timetable, control.save_schedules) and saved

    def _saved(self, table: SharedTable, save: Callable[[], None]) -> bool:
        """Write the file of a table, unless it has everything; other nodes have what it lacks."""
        if table.unsaved:
            try:
                save()
            except CommandError as error:
                self._reports.warning(error.text)
                return False
        return True
