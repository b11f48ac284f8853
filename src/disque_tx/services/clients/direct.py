"""Connections of plugins' protocols that work within turns (``disque_tx.commands.direct``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, connectionDone
from twisted.python.failure import Failure

from disque_tx.commands.direct import DirectProtocol
from disque_tx.services.clients.admission import is_local
from disque_tx.services.clients.protocol import RespProtocol, describe

if TYPE_CHECKING:
    from disque_tx.services.clients.admission import Admission
    from disque_tx.services.runtime import Runtime


class DirectConnection(RespProtocol):
    """One client, whose bytes go to the protocol that ``make`` makes once it is admitted.
    ``refusal``: what it gets if it is not."""

    def __init__(
        self,
        runtime: Runtime,
        admission: Admission,
        name: bytes,
        make: Callable[[], DirectProtocol],
        refusal: bytes,
    ) -> None:
        super().__init__(runtime, admission)
        self._name = name
        self._make = make
        self._refusal = refusal

    def connectionMade(self) -> None:
        """Register the client, or refuse it."""
        transport: Any = self.transport
        peer, host = transport.getPeer(), transport.getHost()
        if self._admission.refuse(peer, host) or self._needs_password(peer):
            transport.write(self._refusal)
            transport.loseConnection()
            return
        if hasattr(transport, "setTcpNoDelay"):
            transport.setTcpNoDelay(True)
        direct = self._make()
        stats = direct.stats = self._runtime.server.stats.protocol(self._name.decode())
        stats.connected += 1
        stats.connections += 1
        where = describe(peer, host)
        self.session = self._admission.admit(self, *where, direct=direct)
        self.session.authenticated = True
        self.session.name = self._name
        transport.registerProducer(self, True)

    def _needs_password(self, peer: IAddress) -> bool:
        """A protocol without passwords is only for this host, once there is a password."""
        if not self._admission.guarded() or is_local(peer):
            return False
        self._admission.refused_without_password(self._name, peer)
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
    """Connections of one listener; ``make`` makes the protocol of each."""

    noisy = False

    def __init__(
        self,
        runtime: Runtime,
        admission: Admission,
        name: bytes,
        make: Callable[[], DirectProtocol],
        refusal: bytes,
    ) -> None:
        self._runtime = runtime
        self._admission = admission
        self._name = name
        self._make = make
        self._refusal = refusal

    def buildProtocol(self, addr: IAddress | None) -> DirectConnection:
        """One connection."""
        connection = DirectConnection(
            self._runtime, self._admission, self._name, self._make, self._refusal
        )
        connection.factory = self
        return connection
