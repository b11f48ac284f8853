"""DEMAND as bytes (cluster protocol, section 21.8)."""

from __future__ import annotations

import struct

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import CAN_DEMAND
from disque_tx.messages.demands import ENTRIES_MAX, RESET, DemandEntry, DemandMessage
from disque_tx.wire.bus.demands import WORDS_MAX, demand_parts, read_demand
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, BusParser, encode

SENDER = b"a" * 40


def fields(message: DemandMessage) -> list[tuple[list[bytes], int, int, int]]:
    """The entries as plain values."""
    return [
        (one.words, int(one.credit), int(one.waiting), int(one.age_ms)) for one in message.entries
    ]


def parsed(data: bytes, known: bool = True) -> Message | None:
    """What a node reads."""
    parser = BusParser(PEER_BYTES_MAX)
    if not known:
        parser.features &= ~CAN_DEMAND
    parser.feed(data)
    return parser.next()


class DemandTests(SynchronousTestCase):
    """From a value to bytes and back."""

    def setUp(self) -> None:
        self.message = DemandMessage(
            [
                DemandEntry([b"=q"], 16, 3, 1_500),
                DemandEntry([b"+mail:*", b"-*:slow", b"!mail:1"], 0, 0, 0),
                DemandEntry([b"=" + b"n" * 1_024], (1 << 32) - 1, (1 << 32) - 1, (1 << 32) - 1),
            ]
        )
        self.message.sender = SENDER

    def test_there_and_back(self) -> None:
        """A node that knows DEMAND reads what another one wrote, flags included."""
        self.message.mflags = RESET
        read = parsed(encode(self.message))
        assert isinstance(read, DemandMessage)
        self.assertEqual(fields(self.message), fields(read))
        self.assertEqual((SENDER, RESET), (read.sender, int(read.mflags)))

    def test_not_known(self) -> None:
        """A node that does not know DEMAND skips it, as originals do."""
        self.assertIsNone(parsed(encode(self.message), known=False))

    def test_damaged(self) -> None:
        """A body that is cut off anywhere, or longer than it says, is no message."""
        body = b"".join(demand_parts(self.message))
        for size in range(len(body)):
            self.assertIsNone(read_demand(3, body, 0, size), size)
        self.assertIsNone(read_demand(3, body + b"x", 0, len(body) + 1))
        self.assertIsNone(read_demand(2, body, 0, len(body)))

    def test_too_much(self) -> None:
        """What announces more entries or words than a node sends is refused before it is read."""
        self.assertIsNone(read_demand(ENTRIES_MAX + 1, b"", 0, 0))
        body = struct.pack(">IIIH", 1, 1, 1, WORDS_MAX + 1) + b"\0\0" * (WORDS_MAX + 1)
        self.assertIsNone(read_demand(1, body, 0, len(body)))

    def test_does_not_fit(self) -> None:
        """A number that has no place in its field is an error of this program."""
        self.message.entries[0].credit = 1 << 32
        self.assertRaises(struct.error, demand_parts, self.message)
