"""KEY COPY: what other nodes shall know about keys.

When many jobs are made, or end, in one turn, each receiver gets few messages about them, with up to
:data:`ENTRIES_MAX` entries, in the order in which they were added.
"""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.nodes.peers import Peers
from disque_tx.messages.bustypes import KEY_COPY
from disque_tx.messages.keys import ENTRIES_MAX, KeyMessage
from disque_tx.messages.records import KeyEntry


class KeyCopies:
    """Gathers entries until they are sent together."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        # Node → the message that it will get.
        self._gathered: dict[bytes, KeyMessage] = {}

    def add(self, node_id: bytes, status: i64, entry: KeyEntry) -> None:
        """Send a node an entry, by the next :meth:`send`. ``status``: flags of KEY COPY."""
        found = self._gathered.get(node_id)
        if found is not None:
            if found.status == status and len(found.entries) < ENTRIES_MAX:
                found.entries.append(entry)
                return
            self._peers.send(node_id, found)
        self._gathered[node_id] = KeyMessage(KEY_COPY, 0, status, [entry])

    def send(self) -> None:
        """Send what was added."""
        gathered, self._gathered = self._gathered, {}
        for node_id, message in gathered.items():
            self._peers.send(node_id, message)
