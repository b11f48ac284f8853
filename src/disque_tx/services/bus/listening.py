"""Where other nodes connect: the port of the bus and its addresses (cluster protocol, section 2).

The bus of the original trusts everybody who reaches it. So it is opened to the network only by
those who say so:

1. With TLS, or with ``cluster-insecure yes``, it listens where clients are served: on the addresses
   of ``bind``, or on all.
2. Otherwise it listens on this host only: on those addresses of ``bind`` that are loopback, or on
   127.0.0.1 and ::1 when there are none.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from disque_tx.core.addresses import BUS_PORT_OFFSET
from disque_tx.services.net.listening import listen_on

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.host.log import DaemonLog

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

    Raises ``ConfigError`` when an address cannot be had.
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
        "for other nodes",
        "cluster-bus-port",
    )
    _tell(settings, log, port)
    return sockets


def _tell(settings: Settings, log: DaemonLog, port: int) -> None:
    """Say who can reach the bus."""
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
            " with nodes on other hosts, set cluster-bus-tls and give certificates, or say"
            " 'cluster-insecure yes' where the network keeps strangers away."
        )
