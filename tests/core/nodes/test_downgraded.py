"""Nodes that are started again as originals, and back."""

from __future__ import annotations

from disque_tx.messages.bus import Gossip
from disque_tx.messages.bustypes import CAN_TABLES, PONG
from tests.core.peerbench import B, C, PeerCase


class DowngradedTests(PeerCase):
    """B was of this project, and is started as an original with the same files."""

    peers = (B, C)

    def test_numbers(self) -> None:
        """Each message shows which of the two it is now: an original gets acknowledgements in the
        way that does not crash it, and no message that it does not know."""
        entry = self.node.membership.nodes[B]
        link = entry.link
        assert link is not None
        for start in (7, 0, 8):
            message = Gossip(PONG, [])
            message.sender = B
            message.port = entry.port
            message.epoch = start
            message.features = CAN_TABLES
            self.node.receive(link, message)
            self.assertEqual(start != 0, entry.numbers, start)
            self.assertEqual(CAN_TABLES if start else 0, link.features)
