"""Connections of plugins' protocols that work within turns (``disque_tx.commands.direct``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, connectionDone
from twisted.python.failure import Failure

from disque_tx.commands.direct import DirectProtocol
from disque_tx.services.clients.admission import is_local
from disque_tx.services.clients.protocol import RespProtocol

if TYPE_CHECKING:
    from disque_tx.services.clients.admission import Admission
    from disque_tx.services.turns.runtime import Runtime


class DirectConnection(RespProtocol):
    """One client, whose bytes go to a protocol that its listener makes once it is admitted."""

    def __init__(self, listener: DirectFactory) -> None:
        super().__init__(listener.runtime, listener.admission)
        self._listener = listener

    def connectionMade(self) -> None:
        """Register the client, or refuse it."""
        transport: Any = self.transport
        peer, host = transport.getPeer(), transport.getHost()
        if self._admission.refuse(peer, host) or self._needs_password(peer):
            transport.write(self._listener.refusal)
            transport.loseConnection()
            return
        if hasattr(transport, "setTcpNoDelay"):
            transport.setTcpNoDelay(True)
        name = self._listener.name
        direct = self._listener.make()
        stats = direct.stats = self._runtime.server.stats.protocol(name.decode())
        stats.connected += 1
        stats.connections += 1
        self.session = self.admitted(peer, host, direct)
        self.session.authenticated = True
        self.session.name = name
        transport.registerProducer(self, True)

    def _needs_password(self, peer: IAddress) -> bool:
        """A protocol without passwords is only for this host, once there is a password."""
        if not self._admission.password_required() or is_local(peer):
            return False
        self._admission.refused_without_password(self._listener.name, peer)
        return True

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """What the client had goes back."""
        session = self.session
        super().connectionLost(reason)
        if session is not None and session.direct is not None:
            session.direct.stats.connected -= 1
            with self._runtime.turn():
                session.direct.closed()


class DirectFactory(Factory):
    """Connections of one listener. ``make``: makes the protocol of each. ``refusal``: what a client
    gets that is not admitted."""

    noisy = False

    def __init__(
        self,
        runtime: Runtime,
        admission: Admission,
        name: bytes,
        make: Callable[[], DirectProtocol],
        refusal: bytes,
    ) -> None:
        self.runtime = runtime
        self.admission = admission
        self.name = name
        self.make = make
        self.refusal = refusal

    def buildProtocol(self, addr: IAddress | None) -> DirectConnection:
        """One connection."""
        connection = DirectConnection(self)
        connection.factory = self
        return connection
