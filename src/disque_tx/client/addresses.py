"""Addresses of nodes, and how users write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

import attrs

from disque_tx.client.errors import BadAddress, printable

DEFAULT_PORT: Final = 7711
_SCHEME: Final = "disque://"
_UNIX: Final = "unix:"


@attrs.frozen(order=True, cache_hash=True)
class Address:
    """Where a node listens. ``host``: a name or an IP address; or the path of a Unix socket, with
    the port 0."""

    host: str
    port: int

    @property
    def path(self) -> str | None:
        """The path of the Unix socket, or ``None`` for TCP."""
        return self.host if self.host.startswith("/") else None

    def __str__(self) -> str:
        if self.path is not None:
            return _UNIX + self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@attrs.frozen
class Seeds:
    """The nodes a client starts with. ``password``: the one in the URL, if there was one."""

    addresses: tuple[Address, ...]
    password: str | None = attrs.field(default=None, repr=False)


def seeds(text: str | Iterable[str]) -> Seeds:
    """Parse ``host:port``, ``unix:/path``, a list of such, or
    ``disque://[:password@]host:port[,…]``.

    The port may be left out. Special characters of the password are %-encoded.

    :raises BadAddress: for anything else; its text holds no password.
    """
    if not isinstance(text, str):
        addresses = tuple(address(item) for item in text)
        password = None
    else:
        if text.startswith(_SCHEME):
            password, rest = _url(text[len(_SCHEME) :])
        else:
            password, rest = None, text
        addresses = tuple(address(item) for item in rest.split(","))
    if not addresses:
        raise BadAddress("There is no address of a node. Give at least one, as host:port.")
    return Seeds(addresses, password)


def _url(rest: str) -> tuple[str | None, str]:
    """The password and the hosts of a URL without its scheme."""
    credentials, at, hosts = rest.rpartition("@")
    user, colon, password = credentials.partition(":")
    if at and (user or not colon):
        raise BadAddress(
            "A Disque URL with a password looks like disque://:password@host:port, with a colon"
            " before the password and no user."
        )
    return (unquote(password) if at else None), hosts.rstrip("/")


def address(text: str) -> Address:
    """Parse ``host``, ``host:port``, ``[IPv6]:port``, or ``unix:`` followed by an absolute path.

    :raises BadAddress: for anything else.
    """
    if text.startswith(_UNIX + "/"):
        return Address(text.removeprefix(_UNIX), 0)
    if "@" in text or "//" in text:
        raise BadAddress("The address of a node is host:port; a URL begins with disque://.")
    host, port = _split(text.strip())
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0
    if not _is_host(host) or host.startswith("/") or not 0 < number < 65536:
        raise BadAddress(
            f"'{printable(text)}' is not the address of a node. Give host:port, with a port from 1"
            " to 65535."
        )
    return Address(host, number)


def _split(text: str) -> tuple[str, str]:
    """The host and the port. Only a host in brackets may contain colons."""
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        port = rest or f":{DEFAULT_PORT}"
        right = closed and port.startswith(":") and ":" in host
        return (host, port[1:]) if right else ("", "")
    host, colon, port = text.partition(":")
    return host, port if colon else str(DEFAULT_PORT)


def _is_host(host: str) -> bool:
    """Whether this could be a name or an IP address."""
    return host != "" and all(c.isprintable() and not c.isspace() and c not in "[]" for c in host)
