"""The cluster bus as a service: listening, connections, TLS, stopping (cluster protocol, section
2). What happens to links and messages is in ``engine``: ``buslinks.py``, ``buspump.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionClosed
from twisted.python.failure import Failure

from disque_tx.engine.buslinks import BusLinks
from disque_tx.engine.buspump import BusPump, MessageDelivery
from disque_tx.messages.nodes import NodeEntry
from disque_tx.services.bus.clusterlog import StrangerLog
from disque_tx.services.bus.endpoints import BusConnector, listen_bus
from disque_tx.services.bus.protocol import BusFactory, BusProtocol
from disque_tx.services.net.certificates import Identity
from disque_tx.services.net.listening import shown_host
from disque_tx.services.net.sockets import Adopter, FastPort

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.platform import Platform
    from disque_tx.services.net.hub import Hub
    from disque_tx.services.turns.runtime import Runtime


class Bus(Service):
    """The connections of one node to others.

    ``open`` takes possession of the port; connections are served once the service is started.
    ``first_epoch``: see
    ``BusLinks``. ``identity``: the certificate that it shows to others; ``None`` without TLS.
    """

    name = "bus"

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        platform: Platform,
        hub: Hub,
        first_epoch: int,
    ) -> None:
        self.reactor = platform.reactor
        self.links = BusLinks(runtime.node, settings, self, first_epoch)
        self.pump = BusPump(runtime.node, self.links, MessageDelivery(runtime.node))
        runtime.rounds.bus = self.pump
        self.identity: Identity | None = None
        self._runtime = runtime
        self._settings = settings
        self._log = platform.log
        self._secure = False
        self._inbound: Adopter = hub
        self._outbound: Adopter = hub
        self._ports: list[FastPort] = []
        self._open: set[BusProtocol] = set()
        self._closed: Deferred[None] | None = None
        self._stranger_log = StrangerLog(platform.log, "Cluster bus")
        self._connector = BusConnector(runtime, settings.bind, platform)

    # -- start and stop ----------------------------------------------------------------------

    def open(self) -> None:
        """Read the certificates and listen; ``ConfigError`` when that cannot be done."""
        if self._settings.cluster_bus_tls:
            self._use_tls()
        factory = BusFactory(self, None, self._secure)
        self._ports = [
            FastPort(self.reactor, self._inbound, sock, factory)
            for sock in listen_bus(self._settings, self._log)
        ]

    def open_also(self, port: int) -> None:
        """Listen at one more port; ``ConfigError`` when that cannot be done."""
        factory = BusFactory(self, None, self._secure)
        settings = attrs.evolve(self._settings, cluster_bus_port=port)
        self._ports += [
            FastPort(self.reactor, self._inbound, sock, factory)
            for sock in listen_bus(settings, self._log)
        ]

    def _use_tls(self) -> None:
        from disque_tx.services.bus.tls import TlsAdopter, tls_options

        settings = self._settings
        name = f"cluster-bus-tls-cert {settings.cluster_bus_tls_cert}"
        self.identity = identity = Identity(name, lambda: tls_options(settings))
        self._secure = True
        self._inbound = TlsAdopter(self.reactor, identity, False)
        self._outbound = TlsAdopter(self.reactor, identity, True)

    def startService(self) -> None:
        """Serve other nodes, beginning with those that already wait."""
        super().startService()
        self.links.active = True
        for port in self._ports:
            port.startListening()

    def addresses(self) -> list[str]:
        """Where other nodes can connect."""
        return [shown_host(port.getHost()) for port in self._ports]

    def close(self) -> None:
        """Accept no more connections."""
        ports, self._ports = self._ports, []
        for port in ports:
            port.stopListening()

    def stopService(self) -> Deferred[None]:
        """Send what was written, and close all connections."""
        super().stopService()
        self.links.active = False
        self.close()
        self._connector.stop()
        with self._runtime.turn():
            pass
        for connection in list(self._open):
            connection.close()
        if not self._open:
            return succeed(None)
        self._closed = Deferred()
        return self._closed

    # -- from connections --------------------------------------------------------------------

    def opened(self, connection: BusProtocol) -> None:
        """A connection exists; nothing can be sent on it yet."""
        self._open.add(connection)
        self.links.opened(connection.end)

    def up(self, connection: BusProtocol) -> None:
        """Messages can go both ways."""
        with self._runtime.turn():
            self.links.up(connection.end)

    def receive(self, connection: BusProtocol, data: bytes) -> None:
        """Bytes arrived."""
        with self._runtime.turn():
            self.pump.receive(connection.end, data)

    def resumed(self) -> None:
        """A socket takes bytes again."""
        with self._runtime.turn():
            pass

    def lost(self, connection: BusProtocol, reason: Failure) -> None:
        """A connection is gone."""
        self._open.discard(connection)
        if self._secure and not reason.check(ConnectionClosed):
            self._tls_failed(connection, reason)
        with self._runtime.turn():
            self.links.lost(connection.end)
        if self._closed is not None and not self._open:
            self._closed.callback(None)
            self._closed = None

    # -- from the links ----------------------------------------------------------------------

    def connect(self, entry: NodeEntry) -> None:
        """Connect to a node."""
        self._connector.connect(entry, BusFactory(self, entry, self._secure), self._outbound)

    def resolve(self, host: bytes, port: int) -> None:
        """Look up a node that is to be met."""
        self._connector.resolve(host, port)

    # -- from connections that must end ------------------------------------------------------

    def drop(self, connection: BusProtocol, why: str) -> None:
        """Close a connection because of what the other side did."""
        self._warn(connection, f"{why}: the connection is closed")
        connection.abort()

    def faulty(self, connection: BusProtocol, error: Exception) -> None:
        """A message met a fault of this program."""
        self._log.warning(
            "A fault in this program ended the connection with the node at"
            f" {connection.end.peer_ip.decode()}. Please report what follows."
        )
        for line in Failure(error).getTraceback().splitlines():
            self._log.warning(line)
        connection.abort()

    def _tls_failed(self, connection: BusProtocol, reason: Failure) -> None:
        from disque_tx.services.bus.tls import tls_trouble

        self._warn(connection, f"no connection with TLS: {tls_trouble(reason)}")

    def _warn(self, connection: BusProtocol, text: str) -> None:
        self._stranger_log.warn(connection.end.peer_ip.decode(), text, self._runtime.node.now_ms)
