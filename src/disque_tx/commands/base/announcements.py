"""What workers say about themselves, for people who look at all of them: a text per connection.

The node does not read it. It is bounded, and forgotten a minute after the connection has ended.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import Client

#: Bytes of one text.
TEXT_BYTES_MAX: Final = 4_096
#: Connections with a text.
ANNOUNCED_MAX: Final = 2_000
#: How long one is kept that has ended.
GONE_MS: Final = 60_000


class Announcement:
    """``client``: who wrote the ``text``, which may have left since. ``at_ms``: when, by the steady
    clock of the node."""

    __slots__ = ("at_ms", "client", "text")

    def __init__(self, client: Client, text: bytes, at_ms: i64) -> None:
        self.client = client
        self.text = text
        self.at_ms: i64 = at_ms


class Announcements:
    """The texts by the ID of the client."""

    def __init__(self) -> None:
        self._by_client: dict[int, Announcement] = {}

    def put(self, client: Client, text: bytes, clients: dict[int, Client], now_ms: i64) -> bool:
        """Keep the text instead of the one before, nothing if it is empty; ``False`` when there are
        too many. ``clients``: those that are connected."""
        self._by_client.pop(client.id, None)
        if not text:
            return True
        if len(self._by_client) >= ANNOUNCED_MAX:
            self._forget(clients, now_ms)
        if len(self._by_client) >= ANNOUNCED_MAX:
            return False
        self._by_client[client.id] = Announcement(client, text, now_ms)
        return True

    def recent(self, clients: dict[int, Client], now_ms: i64) -> list[Announcement]:
        """The texts of connected clients, and of others that wrote within a minute."""
        self._forget(clients, now_ms)
        return list(self._by_client.values())

    def _forget(self, clients: dict[int, Client], now_ms: i64) -> None:
        for client_id, one in list(self._by_client.items()):
            if client_id not in clients and now_ms - one.at_ms > GONE_MS:
                del self._by_client[client_id]
