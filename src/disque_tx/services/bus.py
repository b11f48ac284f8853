"""The cluster bus: listening, connections to other nodes, messages in and out (cluster protocol,
sections 2 and 6).

The policy for nodes that are slow to read: what their socket does not take is kept, up to
``cluster-link-buffer-limit`` per connection, and beyond that the connection is closed. Nothing is
lost by that which the bus had promised: all that is said on it is said again, or best effort.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionClosed
from twisted.python.failure import Failure

from disque_tx.errors import PeerError
from disque_tx.nodetable import Link
from disque_tx.services.buscalls import BusCalls
from disque_tx.services.buslink import BusFactory, BusProtocol
from disque_tx.services.busports import listen_bus
from disque_tx.services.certificates import Identity
from disque_tx.services.complaints import Complaints
from disque_tx.services.listening import shown_host
from disque_tx.services.ports import Adopts, FastPort
from disque_tx.wire.bus import PEER_BYTES_MAX, BusWriter

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.hub import Hub
    from disque_tx.services.log import DaemonLog
    from disque_tx.services.runtime import Runtime

#: Connections on which no known node has spoken yet; of more, the oldest is closed.
STRANGERS_MAX: Final = 256


class Bus(Service):
    """The connections of one node to others.

    ``open`` takes possession of the port; nobody is served before the service is started.
    ``in_thread``: calls a function in a thread, for looking up host names. ``first_epoch``: a
    number that no other start of any node had, higher for a later one. ``written``: what was said
    in this turn. ``identity``: what it shows to others; ``None`` without TLS.
    """

    name = "bus"

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        log: DaemonLog,
        hub: Hub,
        reactor: Any,
        in_thread: Callable[..., Deferred[Any]],
        first_epoch: int,
    ) -> None:
        self.reactor = reactor
        self.written: list[BusWriter] = []
        self.identity: Identity | None = None
        self._runtime = runtime
        self._outbox = runtime.node.outbox
        self._settings = settings
        self._log = log
        self._epoch = first_epoch
        runtime.node.membership.standing.start = first_epoch
        self._secure = False
        self._inbound: Adopts = hub
        self._outbound: Adopts = hub
        self._ports: list[FastPort] = []
        self._open: set[BusProtocol] = set()
        self._strangers: dict[BusProtocol, None] = {}
        self._up: dict[object, BusProtocol] = {}
        self._stalled: list[BusProtocol] = []
        self._closed: Deferred[None] | None = None
        self._complaints = Complaints(log, "Cluster bus")
        self._calls = BusCalls(runtime, log, reactor, settings.bind, in_thread)

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

    def _use_tls(self) -> None:
        from disque_tx.services.bustls import TlsAdopter, tls_options

        settings = self._settings
        name = f"cluster-bus-tls-cert {settings.cluster_bus_tls_cert}"
        self.identity = identity = Identity(name, lambda: tls_options(settings))
        self._secure = True
        self._inbound = TlsAdopter(self.reactor, identity, False)
        self._outbound = TlsAdopter(self.reactor, identity, True)

    def startService(self) -> None:
        """Serve other nodes, those who are waiting already first."""
        super().startService()
        for port in self._ports:
            port.startListening()

    def addresses(self) -> list[str]:
        """Where other nodes can connect."""
        return [shown_host(port.getHost()) for port in self._ports]

    def close(self) -> None:
        """Accept nobody any more."""
        ports, self._ports = self._ports, []
        for port in ports:
            port.stopListening()

    def stopService(self) -> Deferred[None]:
        """Let out what was said, and close all connections."""
        super().stopService()
        self.close()
        self._calls.stop()
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
        """A connection is there; nothing can be said on it yet."""
        self._open.add(connection)
        if connection.entry is None:
            self._strangers[connection] = None
            if len(self._strangers) > STRANGERS_MAX:
                oldest = next(iter(self._strangers))
                self._drop(oldest, f"more than {STRANGERS_MAX} strangers are connected")

    def up(self, connection: BusProtocol) -> None:
        """Messages can go both ways."""
        self._epoch += 1
        with self._runtime.turn() as node:
            entry = connection.entry
            link = Link(
                connection.writer,
                entry,
                connection.peer_ip,
                connection.local_ip(),
                node.now_ms,
                self._epoch,
            )
            connection.link = link
            self._up[connection.writer] = connection
            if entry is not None:
                node.cluster.link_up(entry, link, node.now_ms)

    def receive(self, connection: BusProtocol, data: bytes) -> None:
        """Bytes arrived."""
        with self._runtime.turn():
            self._receive(connection, data)

    def _receive(self, connection: BusProtocol, data: bytes) -> None:
        link = connection.link
        if link is None:
            return
        parser = connection.parser
        try:
            parser.feed(data)
            self._execute(connection, link)
        except PeerError as error:
            self._drop(connection, str(error))
        except Exception:
            self._report(connection, Failure())
        membership = self._runtime.node.membership
        membership.messages_received += parser.received
        membership.messages_ignored += parser.ignored
        parser.received = parser.ignored = 0

    def _execute(self, connection: BusProtocol, link: Link) -> None:
        """Hand over every complete message, until the node has enough of this link."""
        node = self._runtime.node
        outbox = self._outbox
        parser = connection.parser
        while not outbox.hangups or link not in outbox.hangups:
            message = parser.next()
            if message is None:
                return
            node.receive(link, message)
            if not connection.trusted and link.speaker:
                connection.trusted = True
                parser.limit_bytes = PEER_BYTES_MAX
                self._strangers.pop(connection, None)

    def resumed(self) -> None:
        """A socket takes bytes again."""
        with self._runtime.turn():
            pass

    def lost(self, connection: BusProtocol, reason: Failure) -> None:
        """A connection is gone."""
        self._open.discard(connection)
        self._strangers.pop(connection, None)
        if self._secure and not reason.check(ConnectionClosed):
            self._tls_failed(connection, reason)
        self._detach(connection)
        if self._closed is not None and not self._open:
            self._closed.callback(None)
            self._closed = None

    def _detach(self, connection: BusProtocol) -> None:
        """The node shall not count on this connection any more."""
        link, entry = connection.link, connection.entry
        connection.link = connection.entry = None
        self._up.pop(connection.writer, None)
        if link is None and entry is None:
            return
        with self._runtime.turn() as node:
            if link is not None:
                node.cluster.link_lost(link, node.now_ms)
            elif entry is not None:
                node.cluster.link_failed(entry, node.now_ms)

    # -- complaints --------------------------------------------------------------------------

    def _drop(self, connection: BusProtocol, why: str) -> None:
        self._complain(connection, f"{why}: the connection is closed")
        connection.abort()

    def _tls_failed(self, connection: BusProtocol, reason: Failure) -> None:
        from disque_tx.services.bustls import tls_trouble

        self._complain(connection, f"no connection with TLS: {tls_trouble(reason)}")

    def _complain(self, connection: BusProtocol, text: str) -> None:
        self._complaints.warn(connection.peer_ip.decode(), text, self._runtime.node.now_ms)

    def _report(self, connection: BusProtocol, failure: Failure) -> None:
        """A message met a fault of this program."""
        self._log.warning(
            "A fault in this program ended the connection with the node at"
            f" {connection.peer_ip.decode()}. Please report what follows."
        )
        for line in failure.getTraceback().splitlines():
            self._log.warning(line)
        connection.abort()

    # -- from the runtime --------------------------------------------------------------------

    def flush(self) -> None:
        """Write what was said: once per connection, unless its socket is full."""
        written = self.written
        if not written:
            return
        limit = self._settings.cluster_link_buffer_limit
        kept: list[BusWriter] = []
        for writer in written:
            connection = self._up.get(writer)
            if connection is None:
                writer.take()  # there is nobody any more to tell it
            elif connection.paused:
                kept.append(writer)
                if 0 < limit < writer.pending_bytes:
                    self._stalled.append(connection)
            else:
                connection.flush()
        written[:] = kept

    def perform(self) -> bool:
        """Make and close connections; whether there were any to make or close."""
        outbox = self._outbox
        if not self.running:
            return False
        work = bool(self._stalled or outbox.hangups or outbox.connects or outbox.resolves)
        if self._stalled:
            stalled, self._stalled = self._stalled, []
            for connection in stalled:
                self._drop(connection, "does not read what it is sent")
        if outbox.hangups:
            hangups, outbox.hangups = outbox.hangups, []
            for link in hangups:
                self._hang_up(link)
        if outbox.connects:
            connects, outbox.connects = outbox.connects, []
            for entry in connects:
                factory = BusFactory(self, entry, self._secure)
                self._calls.connect(entry, factory, self._outbound)
        if outbox.resolves:
            resolves, outbox.resolves = outbox.resolves, []
            for host, port in resolves:
                self._calls.resolve(host, port)
        return work

    def _hang_up(self, link: Link) -> None:
        connection = self._up.get(link.sink)
        if connection is not None:
            self._detach(connection)
            connection.close()
