"""The ports of the daemon: the parent listens on them, its children serve the connections.

Both read the same directives in the same order, and so number the ports alike: entrance 0 is that
of ``port`` and ``unixsocket``, and each port of a ``listen`` directive is one more. The endpoint of
such a directive makes its port from a reactor: that of the parent listens, that of a child only
waits for connections which are passed to it.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IAddress, IListeningPort, IProtocolFactory
from twisted.internet.protocol import Factory
from zope.interface import implementer

from disque_tx.services.clients.listeners import FastReactor, Listeners
from disque_tx.services.net.certificates import Identity
from disque_tx.services.net.listening import shown_host
from disque_tx.services.net.sockets import Adopter, FastPort, listen_tcp
from disque_tx.services.processes.parent.balance import Balance

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.clients.host import PluginHost
    from disque_tx.services.machine.log import DaemonLog
    from disque_tx.services.net.hub import Hub


class Entrance(Factory):
    """Placeholder for a port's protocols: the parent serves no protocol on the port itself."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Passing:
    """Takes the place of the hub in the parent: connections are passed on."""

    def __init__(self, balance: Balance) -> None:
        self._balance = balance

    def start(self) -> None:
        """Do nothing: the parent serves no connections itself."""

    def stop(self) -> None:
        """Close what was not passed on."""
        self._balance.close()

    def adopt(self, sock: socket.socket, factory: Any) -> bool:
        """Pass a connection on."""
        self._balance.give(factory.number, sock)
        return True


class _ListeningReactor(FastReactor):
    """Listens for the children. Whatever an endpoint would serve, its connections are passed on as
    they are."""

    def __init__(self, reactor: Any, hub: Any) -> None:
        super().__init__(reactor, hub)
        self._count = 0

    def _entrance(self, factory: IProtocolFactory) -> IProtocolFactory:
        if isinstance(factory, Entrance):
            return factory
        self._count += 1
        return Entrance(self._count)

    def serve(self, sock: socket.socket, factory: IProtocolFactory) -> FastPort:
        """Accept on a socket that listens."""
        return super().serve(sock, self._entrance(factory))

    def listenUNIX(
        self,
        address: str,
        factory: IProtocolFactory,
        backlog: int = 511,
        mode: int = 0,
        wantPID: bool = False,
    ) -> FastPort:
        """Listen on a path."""
        return super().listenUNIX(address, self._entrance(factory), backlog, mode, wantPID)

    def listenSSL(
        self,
        port: int,
        factory: IProtocolFactory,
        contextFactory: Any,
        backlog: int = 511,
        interface: str = "",
    ) -> IListeningPort:
        """Listen on one address; TLS is for the process that serves the connection."""
        return self.serve(listen_tcp(interface or "0.0.0.0", port, backlog), factory)


class _Host:
    """The parent serves no protocol."""

    def disque_clients(self) -> IProtocolFactory:
        """The place of Disque's clients."""
        return Entrance(0)


class FrontListeners(Listeners):
    """All listening ports of the daemon, in the parent."""

    def __init__(self, settings: Settings, log: DaemonLog, balance: Balance, reactor: Any) -> None:
        passing: Any = _Passing(balance)
        host: Any = _Host()
        super().__init__(host, settings, log, passing, _ListeningReactor(reactor, passing))

    def protocol_factory(self, protocol: str) -> IProtocolFactory:
        """The plugin must exist, but serves nothing here."""
        self.plugin(protocol)
        return Factory()


@implementer(IListeningPort)
class PassedPort:
    """A port in a child, whose connections come from the parent."""

    def __init__(self, hub: Adopter, factory: IProtocolFactory) -> None:
        self._hub = hub
        self._factory = factory
        self._open = True

    def adopt(self, sock: socket.socket) -> None:
        """Serve a connection that was passed on."""
        if self._open:
            self._hub.adopt(sock, self._factory)
        else:
            sock.close()

    def startListening(self) -> None:
        """The parent listens."""

    def stopListening(self) -> Deferred[None]:
        """Serve no more connections."""
        self._open = False
        return succeed(None)

    def getHost(self) -> IAddress:
        """Unknown here."""
        raise NotImplementedError


class _PassedReactor(FastReactor):
    """Makes the ports of a child. ``entrances``: by their numbers."""

    def __init__(self, reactor: Any, hub: Hub) -> None:
        super().__init__(reactor, hub)
        self.entrances: list[PassedPort] = []

    def passed(self, hub: Adopter, factory: IProtocolFactory) -> Any:
        """The next entrance."""
        port = PassedPort(hub, factory)
        self.entrances.append(port)
        return port

    def listenTCP(self, port: int, factory: IProtocolFactory, *_: Any, **__: Any) -> Any:
        """The parent listens there."""
        return self.passed(self._hub, factory)

    def listenUNIX(self, address: str, factory: IProtocolFactory, *_: Any, **__: Any) -> Any:
        """The parent listens there."""
        return self.passed(self._hub, factory)

    def adoptStreamPort(
        self, fileDescriptor: int, addressFamily: int, factory: IProtocolFactory
    ) -> Any:
        """The parent listens there."""
        return self.passed(self._hub, factory)

    def listenSSL(
        self,
        port: int,
        factory: IProtocolFactory,
        contextFactory: Any,
        *_: Any,
        **__: Any,
    ) -> Any:
        """The parent listens there; TLS begins here."""
        from disque_tx.services.bus.tls import TlsAdopter

        identity = Identity(self.purpose, self._reader(contextFactory))
        self.identities.append(identity)
        return self.passed(TlsAdopter(self._reactor, identity, False), factory)


class MemberListeners(Listeners):
    """The ports of a child: its own one, and those of the daemon. ``own``: it has an own one, on
    ``port``."""

    def __init__(
        self, host: PluginHost, settings: Settings, log: DaemonLog, hub: Hub, reactor: Any
    ) -> None:
        self._passed = _PassedReactor(reactor, hub)
        super().__init__(host, settings, log, hub, self._passed)
        self.own = True

    def open(self) -> None:
        """Listen on its own port, and be ready for connections to the daemon."""
        self._hub.start()
        self._passed.passed(self._hub, self._factory)
        if self.own:
            self.open_tcp()
        for protocol, endpoint in self._settings.listen:
            self.open_endpoint(protocol, endpoint)

    def adopt(self, entrance: int, sock: socket.socket) -> None:
        """Serve a connection to the daemon."""
        self._passed.entrances[entrance].adopt(sock)

    def close(self) -> None:
        """Accept no more connections."""
        self._passed.entrances[0].stopListening()
        super().close()

    def addresses(self) -> list[str]:
        """Where clients reach this process alone."""
        own = [port for port in self._ports if not isinstance(port, PassedPort)]
        return [shown_host(port.getHost()) for port in own]
