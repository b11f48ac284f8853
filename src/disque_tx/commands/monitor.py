"""MONITOR: every request of every client, as it runs (client protocol, section 8)."""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.commands.context import Server
from disque_tx.commands.secrets import mask
from disque_tx.core.client import Client
from disque_tx.quoting import quote


def monitor_line(client: Client, argv: list[bytes], wall_us: i64, name: bytes = b"") -> bytes:
    """The line monitors see for a request of ``client``; passwords are hidden.

    ``wall_us``: unix time. ``name`` as in :func:`secrets.mask`.
    """
    words = b" ".join([quote(word) for word in mask(argv, name)])
    seconds, micros = wall_us // 1_000_000, wall_us % 1_000_000
    return b"%d.%06d [%s] %s" % (seconds, micros, client.monitor_addr, words)


def monitor(server: Server, client: Client, argv: list[bytes]) -> None:
    """MONITOR: from the next request on, the client sees them all; asking twice does no harm."""
    if not client.monitor:
        client.monitor = True
        server.monitors.append(client)
    client.replies.status(b"OK")
