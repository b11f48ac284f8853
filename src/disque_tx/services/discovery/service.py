"""Looks for other nodes as long as the node serves, and tells it what is found.

Each source is looked up at the start and then every ``cluster-discovery-interval``, a little
earlier or later, so that nodes that were started together do not ask together. A file is looked up
soon after it changed, too. Which addresses are met is decided by ``core.nodes.discovery``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from twisted.application.service import Service
from twisted.python.failure import Failure

from disque_tx.config.kinds import encode
from disque_tx.config.sources import parse_place, parse_source
from disque_tx.config.units import printable
from disque_tx.core.nodes.discovery import Place
from disque_tx.services.discovery.lookup import Lookup, Signature
from disque_tx.services.discovery.names import LookupFailed, Names

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.platform import Platform
    from disque_tx.services.turns.runtime import Runtime

_DNS_PORT: Final = 53
#: How often it is looked whether a file has changed.
WATCH_S: Final = 1.0
#: Characters of a reason, which may hold what a name server answered.
_REASON_MAX: Final = 300


class DiscoveryService(Service):
    """``daemon``: gives the configuration of the daemon, of whose port other nodes are if their
    address says nothing else. ``random``: a number in [0, 1) per call."""

    name = "discovery"

    def __init__(
        self,
        runtime: Runtime,
        daemon: Callable[[], Settings],
        platform: Platform,
        random: Callable[[], float],
    ) -> None:
        self._runtime = runtime
        self._daemon = daemon
        self._platform = platform
        self._random = random
        self._watches: list[_Watch] = []

    def startService(self) -> None:
        """Look up all sources at once, and again from then on."""
        super().startService()
        settings = self._daemon()
        servers = [parse_place(text) for text in settings.cluster_discovery_nameservers]
        names = Names(
            self._platform.reactor, [(one.host, one.port or _DNS_PORT) for one in servers]
        )
        for text in settings.cluster_discovery:
            lookup = Lookup(parse_source(text), names, self._platform.in_thread, self._ports)
            self._watches.append(_Watch(self, lookup, self._platform.reactor))
        for watch in self._watches:
            watch.begin()

    def stopService(self) -> None:
        """Look for nobody any more."""
        super().stopService()
        watches, self._watches = self._watches, []
        for watch in watches:
            watch.end()

    def _ports(self, port: int, bus_port: int) -> tuple[int, int]:
        """Where nothing else is said, other nodes have the ports that this one announces."""
        settings = self._daemon()
        own = settings.cluster_announce_port or settings.port
        if port in (0, own):
            bus = settings.cluster_announce_bus_port or settings.cluster_bus_port
            return own, bus_port or bus
        return port, bus_port

    def pause_s(self) -> float:
        """How long to wait until the next lookup."""
        return self._runtime.node.cluster.discovery.pause_s(self._random())

    def found(self, text: str, places: list[Place]) -> None:
        """A source has answered."""
        discovery = self._runtime.node.cluster.discovery
        if discovery.source(text).error:
            self._platform.log.notice(f"cluster-discovery {text} works again")
        with self._runtime.turn() as node:
            discovery.found(text, places, node.now_ms)

    def failed(self, text: str, failure: Failure) -> None:
        """A source could not be looked up, or lists no node; each reason is logged once."""
        if failure.check(LookupFailed):
            why = printable(encode(failure.getErrorMessage()))[:_REASON_MAX]
        else:
            why = f"a fault in this program ({type(failure.value).__name__})"
            for line in failure.getTraceback().splitlines():
                self._platform.log.warning(line)
        if self._runtime.node.cluster.discovery.failed(text, why):
            self._platform.log.warning(
                f"cluster-discovery {text} finds no nodes: {why}. The nodes that are known stay"
                " members; it is tried again."
            )


class _Watch:
    """One source, looked up again and again."""

    def __init__(self, service: DiscoveryService, lookup: Lookup, reactor: Any) -> None:
        self._service = service
        self._lookup = lookup
        self._reactor = reactor
        self._is_file = lookup.source.kind == "file"
        self._signature: Signature | None = None
        self._due_s = 0.0
        self._call: Any = None
        self._ended = False

    def begin(self) -> None:
        """Look up now."""
        self._call = None
        if self._is_file:
            self._lookup.signature().addCallback(self._read).addErrback(self._failed)
        else:
            self._run()

    def end(self) -> None:
        """No more lookups; the answer of one under way is ignored."""
        self._ended = True
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _read(self, signature: Signature | None) -> None:
        """The file is read when it has changed, or when it is time."""
        if signature != self._signature or self._reactor.seconds() >= self._due_s:
            self._signature = signature
            self._run()
        else:
            self._again()

    def _run(self) -> None:
        if not self._ended:
            self._due_s = self._reactor.seconds() + self._service.pause_s()
            self._lookup.run().addCallbacks(self._found, self._failed)

    def _found(self, places: list[Place]) -> None:
        if not self._ended:
            self._service.found(self._lookup.source.text, places)
            self._again()

    def _failed(self, failure: Failure) -> None:
        if not self._ended:
            self._service.failed(self._lookup.source.text, failure)
            self._again()

    def _again(self) -> None:
        if not self._ended:
            wait_s = max(self._due_s - self._reactor.seconds(), 0.0)
            self._call = self._reactor.callLater(
                min(wait_s, WATCH_S) if self._is_file else wait_s, self.begin
            )
