"""Who may introduce itself by a MEET (cluster protocol, section 7.1).

Anybody who reaches the bus can send a MEET, and each one would make this node open a connection to
an address of the sender's choice. So there is a list of networks, and a rate for every address.
The rate does not hold for loopback: all nodes of one machine share that address.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final

from mypy_extensions import i64

Network = IPv4Network | IPv6Network

MEET_INTERVAL_MS: Final = 1_000


class Strangers:
    """``networks``: from where nodes may introduce themselves, empty for everywhere."""

    __slots__ = ("networks", "_last_ms")

    def __init__(self) -> None:
        self.networks: list[Network] = []
        self._last_ms: dict[bytes, int] = {}

    def welcome(self, ip: bytes) -> bool:
        """One of the networks holds the address."""
        if not self.networks:
            return True
        try:
            address = ip_address(ip.decode("latin-1"))
        except ValueError:
            return False
        return any(address in network for network in self.networks)

    def admits(self, ip: bytes, now_ms: i64) -> bool:
        """The address may introduce a node now; then it may not for a second (steady clock)."""
        oldest_ms = now_ms - MEET_INTERVAL_MS
        self._last_ms = {who: when for who, when in self._last_ms.items() if when > oldest_ms}
        if ip in self._last_ms:
            return False
        if not _loopback(ip):
            self._last_ms[ip] = int(now_ms)
        return True


def _loopback(ip: bytes) -> bool:
    return ip == b"::1" or ip.startswith(b"127.")
