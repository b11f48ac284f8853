"""How connections to nodes are encrypted."""

from __future__ import annotations

import attrs


@attrs.frozen
class TLS:
    """How connections are encrypted.

    ``ca_file``: PEM certificates that are trusted, by default those of the system.
    ``certificate_file``, ``key_file``: PEM, who the client is. ``verify``: whether the node must
    have a certificate that is trusted; ``check_hostname``: and that names its host.
    """

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    check_hostname: bool = True


def chosen(tls: bool | TLS) -> TLS | None:
    """What a client was told: not at all, as usual, or as described."""
    return (TLS() if tls else None) if isinstance(tls, bool) else tls
