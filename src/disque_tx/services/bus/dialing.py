"""Calling other nodes: looking up names and making connections (cluster protocol, section 2)."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from disque_tx.core.addresses import BUS_PORT_OFFSET, plain_ip
from disque_tx.nodetable import NodeEntry
from disque_tx.services.net.sockets import Adopts, connect_tcp, os_error

if TYPE_CHECKING:
    from disque_tx.services.bus.protocol import BusFactory
    from disque_tx.services.host.log import DaemonLog
    from disque_tx.services.runtime import Runtime

_CONNECT_MS_MAX: Final = 2_000


class BusCalls:
    """Calls that are under way. ``bind``: the addresses that this node listens on; the first is the
    one to call from. ``in_thread``: calls a function in a thread."""

    def __init__(
        self,
        runtime: Runtime,
        log: DaemonLog,
        reactor: Any,
        bind: list[str],
        in_thread: Callable[..., Deferred[Any]],
    ) -> None:
        self._runtime = runtime
        self._log = log
        self._reactor = reactor
        self._bind = bind
        self._in_thread = in_thread
        self._connecting: set[Deferred[socket.socket]] = set()

    def connect(self, entry: NodeEntry, factory: BusFactory, adopter: Adopts) -> None:
        """Make a connection to a node and let ``adopter`` serve it; the node hears if it fails."""
        host = plain_ip(entry.ip).decode("latin-1")
        port = entry.bus_port or entry.port + BUS_PORT_OFFSET
        timeout_ms = min(self._runtime.node.cluster.node_timeout_ms, _CONNECT_MS_MAX)
        connecting = connect_tcp(self._reactor, (host, port), self._source(host), timeout_ms / 1000)
        self._connecting.add(connecting)
        connecting.addBoth(self._ended, connecting)
        connecting.addCallback(self._adopted, factory, adopter)
        connecting.addErrback(self._unreachable, entry)

    def _source(self, host: str) -> str:
        """The address to call from, empty for any."""
        first = self._bind[0] if self._bind else ""
        is_same_kind = isIPv6Address if isIPv6Address(host) else isIPAddress
        return first if is_same_kind(first) else ""

    def _ended(self, result: Any, connecting: Deferred[socket.socket]) -> Any:
        self._connecting.discard(connecting)
        return result

    def _adopted(self, sock: socket.socket, factory: BusFactory, adopter: Adopts) -> None:
        if not adopter.adopt(sock, factory):
            raise os_error(errno.ENOTCONN)

    def _unreachable(self, failure: Failure, entry: NodeEntry) -> None:
        if not failure.check(CancelledError):
            where = f"{entry.ip.decode('latin-1')}:{entry.port}"
            self._log.debug(f"The node at {where} can't be reached: {failure.getErrorMessage()}")
        with self._runtime.turn() as node:
            node.cluster.link_failed(entry, node.now_ms)

    def resolve(self, host: bytes, port: int) -> None:
        """Look up a node to be met; the node hears of it when there is an address."""
        found = self._in_thread(first_address, host)
        found.addCallback(self._resolved, port)
        found.addErrback(self._unresolved, host)

    def _resolved(self, ip: bytes, port: int) -> None:
        with self._runtime.turn() as node:
            node.cluster.meet_resolved(ip, port, node.now_ms)

    def _unresolved(self, failure: Failure, host: bytes) -> None:
        name = host.decode("latin-1")
        self._log.warning(f"The node {name} can't be met: {failure.getErrorMessage()}")

    def stop(self) -> None:
        """Give up what is under way."""
        for connecting in list(self._connecting):
            connecting.cancel()


def first_address(host: bytes) -> bytes:
    """An address of a host, IPv4 if it has one; ``OSError`` when it is not found. Waits."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    by_family = {family: str(name[0]) for family, _, _, _, name in reversed(found)}
    return (by_family.get(socket.AF_INET) or by_family[socket.AF_INET6]).encode()
