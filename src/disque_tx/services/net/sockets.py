"""Listening sockets, and connections to others, whose sockets go to the hub."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any, Final, Protocol

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IListeningPort,
    IProtocolFactory,
    IReadDescriptor,
    IWriteDescriptor,
)
from twisted.python.failure import Failure
from zope.interface import implementer

from disque_tx.services.net.transport import address_of

_ACCEPTS_PER_TURN: Final = 1000
_PAUSE_S: Final = 0.1


class Adopter(Protocol):
    """The hub, or what serves sockets in its place."""

    def adopt(self, sock: socket.socket, factory: IProtocolFactory) -> bool:
        """Serve a connected socket; ``False`` when it was closed before a protocol was made."""


@implementer(IReadDescriptor, IListeningPort)
class FastPort:
    """A listening socket whose connections go to the hub."""

    def __init__(
        self, reactor: Any, hub: Adopter, sock: socket.socket, factory: IProtocolFactory
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


def os_error(code: int) -> OSError:
    """The error with this number, with the text of the system."""
    return OSError(code, os.strerror(code))


@implementer(IWriteDescriptor)
class Connecting:
    """A connection that is being made, without waiting for it.

    ``done``: fires with the connected socket, which blocks no more, or fails with ``OSError``;
    cancelling gives up.
    """

    def __init__(self, reactor: Any, sock: socket.socket) -> None:
        self._reactor = reactor
        self._sock = sock
        self._timer: IDelayedCall | None = None
        self.done: Deferred[socket.socket] = Deferred(self._cancelled)

    def start(self, address: tuple[str, int], source: str, timeout_s: float) -> None:
        """Begin, from the address ``source`` if there is one; ``timeout_s`` is all it may take."""
        self._sock.setblocking(False)
        try:
            if source:
                self._sock.bind((source, 0))
            self._sock.connect(address)
        except BlockingIOError:
            pass
        except OSError as error:
            self._failed(error)
            return
        self._timer = self._reactor.callLater(timeout_s, self._late)
        self._reactor.addWriter(self)

    def fileno(self) -> int:
        """The socket."""
        return self._sock.fileno()

    def logPrefix(self) -> str:
        """Our name in the log."""
        return "connector"

    def connectionLost(self, reason: Failure) -> None:
        """The attempt was refused, which some reactors report here, or the reactor is stopping."""
        if not self.done.called:
            code = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self._failed(os_error(code or errno.ECONNABORTED))

    def doWrite(self) -> None:
        """The connection is established, or the attempt has failed."""
        sock = self._sock
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        try:
            if not code and sock.getsockname() == sock.getpeername():
                # Nothing listens there, and the system chose this very port to connect from.
                code = errno.ECONNREFUSED
        except OSError as error:
            code = error.errno or errno.ENOTCONN
        if code:
            self._failed(os_error(code))
        else:
            self._end()
            self.done.callback(sock)

    def _late(self) -> None:
        self._timer = None
        self._failed(os_error(errno.ETIMEDOUT))

    def _failed(self, error: OSError) -> None:
        self._cancelled(self.done)
        self.done.errback(error)

    def _cancelled(self, _done: Deferred[socket.socket]) -> None:
        self._end()
        self._sock.close()

    def _end(self) -> None:
        self._reactor.removeWriter(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def connect_tcp(
    reactor: Any, address: tuple[str, int], source: str, timeout_s: float
) -> Deferred[socket.socket]:
    """Connect to a literal address and port, from the literal address ``source`` if not empty.

    The Deferred is that of :class:`Connecting`.
    """
    if not isIPAddress(address[0]) and not isIPv6Address(address[0]):
        return fail(OSError(errno.EINVAL, f"{address[0]!r} is not a literal address"))
    family = socket.AF_INET6 if isIPv6Address(address[0]) else socket.AF_INET
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        return fail(error)
    connecting = Connecting(reactor, sock)
    connecting.start(address, source, timeout_s)
    return connecting.done
