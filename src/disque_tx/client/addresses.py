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
_LOOKUPS: Final = ("dns", "srv")


@attrs.frozen(order=True, cache_hash=True)
class Address:
    """Where a node listens. ``host``: a name or an IP address; or the path of a Unix socket, with
    the port 0. ``kind``: ``dns`` or ``srv`` if it stands for all nodes that ``resolving`` finds by
    that name; SRV records say the port, which is 0 then."""

    host: str
    port: int
    kind: str = ""

    @property
    def path(self) -> str | None:
        """The path of the Unix socket, or ``None`` for TCP."""
        return self.host if self.host.startswith("/") else None

    def __str__(self) -> str:
        if self.path is not None:
            return _UNIX + self.path
        if self.kind:
            port = f":{self.port}" if self.port else ""
            return f"{self.kind}:{self.host}{port}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@attrs.frozen
class Seeds:
    """The nodes a client starts with. ``password``: the one in the URL, if there was one."""

    addresses: tuple[Address, ...]
    password: str | None = attrs.field(default=None, repr=False)


def seeds(text: str | Iterable[str]) -> Seeds:
    """Parse ``host:port``, ``unix:/path``, ``dns:name:port``, ``srv:name``, a list of such, or
    ``disque://[:password@]host:port[,…]``, ``disque+dns://[:password@]name:port[,…]``,
    ``disque+srv://[:password@]name[,…]``.

    The port may be left out. Special characters of the password are %-encoded.

    :raises BadAddress: for anything else; its text holds no password.
    """
    if not isinstance(text, str):
        addresses = tuple(address(item) for item in text)
        password = None
    else:
        scheme, kind = _scheme(text)
        password, rest = _url(text.removeprefix(scheme)) if scheme else (None, text)
        addresses = tuple(address(kind + item) for item in rest.split(","))
    if not addresses:
        raise BadAddress("There is no address of a node. Give at least one, as host:port.")
    return Seeds(addresses, password)


def _scheme(text: str) -> tuple[str, str]:
    """The scheme of a URL, empty for what is none, and what its addresses begin with."""
    for kind in _LOOKUPS:
        scheme = _SCHEME.replace("://", f"+{kind}://")
        if text.startswith(scheme):
            return scheme, f"{kind}:"
    return (_SCHEME, "") if text.startswith(_SCHEME) else ("", "")


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
    """Parse ``host``, ``host:port``, ``[IPv6]:port``, ``unix:`` followed by an absolute path,
    ``dns:name``, ``dns:name:port``, or ``srv:name``; the latter also as URLs without a password.

    :raises BadAddress: for anything else.
    """
    scheme, kind = _scheme(text)
    if kind and "@" not in text:
        text = kind + text.removeprefix(scheme).rstrip("/")
    kind, colon, name = text.partition(":")
    if colon and kind in _LOOKUPS and not name.isdigit():
        return _lookup(kind, name)
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


def _lookup(kind: str, name: str) -> Address:
    """A name that stands for all nodes of a cluster."""
    if kind == "dns":
        found = address(name)
        if found.path is None and not found.kind and ":" not in found.host:
            return attrs.evolve(found, kind=kind)
    elif _is_host(name) and not set(name) & set(":/@,"):
        return Address(name, 0, kind)
    raise BadAddress(
        f"'{printable(f'{kind}:{name}')}' is not a name of nodes. Give dns:name:port, or srv:name"
        " without a port."
    )


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
