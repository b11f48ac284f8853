"""The node as the plugins of its listeners see it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IAddress
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.commands.direct import DirectNode, DirectProtocol
from disque_tx.plugins.interfaces import IHost, IProcesses
from disque_tx.plugins.values import JobEvent, Role
from disque_tx.services.clients.admission import Admission
from disque_tx.services.clients.direct import DirectFactory
from disque_tx.services.clients.guard import Guard, GuardedReactor
from disque_tx.services.clients.pluginclient import PluginClient, network_of_peer
from disque_tx.services.clients.protocol import RespFactory
from disque_tx.services.clients.roles import Passwords
from disque_tx.services.clients.view import NodeView
from disque_tx.services.events.finished import FinishedFiles
from disque_tx.services.events.watching import Watch

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.clients.embedded import NodeService
    from disque_tx.services.events.sinks import EventSinks
    from disque_tx.services.machine.platform import Platform
    from disque_tx.services.turns.runtime import Runtime


@implementer(IHost)
class PluginHost:
    """The host of plugins at one node. ``started``: whether its start is complete."""

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        platform: Platform,
        service: NodeService,
        sinks: EventSinks,
        started: Callable[[], bool],
    ) -> None:
        self.settings = settings
        self.log = platform.log
        self.reactor: Any = platform.reactor
        self.node_service = service
        self.view = NodeView(runtime.server, sinks, started)
        self.processes: IProcesses | None = None
        self._runtime = runtime
        self._admission = Admission(runtime, settings, platform.log)
        self._sinks = sinks
        self._direct_node = DirectNode(runtime.server, runtime.dispatcher)
        self._passwords = Passwords(settings, platform.guesses)
        self._steady_ms = platform.clock.steady_ms
        self._guards: dict[str, Guard] = {}
        self._guard = Guard("embedded", platform.log, platform.clock.steady_ms)

    def guarded(self, name: str) -> tuple[PluginHost, Guard]:
        """The node as the plugin with this name sees it, and the guard over its code."""
        guard = self._guards.get(name)
        if guard is None:
            guard = self._guards[name] = Guard(name, self.log, self._steady_ms)
        host = copy(self)
        host._guard = guard
        host.reactor = GuardedReactor(guard, self.reactor)
        return host, guard

    def disque_clients(self) -> RespFactory:
        """A factory of the protocol of Disque's clients."""
        return RespFactory(self._runtime, self._admission)

    def direct_clients(
        self, name: str, make: Callable[[DirectNode], DirectProtocol], refusal: bytes
    ) -> DirectFactory:
        """A factory of connections whose protocol works within turns."""
        node = self._direct_node
        admission = self._admission
        return DirectFactory(self._runtime, admission, name.encode(), lambda: make(node), refusal)

    @property
    def direct_node(self) -> DirectNode:
        """The node, for protocols within its turns."""
        return self._direct_node

    def in_turn(self, work: Callable[[], object]) -> None:
        """Do this within a turn."""
        with self._runtime.turn() as node:
            work()
            node.serve()

    def admit(self, transport: Any, protocol: str) -> PluginClient:
        """Register a client of a plugin's protocol."""
        guard, service = self._guard, self.node_service
        client = PluginClient(service, self._admission, self._passwords, guard, transport, protocol)
        if guard.connection is not None:
            guard.connection.on_lost.append(client.abandoned)
        return client

    def authenticate(self, password: bytes | None, peer: IAddress) -> Role:
        """What a client at this address may do with this password."""
        return self._passwords.role(password, network_of_peer(peer))

    def event_files(self) -> FinishedFiles | None:
        """The finished files of the event log, of all processes of the daemon."""
        return FinishedFiles(self._event_folders()) if self.settings.eventlog else None

    def _event_folders(self) -> list[str]:
        if self.processes is None:
            return [self.settings.eventlog_dir]
        return self.processes.event_folders()

    def watch(
        self,
        watcher: Callable[[JobEvent], None],
        kinds: Collection[int] = (),
        wants: Callable[[bytes], bool] | None = None,
    ) -> Callable[[], None]:
        """Report the events of jobs to ``watcher``, until the returned function is called, or it
        raises."""
        guard, sinks = self._guard, self._sinks

        def failed(watch: Watch) -> None:
            guard.failed("a watcher", Failure(), "it gets no more events")
            sinks.unwatch(watch)

        def tell(events: list[JobEvent]) -> None:
            for event in events:
                if not watch.ended:
                    watcher(event)

        asked = None if wants is None else lambda queue: guard.run("a watcher", wants, queue)
        watch = Watch(
            list(kinds), asked, lambda events: guard.run("a watcher", tell, events), failed
        )
        sinks.watch(watch)
        return lambda: sinks.unwatch(watch)
