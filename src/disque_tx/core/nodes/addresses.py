"""Addresses and ports of nodes: in the one form in which they can be compared, and from which of
them unknown nodes may introduce themselves.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.limits import PORT_MAX

#: By default the bus listens so much above the port for clients.
BUS_PORT_OFFSET: Final = 10_000
_MAPPED: Final = b"::ffff:"


# Gossip repeats the same few addresses in every message.
@lru_cache(maxsize=1_024)
def normal_ip(text: bytes) -> bytes:
    """The normal form of a literal IPv4 or IPv6 address; empty when ``text`` is none."""
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
    """The address without the prefix that a socket for IPv6 gives to IPv4 addresses."""
    return ip[len(_MAPPED) :] if ip.startswith(_MAPPED) and b"." in ip else ip


def is_loopback(ip: bytes) -> bool:
    """Whether only this host can connect to the address, in its plain form."""
    return ip == b"::1" or ip.startswith(b"127.")


def ports_usable(port: i64, bus_port: i64) -> bool:
    """Whether both ports exist; ``bus_port`` 0 stands for the one that belongs to ``port``."""
    if bus_port == 0:
        return 1 <= port <= PORT_MAX - BUS_PORT_OFFSET
    return 1 <= port <= PORT_MAX and 1 <= bus_port <= PORT_MAX


def short_bus_port(port: i64, bus_port: i64) -> i64:
    """The bus port as it is kept: 0 when it is the one that belongs to ``port``."""
    return 0 if bus_port == port + BUS_PORT_OFFSET else bus_port


Network = IPv4Network | IPv6Network

MEET_INTERVAL_MS: Final = 1_000


class Strangers:
    """Which unknown nodes may introduce themselves by a MEET (cluster protocol, section 7.1).

    Anybody who reaches the bus can send a MEET, and each one would make this node open a connection
    to an address of the sender's choice. So there is a list of networks, and a rate limit for every
    address, except loopback: all nodes of one machine share that address.

    ``networks``: from where nodes may introduce themselves, empty for everywhere.
    """

    __slots__ = ("networks", "_last_ms")

    def __init__(self) -> None:
        self.networks: list[Network] = []
        self._last_ms: dict[bytes, int] = {}

    def welcome(self, ip: bytes) -> bool:
        """Whether one of the networks contains the address."""
        if not self.networks:
            return True
        try:
            address = ip_address(ip.decode("latin-1"))
        except ValueError:
            return False
        return any(address in network for network in self.networks)

    def admits(self, ip: bytes, now_ms: i64) -> bool:
        """Whether the address may introduce a node now; if so, it may not again for a second
        (steady clock)."""
        oldest_ms = now_ms - MEET_INTERVAL_MS
        self._last_ms = {who: when for who, when in self._last_ms.items() if when > oldest_ms}
        if ip in self._last_ms:
            return False
        if not is_loopback(ip):
            self._last_ms[ip] = int(now_ms)
        return True
