"""Where clients connect: TCP on every bind address, the Unix socket, and ``listen`` directives."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from twisted.application.service import Service
from twisted.internet.defer import Deferred, FirstError, gatherResults, succeed
from twisted.internet.interfaces import (
    IListeningPort,
    IProtocolFactory,
    IProtocolNegotiationFactory,
)
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from disque_tx.config.paths import os_error_text
from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET
from disque_tx.errors import ConfigError
from disque_tx.services.clients.guard import GuardedFactory
from disque_tx.services.net.certificates import Identity, openssl_text
from disque_tx.services.net.hub import Hub
from disque_tx.services.net.listening import UnixPort, listen_on, listen_unix, shown_host
from disque_tx.services.net.sockets import FastPort, listen_tcp

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.plugins.interfaces import IClientProtocol
    from disque_tx.services.clients.host import PluginHost
    from disque_tx.services.machine.log import DaemonLog

_WILDCARDS: Final = ("::", "0.0.0.0")
#: What fits in the address of a Unix socket; a longer path may still fit from here.
_SOCKET_PATH_MAX: Final = 107
PORT_MAX: Final = 65_535 - BUS_PORT_OFFSET


class FastReactor:
    """A reactor whose plain TCP and Unix ports are served by the hub, for endpoints to use.

    ``purpose``: the directive that is being carried out, ``endpoint``: the endpoint in it.
    ``identities``: the certificates of the ports with TLS.
    """

    def __init__(self, reactor: Any, hub: Hub) -> None:
        self._reactor = reactor
        self._hub = hub
        self.purpose = ""
        self.endpoint = ""
        self.identities: list[Identity] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reactor, name)

    def serve(self, sock: socket.socket, factory: IProtocolFactory) -> FastPort:
        """Accept on a socket that listens."""
        port = FastPort(self._reactor, self._hub, sock, factory)
        port.startListening()
        return port

    def listenTCP(
        self, port: int, factory: IProtocolFactory, backlog: int = 511, interface: str = ""
    ) -> FastPort:
        """Listen on one address."""
        return self.serve(listen_tcp(interface or "0.0.0.0", port, backlog), factory)

    def listenUNIX(
        self,
        address: str,
        factory: IProtocolFactory,
        backlog: int = 511,
        mode: int = 0,
        wantPID: bool = False,
    ) -> FastPort:
        """Listen on a path; a socket left there by a process that died is replaced."""
        sock = listen_unix(address, backlog, mode)
        port = UnixPort(self._reactor, self._hub, sock, factory)
        port.startListening()
        return port

    def listenSSL(
        self,
        port: int,
        factory: IProtocolFactory,
        contextFactory: Any,
        backlog: int = 511,
        interface: str = "",
    ) -> IListeningPort:
        """Listen on one address with TLS, on Twisted's transport, with certificates that can be
        read again."""
        negotiating = IProtocolNegotiationFactory(factory, None)
        protocols = negotiating.acceptableProtocols() if negotiating is not None else ()
        identity = Identity(self.purpose, self._reader(contextFactory), protocols)
        listening: IListeningPort = self._reactor.listenSSL(
            port, factory, identity, backlog, interface
        )
        self.identities.append(identity)
        return listening

    def _reader(self, first: Any) -> Callable[[], Any]:
        """Returns the certificate that was read first, and later reads the endpoint's files
        again."""
        endpoint = self.endpoint
        unread = [first]

        def read() -> Any:
            if unread:
                return unread.pop()
            found: list[Any] = []
            try:
                parsed = server_endpoint(_RecordingReactor(found), endpoint)
                parsed.listen(Factory())
            except Exception as error:  # whatever a parser makes of a bad file
                raise ConfigError(_reason(error)) from error
            return found[0]

        return read

    def adoptStreamPort(
        self, fileDescriptor: int, addressFamily: int, factory: IProtocolFactory
    ) -> FastPort:
        """Listen on a socket that another program opened, such as systemd."""
        return self.serve(socket.fromfd(fileDescriptor, addressFamily, socket.SOCK_STREAM), factory)


class _RecordingReactor:
    """A reactor that listens nowhere, and records the certificates that it should listen with."""

    def __init__(self, found: list[Any]) -> None:
        self._found = found

    def listenSSL(self, port: int, factory: object, contextFactory: Any, **_: Any) -> None:
        """Record the certificates."""
        self._found.append(contextFactory)


class Listeners(Service):
    """All listening ports of a node.

    Ports are opened by :meth:`open`, before the node does anything that a second one must not do;
    raises ``ConfigError`` when an address cannot be listened on.
    """

    def __init__(
        self, host: PluginHost, settings: Settings, log: DaemonLog, hub: Hub, reactor: FastReactor
    ) -> None:
        self._host = host
        self._settings = settings
        self._log = log
        self._factory: IProtocolFactory = host.disque_clients()
        self._hub = hub
        self._reactor = reactor
        self._ports: list[IListeningPort] = []
        self._opening: list[Deferred[None]] = []
        self._places: list[str] = []
        self._closed = False

    def open(self) -> None:
        """Listen everywhere the configuration says."""
        settings = self._settings
        self._hub.start()
        if settings.port > PORT_MAX and not settings.cluster_bus_port:
            raise ConfigError(
                f"Port {settings.port} is too high: the cluster bus listens {BUS_PORT_OFFSET} above"
                f" it, so at most {PORT_MAX} is possible without 'cluster-bus-port'."
            )
        if settings.port:
            self.open_tcp()
        if settings.unixsocket:
            self._open_unix()
        for protocol, endpoint in settings.listen:
            self.open_endpoint(protocol, endpoint)
        if not self._ports:
            raise ConfigError("Configured to not listen anywhere, exiting.")

    def open_tcp(self) -> None:
        """Listen on ``port``."""
        settings = self._settings
        sockets = listen_on(
            settings.bind or _WILDCARDS, settings.port, settings.tcp_backlog, not settings.bind
        )
        self._ports += [self._reactor.serve(sock, self._factory) for sock in sockets]
        self._places.append(f"on port {settings.port}")

    def _open_unix(self) -> None:
        path = self._settings.unixsocket
        if len(os.fsencode(path)) > _SOCKET_PATH_MAX:
            path = os.path.relpath(path)
        try:
            port = self._reactor.listenUNIX(
                path, self._factory, self._settings.tcp_backlog, self._settings.unixsocketperm
            )
        except OSError as error:
            raise ConfigError(
                f"Could not listen on the Unix socket {path}: {os_error_text(error)}."
                " Another path can be given with 'unixsocket'."
            ) from error
        self._ports.append(port)
        self._places.append(f"at {path}")

    def plugin(self, protocol: str) -> IClientProtocol:
        """The plugin with this name, ``ConfigError`` when there is none; imports of plugins happen
        only here."""
        from disque_tx.services.clients.discovery import client_protocol

        return client_protocol(protocol)

    def protocol_factory(self, protocol: str) -> IProtocolFactory:
        """What serves the connections of a ``listen`` directive."""
        from disque_tx.services.clients.discovery import RespPlugin

        plugin = self.plugin(protocol)
        if isinstance(plugin, RespPlugin):
            return self._factory
        host, guard = self._host.guarded(protocol)
        try:
            factory: IProtocolFactory = plugin.factory(host)
        except ConfigError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise ConfigError(
                f"listen {protocol}: the plugin failed: {type(error).__name__}: {error}"
            ) from error
        guarded: Any = GuardedFactory(guard, factory)
        return cast(IProtocolFactory, guarded)

    def open_endpoint(self, protocol: str, endpoint: str) -> None:
        """A ``listen`` directive."""
        factory = self.protocol_factory(protocol)
        where = f"listen {protocol} {endpoint}"
        try:
            self._reactor.purpose, self._reactor.endpoint = where, endpoint
            listening = server_endpoint(self._reactor, endpoint).listen(factory)
        except Exception as error:  # whatever a parser makes of its words and files
            why = _reason(error)
            if endpoint.startswith("systemd:") and isinstance(error, LookupError):
                why = "systemd has passed no such socket to this process"
            raise ConfigError(f"{where}: this endpoint cannot be used: {why}") from error
        failures: list[ConfigError] = []

        def refused(failure: Failure) -> Failure:
            failures.append(ConfigError(f"{where}: {_reason(failure.value)}"))
            return Failure(failures[0])

        listening.addCallbacks(self._opened, refused)
        if failures:
            listening.addErrback(lambda _: None)
            raise failures[0]
        self._opening.append(listening)
        self._places.append(f"at {endpoint}")

    def _opened(self, port: IListeningPort) -> None:
        if self._closed:
            port.stopListening()
        else:
            self._ports.append(port)

    def opened(self) -> Deferred[Any]:
        """Fires when every endpoint listens; fails with ``ConfigError`` when one cannot."""
        opening, self._opening = self._opening, []
        return gatherResults(opening, consumeErrors=True).addErrback(_first_error)

    def announce(self) -> None:
        """Log where clients are served."""
        for place in self._places:
            self._log.notice(f"The server is now ready to accept connections {place}")

    def identities(self) -> list[Identity]:
        """The certificates of listeners with TLS."""
        return self._reactor.identities

    def addresses(self) -> list[str]:
        """Where clients can connect."""
        return [shown_host(port.getHost()) for port in self._ports]

    def close(self) -> None:
        """Accept no more connections."""
        self._closed = True
        ports, self._ports = self._ports, []
        for port in ports:
            port.stopListening()

    def stopService(self) -> Deferred[None]:
        """Close the ports and every connection."""
        super().stopService()
        self.close()
        self._hub.stop()
        return succeed(None)


def _reason(error: BaseException | None) -> str:
    if isinstance(error, OSError):
        text = os_error_text(error)
        return f"{text}: {os.fsdecode(error.filename)}" if error.filename else text
    damage = openssl_text(error)
    return f"The certificate or the key is damaged: {damage}" if damage else str(error)


def _first_error(failure: Failure) -> Failure:
    error = failure.value
    return error.subFailure if isinstance(error, FirstError) else failure


def server_endpoint(reactor: Any, description: str) -> Any:
    """An endpoint of Twisted; ``ValueError`` and others for a description that is malformed.
    Imports of endpoints and plugins happen only here."""
    from twisted.internet import endpoints

    from disque_tx.services.clients.discovery import installed

    # Twisted's own search leaves a cache among the installed files.
    setattr(endpoints, "getPlugins", installed)  # noqa: B010
    return endpoints.serverFromString(reactor, description)
