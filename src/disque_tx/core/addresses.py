"""Addresses and ports of nodes in the one form in which they can be compared."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final

from mypy_extensions import i64

PORT_MAX: Final = 65_535
#: By default the bus listens so much above the port for clients.
BUS_PORT_OFFSET: Final = 10_000
_MAPPED: Final = b"::ffff:"


def normal_ip(text: bytes) -> bytes:
    """The one way to write a literal IPv4 or IPv6 address; empty when ``text`` is none."""
    try:
        address = ip_address(text.decode("ascii"))
    except ValueError:
        return b""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return b""
        if address.ipv4_mapped is not None:
            return _MAPPED + str(address.ipv4_mapped).encode()
    return str(address).encode()


def plain_ip(ip: bytes) -> bytes:
    """The address without the clothes an IPv4 address wears on a socket for IPv6."""
    return ip[len(_MAPPED) :] if ip.startswith(_MAPPED) and b"." in ip else ip


def ports_usable(port: i64, bus_port: i64) -> bool:
    """Both ports exist; ``bus_port`` 0 is the one that belongs to ``port``."""
    if bus_port == 0:
        return 1 <= port <= PORT_MAX - BUS_PORT_OFFSET
    return 1 <= port <= PORT_MAX and 1 <= bus_port <= PORT_MAX


def short_bus_port(port: i64, bus_port: i64) -> i64:
    """The bus port as it is kept: 0 when it is the one that belongs to ``port``."""
    return 0 if bus_port == port + BUS_PORT_OFFSET else bus_port
