"""Where the console of this node can be opened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_PROTOCOL: Final = "http"
_SCHEMES: Final = {"tcp": "http", "tcp4": "http", "tcp6": "http", "ssl": "https"}
#: In place of the address of a listener at all addresses of its host.
_ANY: Final = "*"
_WILDCARDS: Final = frozenset(("", "0.0.0.0", "::"))
#: Stands for a colon that an endpoint string escapes.
_COLON: Final = "\0"


def console_addresses(listen: Iterable[tuple[str, str]]) -> list[str]:
    """The addresses of the consoles that ``listen`` directives open, such as
    ``http://127.0.0.1:7780``, or ``https://*:7780`` for all addresses of the host. Left out are
    Unix sockets and what systemd passes: no other host can know these."""
    found = [_address(endpoint) for protocol, endpoint in listen if protocol == _PROTOCOL]
    return [address for address in found if address]


def _address(endpoint: str) -> str:
    kind, *parts = endpoint.replace("\\:", _COLON).split(":")
    named = dict(part.split("=", 1) for part in parts if "=" in part)
    plain = [part for part in parts if "=" not in part]
    port = named.get("port", plain[0] if plain else "")
    if kind not in _SCHEMES or not port.isdecimal() or not int(port):
        return ""
    host = named.get("interface", "").replace(_COLON, ":").replace("\\", "")
    if host in _WILDCARDS:
        host = _ANY
    return f"{_SCHEMES[kind]}://{f'[{host}]' if ':' in host else host}:{port}"
