"""From an address to a connected transport, with TLS or without."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from twisted.internet.endpoints import (
    HostnameEndpoint,
    TCP4ClientEndpoint,
    TCP6ClientEndpoint,
    UNIXClientEndpoint,
    wrapClientTLS,
)

from disque_tx.client.addresses import Address
from disque_tx.client.options import ConnectionOptions


def endpoint(reactor: Any, address: Address, options: ConnectionOptions) -> Any:
    """The client endpoint of a node.

    :raises OSError, ValueError: when files of the TLS options cannot be read or hold no
        certificates.
    """
    plain = _plain(reactor, address, options.timeout_s)
    if options.tls is None:
        return plain
    # pyOpenSSL is loaded only when TLS is used.
    from disque_tx.client.tx.tls import creator

    return wrapClientTLS(creator(address.host, options.tls), plain)


def _plain(reactor: Any, address: Address, timeout_s: float) -> Any:
    """An endpoint without TLS. IP addresses need no resolver."""
    if address.path is not None:
        return UNIXClientEndpoint(reactor, address.path, timeout=timeout_s)
    version = _ip_version(address.host)
    if version is None:
        return HostnameEndpoint(reactor, address.host, address.port, timeout=timeout_s)
    kind = TCP4ClientEndpoint if version == 4 else TCP6ClientEndpoint
    return kind(reactor, address.host, address.port, timeout=timeout_s)


def _ip_version(host: str) -> int | None:
    try:
        return ip_address(host).version
    except ValueError:
        return None
