"""HANDOVER as bytes (cluster protocol, section 21.12)."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError
from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import CAN_HAND_OVER
from disque_tx.messages.handover import (
    ANSWER,
    BACKOFF,
    ENTRIES_MAX,
    FULL,
    KEEP,
    HandoverEntry,
    HandoverMessage,
)
from disque_tx.messages.limits import SECONDS_MAX, U32_MAX
from disque_tx.wire.bus.handover import handover_parts, read_handover
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, BusParser, encode

SENDER = b"a" * 40
JOB_ID = b"D-aaaaaaaa-" + b"1" * 24 + b"-05a1"
LONGEST_MS = SECONDS_MAX * 1_000


def parsed(data: bytes, known: bool = True) -> Message | None:
    """What a node reads."""
    parser = BusParser(PEER_BYTES_MAX)
    if not known:
        parser.features &= ~CAN_HAND_OVER
    parser.feed(data)
    return parser.next()


class HandoverTests(SynchronousTestCase):
    """From a value to bytes and back."""

    def setUp(self) -> None:
        entries = [HandoverEntry(JOB_ID, KEEP), HandoverEntry(b"x" * 40, BACKOFF, LONGEST_MS)]
        self.message = HandoverMessage(U32_MAX, entries, ANSWER | FULL)
        self.message.sender = SENDER

    def test_there_and_back(self) -> None:
        """A node that knows HANDOVER reads what another one wrote, flags included."""
        read = parsed(encode(self.message))
        assert isinstance(read, HandoverMessage)
        self.assertEqual((U32_MAX, ANSWER | FULL), (int(read.number), int(read.mflags)))
        found = [(one.job_id, int(one.what), int(one.left_ms)) for one in read.entries]
        self.assertEqual([(JOB_ID, KEEP, 0), (b"x" * 40, BACKOFF, LONGEST_MS)], found)

    def test_not_known(self) -> None:
        """A node that does not know HANDOVER skips it, as originals do."""
        self.assertIsNone(parsed(encode(self.message), known=False))

    def test_damaged(self) -> None:
        """A body that is cut off anywhere, or too long, is no message."""
        body = b"".join(handover_parts(self.message))
        for end in range(len(body)):
            self.assertIsNone(read_handover(2, body, 0, end))
        self.assertIsNone(read_handover(2, body + b"x", 0, len(body) + 1))
        self.assertIsNotNone(read_handover(2, body, 0, len(body)))

    def test_too_long_a_time(self) -> None:
        """Nor is one with a time that no job lives, which no clock could add up."""
        self.message.entries[0].left_ms = LONGEST_MS + 1
        body = b"".join(handover_parts(self.message))
        self.assertIsNone(read_handover(2, body, 0, len(body)))

    def test_too_many(self) -> None:
        """Nor one with more jobs than any node sends at once."""
        self.message.entries = [HandoverEntry(JOB_ID, KEEP)] * (ENTRIES_MAX + 1)
        body = b"".join(handover_parts(self.message))
        self.assertIsNone(read_handover(ENTRIES_MAX + 1, body, 0, len(body)))

    def test_wrong_length(self) -> None:
        """What is no ID of a job is refused before it is sent."""
        self.message.entries = [HandoverEntry(JOB_ID[:39], KEEP)]
        with self.assertRaises(LocalError):
            handover_parts(self.message)
