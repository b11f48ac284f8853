"""What all connections of a client have in common."""

from __future__ import annotations

import attrs

from disque_tx.client.encryption import TLS


@attrs.frozen
class Options:
    """``timeout_s``: for connecting, and for a reply beyond what the request itself may wait.

    ``protocol``: of RESP, 2 or 3; the Twisted client speaks 2. ``name``: of the connections, as
    CLIENT LIST shows it, without spaces; the Twisted client's only.
    """

    password: str | None = attrs.field(default=None, repr=False)
    tls: TLS | None = None
    timeout_s: float = 5.0
    protocol: int = 2
    name: str | None = None
