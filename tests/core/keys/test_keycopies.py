"""What several jobs with keys make known to one node goes in one message."""

from __future__ import annotations

from disque_tx.core.keys.keycopies import KeyCopies
from disque_tx.messages.bustypes import KEY_COPY
from disque_tx.messages.keys import DONE, ENTRIES_MAX, FREE, HELD, KeyMessage
from disque_tx.messages.records import KeyEntry
from tests.core.peerbench import B, C, PeerCase


def entry(number: int, state: int = HELD) -> KeyEntry:
    """An entry of a job of its own."""
    return KeyEntry(b"k%d" % number, b"D-%038d" % number, state, 0, 0, 0)


class KeyCopiesTests(PeerCase):
    """``KeyCopies``."""

    def setUp(self) -> None:
        super().setUp()
        self.copies = KeyCopies(self.node.peers)

    def sent_keys(self, peer: bytes) -> list[tuple[int, list[bytes]]]:
        """Status and keys of each message that a node got."""
        found = []
        for message in self.sent_to(peer):
            assert isinstance(message, KeyMessage)
            self.assertEqual((KEY_COPY, 0), (message.type, message.number))
            found.append((int(message.status), [one.key for one in message.entries]))
        return found

    def test_gathered(self) -> None:
        """Each node gets one message, with what concerns it, and that is not sent again."""
        for number in range(3):
            self.copies.add(B, 0, entry(number))
        self.copies.add(C, 0, entry(1))
        self.assertEqual([], self.sent_to(B))
        self.copies.send()
        self.assertEqual([(0, [b"k0", b"k1", b"k2"])], self.sent_keys(B))
        self.assertEqual([(0, [b"k1"])], self.sent_keys(C))
        self.copies.send()
        self.assertEqual([], self.sent_to(B))
        self.copies.add(B, 0, entry(4))
        self.copies.send()
        self.assertEqual([(0, [b"k4"])], self.sent_keys(B))

    def test_order(self) -> None:
        """What comes later about a key arrives later, also with other flags."""
        self.copies.add(B, DONE, entry(1, FREE))
        self.copies.add(B, 0, entry(1))
        self.copies.add(B, DONE, entry(1, FREE))
        self.copies.send()
        self.assertEqual([(DONE, [b"k1"]), (0, [b"k1"]), (DONE, [b"k1"])], self.sent_keys(B))

    def test_full(self) -> None:
        """No message has more entries than the receiver accepts."""
        for number in range(2 * ENTRIES_MAX + 1):
            self.copies.add(B, 0, entry(number))
        self.copies.send()
        sizes = [len(keys) for _, keys in self.sent_keys(B)]
        self.assertEqual([ENTRIES_MAX, ENTRIES_MAX, 1], sizes)
