"""Listening sockets whose connections go to the hub."""

from __future__ import annotations

import errno
import socket
from typing import Any, Final

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IListeningPort,
    IProtocolFactory,
    IReadDescriptor,
)
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.services.hub import Hub
from disque_tx.services.transport import address_of

_ACCEPTS_PER_TURN: Final = 1000
_PAUSE_S: Final = 0.1


@implementer(IReadDescriptor, IListeningPort)
class FastPort:
    """A listening socket whose connections go to the hub."""

    def __init__(
        self, reactor: Any, hub: Hub, sock: socket.socket, factory: IProtocolFactory
    ) -> None:
        self._reactor = reactor
        self._hub = hub
        self._sock = sock
        self._factory = factory
        self._pause: IDelayedCall | None = None

    def startListening(self) -> None:
        """Accept from now on."""
        self._sock.setblocking(False)
        self._reactor.addReader(self)

    def stopListening(self) -> Deferred[None]:
        """Accept no more."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._reactor.removeReader(self)
        self._sock.close()
        return succeed(None)

    def getHost(self) -> IAddress:
        """The address listened on."""
        return address_of(self._sock, self._sock.getsockname())

    def fileno(self) -> int:
        """The listening socket."""
        return self._sock.fileno()

    def logPrefix(self) -> str:
        """Our name in the log."""
        return "listener"

    def connectionLost(self, reason: Failure) -> None:
        """The reactor stops; :meth:`stop` does the work."""

    def doRead(self) -> None:
        """Accept who is waiting."""
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                sock, _name = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    # Out of descriptors: look again when there may be some, do not spin.
                    self._reactor.removeReader(self)
                    self._pause = self._reactor.callLater(_PAUSE_S, self._go_on)
                    return
                continue
            self._hub.adopt(sock, self._factory)

    def _go_on(self) -> None:
        self._pause = None
        self._reactor.addReader(self)


def listen_tcp(host: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens on ``host``; raises ``OSError`` when it cannot be done."""
    family = socket.AF_INET6 if isIPv6Address(host) else socket.AF_INET
    if not isIPAddress(host) and not isIPv6Address(host):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, name = found[0]
        host = str(name[0])
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock
