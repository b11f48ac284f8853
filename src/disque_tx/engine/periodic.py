"""What a node does by itself, ``hz`` times a second (client protocol, sections 2, 13.7 and 20).

No step walks over everything that is stored: clients and queues are looked at a slice at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from disque_tx.core.base.client import NOT_BLOCKED, Client
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.statistics.flows import FLOWS_MAX
from disque_tx.core.tables.table import SharedTable
from disque_tx.engine.interfaces import OperatorLog
from disque_tx.errors import CommandError

if TYPE_CHECKING:
    from disque_tx.commands.base.context import Server
    from disque_tx.config.lists import OutputLimit

#: Memory that goes up and down around a threshold is reported at most this often.
PAUSE_MS: Final = 10_000
#: Changes received from other nodes are saved at most this often.
TABLES_SAVED_MS: Final = 1_000
_MEANINGS: Final = (
    "below 75 %: new jobs are kept on this node again",
    "above 75 %: this node keeps no new jobs. ADDJOB places them on other nodes, and fails with"
    " NOREPL if there are too few. Let workers catch up, or raise maxmemory",
    "above 95 %: ADDJOB fails with OOM when no acknowledged job is left to be evicted. Let workers"
    " catch up, or raise maxmemory",
)


class MemoryWatch:
    """Logs when memory crosses the thresholds at 75 and 95 % of ``maxmemory``, both ways.

    Above the first one ADDJOB behaves differently, above the second one it may fail: an operator
    must not have to learn that from the programs that add jobs (client protocol, section 13.6).
    """

    def __init__(self, memory: Memory, reports: OperatorLog) -> None:
        self._memory = memory
        self._reports = reports
        self._logged = 0
        self._next_ms = 0

    def check(self, now_ms: int) -> None:
        """Log the level if it is another one; ``now_ms``: the steady clock."""
        level = int(self._memory.level())
        if level == self._logged or now_ms < self._next_ms:
            return
        self._logged = level
        self._next_ms = now_ms + PAUSE_MS
        write = self._reports.warning if level else self._reports.notice
        if not self._memory.limit:
            write("Memory is no longer limited: new jobs are kept on this node again")
            return
        used, limit = int(self._memory.used), int(self._memory.limit)
        percent = used * 100 // limit
        write(f"{percent} % of maxmemory is used ({used} of {limit} bytes), {_MEANINGS[level]}.")


_CLIENTS_PER_RUN_MIN: Final = 5
_QUEUES_PER_RUN: Final = 200


class PeriodicSettings(Protocol):
    """``hz``: runs per second. ``timeout``: seconds until an idle client is closed, 0 for never."""

    hz: int
    timeout: int
    client_output_buffer_limit: OutputLimit


class TickingLog(Protocol):
    """The log of the jobs, as far as it has periodic work."""

    @property
    def loading(self) -> bool:
        """Whether the log is being loaded."""

    @property
    def write_error(self) -> str:
        """Why recorded jobs are missing from the log; empty when none are."""

    def tick(self) -> None:
        """Sync, retry and rewrite what is due."""


class Connections(Protocol):
    """The connections of clients."""

    def output_bytes(self, client: Client) -> int:
        """Bytes of replies that the client has not read."""

    def resume_all(self) -> None:
        """A pause of all clients is over: execute what they sent meanwhile."""


class KeptTable:
    """A shared table and the way to save it."""

    def __init__(self, table: SharedTable, save: Callable[[], None]) -> None:
        self._table = table
        self._save = save
        self._next_save_ms = 0

    def keep(self, now_ms: int, wall_s: int, reports: OperatorLog) -> None:
        """Drop what was deleted long ago, and save what other nodes have changed: these have it
        already, so that can wait for a moment, and many changes are written at once."""
        table = self._table
        table.drop_old(wall_s)
        if not table.unsaved or now_ms < self._next_save_ms:
            return
        self._next_save_ms = now_ms + TABLES_SAVED_MS
        try:
            self._save()
        except CommandError as error:
            self._next_save_ms += PAUSE_MS
            reports.warning(error.text)


class PeriodicWork:
    """The periodic work of one node. ``log``: ``None`` without one."""

    def __init__(
        self,
        server: Server,
        settings: PeriodicSettings,
        connections: Connections,
        log: TickingLog | None,
        reports: OperatorLog,
    ) -> None:
        self._server = server
        self._node = server.node
        self._settings = settings
        self._connections = connections
        self._log = log
        self._reports = reports
        self._memory = MemoryWatch(server.node.memory, reports)
        self._next_client = 0
        control, node = server.control, server.node
        self._tables = (
            KeptTable(node.policy_table, control.save_policies),
            KeptTable(node.timetable, control.save_schedules),
        )

    def run(self) -> None:
        """Run the periodic work once, within a turn."""
        server, node = self._server, self._node
        server.stats.tick(node.now_ms)
        self._visit_clients()
        node.release_leaving()
        node.queues.sweep(node.now_ms, _QUEUES_PER_RUN)
        self._keep_tables()
        node.state.history.sample(FLOWS_MAX // self._settings.hz + 1)
        if server.paused_until_ms and node.now_ms >= server.paused_until_ms:
            server.paused_until_ms = 0
            self._connections.resume_all()
        self._memory.check(node.now_ms)
        log = self._log
        if log is not None:
            log.tick()
            server.degraded = bool(log.loading or log.write_error or server.waiting)

    def _keep_tables(self) -> None:
        """Drop what was deleted long ago from the shared tables, and save what has changed."""
        node = self._node
        for table in self._tables:
            table.keep(int(node.now_ms), int(node.wall_us) // 1_000_000, self._reports)

    def _visit_clients(self) -> None:
        clients = self._server.clients
        count = max(_CLIENTS_PER_RUN_MIN, len(clients) // self._settings.hz)
        if count >= len(clients):
            chosen = list(clients.values())
        else:
            # Oldest first, beginning behind the last one visited.
            ids = self._ids_after(count)
            chosen = [clients[client_id] for client_id in ids]
        for client in chosen:
            self._check_idle(client)
            self._check_output(client)

    def _ids_after(self, count: int) -> list[int]:
        ids = list(self._server.clients)
        start = self._next_client % len(ids)
        self._next_client = start + count
        return (ids[start:] + ids[:start])[:count]

    def _check_idle(self, client: Client) -> None:
        """Close a client that was idle for longer than ``timeout`` (whole seconds, strictly)."""
        limit_s = self._settings.timeout
        if limit_s and client.blocked == NOT_BLOCKED:
            if self._node.now_ms // 1000 - client.seen_ms // 1000 > limit_s:
                self._reports.verbose("Closing idle client")
                client.abort_now = True
                self._node.outbox.touch(client)

    def _check_output(self, client: Client) -> None:
        """Close a client that does not read its replies (``client-output-buffer-limit``)."""
        limit = self._settings.client_output_buffer_limit
        if not limit.hard_bytes and not limit.soft_bytes:
            return
        size = self._connections.output_bytes(client)
        now_ms = self._node.now_ms
        above_soft = 0 < limit.soft_bytes <= size
        if not above_soft:
            client.soft_limit_ms = -1
        elif client.soft_limit_ms < 0:
            client.soft_limit_ms = now_ms
        too_long = above_soft and now_ms - client.soft_limit_ms > limit.soft_s * 1000
        if too_long or 0 < limit.hard_bytes <= size:
            self._reports.warning(
                f"Client {client.addr.decode('utf-8', 'replace')} closed: {size} bytes of replies"
                " not read, more than client-output-buffer-limit allows"
            )
            client.abort_now = True
            self._node.outbox.touch(client)
