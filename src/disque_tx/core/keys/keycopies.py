"""KEY COPY: what other nodes shall know about keys.

When many jobs are made, or end, in one step of the node, each receiver gets one message about them,
with up to :data:`ENTRIES_MAX` entries in the order in which they were added.
"""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.nodes.peers import Peers
from disque_tx.messages.bustypes import KEY_COPY
from disque_tx.messages.keys import ENTRIES_MAX, KeyMessage
from disque_tx.messages.records import KeyEntry


class KeyCopies:
    """Sends entries, at once or together."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._gathering: bool = False
        # Node → the message that it will get.
        self._gathered: dict[bytes, KeyMessage] = {}

    def gather(self) -> None:
        """Keep what is added from now on until :meth:`send`."""
        self._gathering = True

    def add(self, node_id: bytes, status: i64, entry: KeyEntry) -> None:
        """Send a node an entry. ``status``: flags of KEY COPY."""
        found = self._gathered.get(node_id)
        if found is not None:
            if found.status == status and len(found.entries) < ENTRIES_MAX:
                found.entries.append(entry)
                return
            self._peers.send(node_id, found)
            del self._gathered[node_id]
        message = KeyMessage(KEY_COPY, 0, status, [entry])
        if self._gathering:
            self._gathered[node_id] = message
        else:
            self._peers.send(node_id, message)

    def send(self) -> None:
        """Send what was gathered; what comes later goes at once again."""
        self._gathering = False
        for node_id, message in self._gathered.items():
            self._peers.send(node_id, message)
        self._gathered.clear()
