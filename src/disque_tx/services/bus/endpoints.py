"""Where other nodes connect, and connections to them (cluster protocol, section 2).

The bus of the original trusts whoever reaches it. So it is opened to the network only where the
configuration asks for it:

1. With TLS, or with ``cluster-insecure yes``, it listens where clients are served: on the addresses
   of ``bind``, or on all.
2. Otherwise it listens on this host only: on those addresses of ``bind`` that are loopback, or on
   127.0.0.1 and ::1 when there are none.
"""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IProtocolFactory
from twisted.python.failure import Failure

from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET, plain_ip
from disque_tx.messages.nodes import NodeEntry
from disque_tx.services.net.listening import listen_on
from disque_tx.services.net.sockets import Adopter, connect_tcp, os_error

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.log import DaemonLog
    from disque_tx.services.machine.platform import Platform
    from disque_tx.services.turns.runtime import Runtime

_EVERYWHERE: Final = ["::", "0.0.0.0"]
_THIS_HOST: Final = ["127.0.0.1", "::1"]


def bus_port(settings: Settings) -> int:
    """The port for other nodes; 0 when there is none, as for a node without a TCP port."""
    return settings.cluster_bus_port or (settings.port + BUS_PORT_OFFSET if settings.port else 0)


def is_loopback(host: str) -> bool:
    """Whether only this host can connect to the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen_bus(settings: Settings, log: DaemonLog) -> list[socket.socket]:
    """Sockets that listen for other nodes, none when there is no port for them.

    Raises ``ConfigError`` when an address cannot be listened on.
    """
    port = bus_port(settings)
    if not port:
        return []
    is_open = settings.cluster_bus_tls or settings.cluster_insecure
    asked = [host for host in settings.bind if is_open or is_loopback(host)]
    sockets = listen_on(
        asked or (_EVERYWHERE if is_open else _THIS_HOST),
        port,
        settings.tcp_backlog,
        not asked,
        purpose="for other nodes",
        directive="cluster-bus-port",
    )
    _log_exposure(settings, log, port)
    return sockets


def _log_exposure(settings: Settings, log: DaemonLog, port: int) -> None:
    """Log who can reach the bus."""
    exposed = settings.port and not all(is_loopback(host) for host in settings.bind or _EVERYWHERE)
    if settings.cluster_bus_tls:
        log.notice(f"The cluster bus listens on port {port} for nodes with a certificate")
    elif settings.cluster_insecure:
        log.warning(
            f"cluster-insecure is on: anyone who reaches port {port} can read and change jobs"
        )
    elif exposed:
        log.warning(
            f"The cluster bus, port {port}, can be reached from this host only. To form a cluster"
            " with nodes on other hosts, set cluster-bus-tls and its certificates, or"
            " 'cluster-insecure yes' where the network keeps strangers away."
        )


_CONNECT_MS_MAX: Final = 2_000


class BusConnector:
    """Makes connections to other nodes, and looks up their names. ``bind``: the addresses that this
    node listens on; the first is the one to connect from."""

    def __init__(self, runtime: Runtime, bind: list[str], platform: Platform) -> None:
        self._runtime = runtime
        self._log = platform.log
        self._reactor = platform.reactor
        self._bind = bind
        self._in_thread = platform.in_thread
        self._connecting: set[Deferred[socket.socket]] = set()

    def connect(self, entry: NodeEntry, factory: IProtocolFactory, adopter: Adopter) -> None:
        """Make a connection to a node and let ``adopter`` serve it; a failure is reported to the
        node."""
        host = plain_ip(entry.ip).decode("latin-1")
        port = entry.bus_port or entry.port + BUS_PORT_OFFSET
        timeout_ms = min(self._runtime.node.cluster.node_timeout_ms, _CONNECT_MS_MAX)
        connecting = connect_tcp(self._reactor, (host, port), self._source(host), timeout_ms / 1000)
        self._connecting.add(connecting)
        connecting.addBoth(self._ended, connecting)
        connecting.addCallback(self._adopted, factory, adopter)
        connecting.addErrback(self._unreachable, entry)

    def _source(self, host: str) -> str:
        """The address to connect from, empty for any."""
        first = self._bind[0] if self._bind else ""
        is_same_kind = isIPv6Address if isIPv6Address(host) else isIPAddress
        return first if is_same_kind(first) else ""

    def _ended(self, result: Any, connecting: Deferred[socket.socket]) -> Any:
        self._connecting.discard(connecting)
        return result

    def _adopted(self, sock: socket.socket, factory: IProtocolFactory, adopter: Adopter) -> None:
        if not adopter.adopt(sock, factory):
            raise os_error(errno.ENOTCONN)

    def _unreachable(self, failure: Failure, entry: NodeEntry) -> None:
        if not failure.check(CancelledError):
            where = f"{entry.ip.decode('latin-1')}:{entry.port}"
            self._log.debug(f"The node at {where} can't be reached: {failure.getErrorMessage()}")
        with self._runtime.turn() as node:
            node.cluster.link_failed(entry)

    def resolve(self, host: bytes, port: int) -> None:
        """Look up the host of a node to be met, and meet the node at the address found."""
        found = self._in_thread(first_address, host)
        found.addCallback(self._resolved, port)
        found.addErrback(self._unresolved, host)

    def _resolved(self, ip: bytes, port: int) -> None:
        with self._runtime.turn() as node:
            node.cluster.meet_resolved(ip, port)

    def _unresolved(self, failure: Failure, host: bytes) -> None:
        name = host.decode("latin-1")
        self._log.warning(f"The node {name} can't be met: {failure.getErrorMessage()}")

    def stop(self) -> None:
        """Give up what is under way."""
        for connecting in list(self._connecting):
            connecting.cancel()


def first_address(host: bytes) -> bytes:
    """An address of a host, IPv4 if it has one; ``OSError`` when it is not found. Blocks."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    by_family = {family: str(name[0]) for family, _, _, _, name in reversed(found)}
    return (by_family.get(socket.AF_INET) or by_family[socket.AF_INET6]).encode()
