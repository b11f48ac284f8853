"""How often the clients of a network may try a wrong password, by whichever protocol."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

import attrs

#: Wrong passwords that a network may send at once, and the time after which it has one more try.
TRIES_MAX: Final = 10
TRY_MS: Final = 6_000
#: Networks with wrong passwords that are remembered; beyond that, the oldest is forgotten.
NETWORKS_MAX: Final = 1_000
#: What all clients are in that come without an address: those of Unix sockets.
_LOCAL: Final = "unix"
_LOOPBACK: Final = "loopback"


def network_of(host: str) -> str:
    """The network of an address, as far as one client may have all of its addresses: loopback as a
    whole, and of IPv6 what begins with the same 64 bits. Text that is not an address stands for a
    Unix socket."""
    try:
        address: IPv4Address | IPv6Address = ip_address(host.partition("%")[0])
    except ValueError:
        return _LOCAL
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return _LOOPBACK
    return str(ip_network((address, 64 if address.version == 6 else 32), strict=False))


@attrs.define
class _Tries:
    """What is left for one network, and when that was so."""

    left: int
    since_ms: int


class Guesses:
    """The wrong passwords of each network. ``now_ms``: the steady clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._tries: OrderedDict[str, _Tries] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tries)

    def wait_s(self, network: str) -> int:
        """How many seconds no password of this network is checked, not even the right one:
        otherwise an attacker could go on guessing. 0 if the next one is checked."""
        tries = self._left(network)
        if tries is None or tries.left > 0:
            return 0
        return max(1, (tries.since_ms + TRY_MS - self._now_ms() + 999) // 1000)

    def wrong(self, network: str) -> None:
        """A client of this network has sent a wrong password."""
        tries = self._left(network)
        if tries is None:
            tries = self._tries[network] = _Tries(TRIES_MAX, self._now_ms())
            if len(self._tries) > NETWORKS_MAX:
                self._tries.popitem(last=False)
        tries.left -= 1

    def _left(self, network: str) -> _Tries | None:
        tries = self._tries.get(network)
        if tries is None:
            return None
        more = (self._now_ms() - tries.since_ms) // TRY_MS
        tries.left += more
        tries.since_ms += more * TRY_MS
        if tries.left >= TRIES_MAX:
            del self._tries[network]
            return None
        return tries
