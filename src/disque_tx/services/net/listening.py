"""Listening on all the addresses that are asked for, or on none.

1. Addresses that the configuration names must be there, all of them.
2. The defaults come in pairs, one address of IPv4 and one of IPv6. One of a pair may be missing
   when this host lacks its family, and for no other reason: a node that others reach on one family
   only, because a stranger holds the port on the other, looks well and is not.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from typing import Final

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.interfaces import IAddress

from disque_tx.config.paths import os_error_text
from disque_tx.errors import ConfigError
from disque_tx.services.net.sockets import listen_tcp

#: What the system says for an address of a family that is turned off.
_FAMILY_LACKING: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_PORT_RANGE: Final = "/proc/sys/net/ipv4/ip_local_port_range"

Listen = Callable[[str, int, int], socket.socket]


def listen_on(
    hosts: Sequence[str],
    port: int,
    backlog: int,
    is_pair: bool,
    purpose: str = "",
    directive: str = "port",
    listen: Listen = listen_tcp,
) -> list[socket.socket]:
    """Sockets that listen on ``hosts``, in their order.

    ``is_pair``: they are a pair of defaults, see above. ``purpose``: words for errors, such as
    ``for other nodes``. ``directive``: what gives another port. Raises ``ConfigError`` when an
    address cannot be had; nothing is open then.
    """
    sockets: list[socket.socket] = []
    failures: list[tuple[str, OSError]] = []
    for host in hosts:
        try:
            sockets.append(listen(host, port, backlog))
        except OSError as error:
            failures.append((host, error))
    bearable = is_pair and sockets and all(_lacks_family(error) for _, error in failures)
    if failures and not bearable:
        for sock in sockets:
            sock.close()
        told = "; ".join(
            f"{shown_address(host, port)}: {os_error_text(error)}" for host, error in failures
        )
        raise ConfigError(
            f"Could not listen {purpose + ' ' if purpose else ''}on {told}."
            f" {_advice(port, directive, failures)}"
        )
    return sockets


def _lacks_family(error: OSError) -> bool:
    return error.errno in _FAMILY_LACKING


def _advice(port: int, directive: str, failures: list[tuple[str, OSError]]) -> str:
    advice = f"Another port can be given with '{directive}'."
    if not any(error.errno == errno.EADDRINUSE for _, error in failures):
        return advice
    first, last = outgoing_ports()
    if first <= port <= last:
        advice += (
            f" Port {port} is one of those that this system uses for outgoing connections ({first}"
            f" to {last}), and one of these may hold it. To keep the port free for the node, add it"
            f" to net.ipv4.ip_local_reserved_ports: 'sysctl -w"
            f" net.ipv4.ip_local_reserved_ports={port}'."
        )
    return advice


def outgoing_ports(path: str = _PORT_RANGE) -> tuple[int, int]:
    """First and last of the ports that the system uses for outgoing connections; ``(0, -1)`` when
    it does not say."""
    try:
        with open(path, encoding="ascii") as file:
            first, last = map(int, file.read().split())
    except (OSError, ValueError):
        return 0, -1
    return first, last


def shown_host(address: IAddress) -> str:
    """Where a port listens, as people write it."""
    if isinstance(address, IPv4Address | IPv6Address):
        return shown_address(address.host, address.port)
    if isinstance(address, UNIXAddress) and address.name:
        return f"unix:{os.fsdecode(address.name)}"
    return str(address)


def shown_address(host: str, port: int) -> str:
    """An address as people write it, with brackets around IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
