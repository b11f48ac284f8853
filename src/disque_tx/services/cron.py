"""What a node does by itself, ``hz`` times a second (client protocol, sections 2, 13.7 and 20).

No step walks over everything that is stored: clients and queues are looked at a slice at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twisted.application.service import Service
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from disque_tx.core.client import NOT_BLOCKED, Client
from disque_tx.services.memorywatch import MemoryWatch
from disque_tx.services.pump import Session

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.aof import AppendOnlyFile
    from disque_tx.services.log import DaemonLog
    from disque_tx.services.runtime import Runtime

_CLIENTS_PER_RUN_MIN: Final = 5
_QUEUES_PER_RUN: Final = 200


class Cron(Service):
    """The periodic work of one node."""

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        aof: AppendOnlyFile,
        log: DaemonLog,
        reactor: IReactorTime,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._aof = aof
        self._log = log
        self._memory = MemoryWatch(runtime.node.memory, log)
        self._loop = LoopingCall(self.run)
        self._loop.clock = reactor
        self._next_client = 0

    def startService(self) -> None:
        """Begin; the first run is one period from now."""
        super().startService()
        self._loop.start(1 / self._settings.hz, now=False).addErrback(self._broken)

    def stopService(self) -> None:
        """No more runs."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()

    def hz_changed(self) -> None:
        """``hz`` was set: go on at the new pace."""
        if self._loop.running:
            self._loop.stop()
            self._loop.start(1 / self._settings.hz, now=False).addErrback(self._broken)

    def _broken(self, failure: object) -> None:
        self._log.warning(f"The periodic work failed and is taken up again: {failure}")
        if self.running:
            self._loop.start(1 / self._settings.hz, now=False).addErrback(self._broken)

    def run(self) -> None:
        """One run."""
        runtime = self._runtime
        server = runtime.server
        with runtime.turn() as node:
            server.stats.tick(node.now_ms)
            self._visit_clients()
            node.release_leaving()
            node.queues.sweep(node.now_ms, _QUEUES_PER_RUN)
            if server.paused_until_ms and node.now_ms >= server.paused_until_ms:
                server.paused_until_ms = 0
                runtime.resume_all()
            self._memory.look(node.now_ms)
            self._aof.tick()
            server.troubled = bool(self._aof.loading or self._aof.write_error)

    # -- clients -----------------------------------------------------------------------------

    def _visit_clients(self) -> None:
        clients = self._runtime.server.clients
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
        ids = list(self._runtime.server.clients)
        start = self._next_client % len(ids)
        self._next_client = start + count
        return (ids[start:] + ids[:start])[:count]

    def _check_idle(self, client: Client) -> None:
        """Close who has been silent for longer than ``timeout`` (whole seconds, strictly)."""
        node = self._runtime.node
        limit_s = self._settings.timeout
        if limit_s and client.blocked == NOT_BLOCKED:
            if node.now_ms // 1000 - client.seen_ms // 1000 > limit_s:
                self._log.verbose("Closing idle client")
                client.doomed = True
                node.outbox.touch(client)

    def _check_output(self, client: Client) -> None:
        """Close who does not read its replies (``client-output-buffer-limit``)."""
        limit = self._settings.client_output_buffer_limit
        if not limit.hard_bytes and not limit.soft_bytes:
            return
        if not isinstance(client, Session):
            return
        size = client.connection.output_bytes()
        now_ms = self._runtime.node.now_ms
        above_soft = 0 < limit.soft_bytes <= size
        if not above_soft:
            client.soft_limit_ms = -1
        elif client.soft_limit_ms < 0:
            client.soft_limit_ms = now_ms
        too_long = above_soft and now_ms - client.soft_limit_ms > limit.soft_s * 1000
        if too_long or 0 < limit.hard_bytes <= size:
            self._log.warning(
                f"Client {client.addr.decode('utf-8', 'replace')} closed: {size} bytes of replies"
                " not read, more than client-output-buffer-limit allows"
            )
            client.doomed = True
            self._runtime.node.outbox.touch(client)
