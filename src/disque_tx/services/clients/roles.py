"""What clients of plugins may do: roles by password, commands by role."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hmac import compare_digest
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final

import attrs
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IAddress

from disque_tx.commands.reading import no_permission, reads
from disque_tx.errors import CommandError
from disque_tx.services.interfaces import Role

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings

#: Wrong passwords that an address may send at once, and the time after which it has one more try.
TRIES_MAX: Final = 10
TRY_MS: Final = 6_000
#: Addresses with wrong passwords that are remembered; beyond that, the oldest is forgotten.
_ADDRESSES_MAX: Final = 1_000


def check_role(role: Role, words: tuple[bytes, ...]) -> None:
    """Raise ``CommandError`` when the role does not allow this command."""
    if role is Role.FULL:
        return
    if role is Role.NONE:
        raise CommandError("NOAUTH", "Authentication required.")
    if not reads(words[0].lower(), list(words)):
        raise no_permission()


@attrs.define
class _Tries:
    """What is left for one address, and when that was so."""

    left: int
    since_ms: int


class Passwords:
    """Roles by password. ``now_ms``: the steady clock."""

    def __init__(self, settings: Settings, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._tries: OrderedDict[str, _Tries] = OrderedDict()

    def role(self, password: bytes | None, peer: IAddress) -> Role:
        """What a client with this password may do.

        Without ``requirepass`` everybody may do everything. A wrong password costs the address one
        of its tries; when none is left, the right one is refused, too: otherwise an attacker could
        go on guessing.
        """
        settings = self._settings
        if not settings.requirepass:
            return Role.FULL
        if password is None:
            return Role.NONE
        where = _who(peer)
        tries = self._left(where)
        if tries is not None and tries.left <= 0:
            wait_s = max(1, (tries.since_ms + TRY_MS - self._now_ms() + 999) // 1000)
            raise CommandError(
                "TRYLATER",
                f"Too many wrong passwords from this address: try again in {wait_s} seconds.",
            )
        if compare_digest(password, settings.requirepass):
            return Role.FULL
        reading = settings.readonly_password
        if reading and compare_digest(password, reading):
            return Role.READER
        self._wrong(where, tries)
        return Role.NONE

    def _left(self, where: str) -> _Tries | None:
        tries = self._tries.get(where)
        if tries is None:
            return None
        more = (self._now_ms() - tries.since_ms) // TRY_MS
        tries.left += more
        tries.since_ms += more * TRY_MS
        if tries.left >= TRIES_MAX:
            del self._tries[where]
            return None
        return tries

    def _wrong(self, where: str, tries: _Tries | None) -> None:
        if tries is None:
            tries = self._tries[where] = _Tries(TRIES_MAX, self._now_ms())
            if len(self._tries) > _ADDRESSES_MAX:
                self._tries.popitem(last=False)
        tries.left -= 1


def _who(peer: IAddress) -> str:
    """What wrong passwords are counted for: an address, or the network of an IPv6 address, of
    which one client has many."""
    if not isinstance(peer, IPv4Address | IPv6Address):
        return "unix"
    host = ip_address(peer.host.partition("%")[0])
    mapped = getattr(host, "ipv4_mapped", None) or host
    return str(ip_network((mapped, 64), strict=False)) if mapped.version == 6 else str(mapped)
