"""The last value that a field of our messages takes, and the first that it refuses: nodes of all
versions must agree on both."""

from __future__ import annotations

import struct

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError
from disque_tx.messages.bus import Bulk, JobSignal, Message, NodeForgotten, QueryMessage
from disque_tx.messages.bustypes import (
    BULK,
    DEMAND,
    FORGET,
    GOTJOB,
    HANDOVER,
    HOLDERS,
    KEY_COPY,
    QUERY,
    TABLE_CHANGE,
    TABLE_PULL,
)
from disque_tx.messages.demands import DemandEntry, DemandMessage
from disque_tx.messages.handover import HandoverEntry, HandoverMessage
from disque_tx.messages.holders import HoldersMessage
from disque_tx.messages.keys import HELD, KeyMessage
from disque_tx.messages.records import KeyEntry
from disque_tx.messages.tables import Register, TableChange, TableDigest, TablePull
from disque_tx.wire.bus.formats import known_type
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, BusParser, encode
from disque_tx.wire.bus.tables import table_parts

ME = b"a" * 40
JOB = b"D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"
BODY_AT = 144


def encoded(message: Message) -> bytes:
    """The message with a sender, as bytes."""
    message.sender = ME
    return encode(message)


def taken(data: bytes, at: int = 0, field: bytes = b"") -> bool:
    """Whether a node takes this message with other bytes at a place of its body."""
    at += BODY_AT
    data = data[:at] + field + data[at + len(field) :]
    parser = BusParser(PEER_BYTES_MAX)
    parser.feed(data[:4] + len(data).to_bytes(4, "big") + data[8:])
    return parser.next() is not None


class TableTests(SynchronousTestCase):
    """Registers, digests and pulls."""

    def test_numbers(self) -> None:
        """Counter, time of deletion and generation are below 2^63."""
        one = Register(b"q", b"ttl", b"", 1, ME, 1, generation=1)
        data = encoded(TableChange([one]))
        for at in (8, 16, len(data) - BODY_AT - 8):
            self.assertTrue(taken(data, at, struct.pack(">Q", 2**63 - 1)), at)
            self.assertFalse(taken(data, at, struct.pack(">Q", 2**63)), at)

    def test_sizes(self) -> None:
        """A pull names a pattern of 1024 bytes and a setting of 64 at most."""
        for pattern, name, fits in ((1_024, 64, True), (1_025, 64, False), (1_024, 65, False)):
            pull = TablePull(bytes(pattern), bytes(name))
            self.assertEqual(fits, taken(encoded(pull)), (pattern, name))

    def test_room(self) -> None:
        """A body without room for its numbers is no message; an empty one of the right size is."""
        empty = encoded(TableChange([]))
        self.assertTrue(taken(empty))
        self.assertFalse(taken(empty[:-1]))
        for message in (TableDigest(1, 1), TablePull(b"", b"")):
            whole = encoded(message)
            self.assertTrue(taken(whole))
            for wrong in (whole[:-1], whole + b"x", whole[:BODY_AT]):
                self.assertFalse(taken(wrong), message)

    def test_marks(self) -> None:
        """An answer to a pull, and the last part of a table, are told apart."""
        for pulled in (False, True):
            for last in (False, True):
                parser = BusParser(PEER_BYTES_MAX)
                parser.feed(encoded(TableChange([], pulled, last, 2)))
                found = parser.next()
                assert isinstance(found, TableChange)
                self.assertEqual((pulled, last, 2), (found.pulled, found.last, int(found.table)))

    def test_other_message(self) -> None:
        """A message that is about no table has no place in such a body."""
        error = self.assertRaises(LocalError, table_parts, JobSignal(GOTJOB, JOB))
        self.assertEqual("a bus message of type 5 about a table", str(error))


class NumberTests(SynchronousTestCase):
    """Numbers of keys, questions and handovers."""

    def test_keys(self) -> None:
        """Numbers about keys are below 2^53, when written as well as when read."""
        data = encoded(KeyMessage(KEY_COPY, 1, 1, [KeyEntry(b"k", JOB, HELD, 1, 1, 1)]))
        for at in (0, 16, 24, 32):
            self.assertTrue(taken(data, at, struct.pack(">Q", 2**53 - 1)), at)
            self.assertTrue(taken(data, at, bytes(8)), at)
            for wrong in (2**53, 2**64 - 1):
                self.assertFalse(taken(data, at, struct.pack(">Q", wrong)), at)
        for number in (-1, 2**53):
            for message in (
                KeyMessage(KEY_COPY, number, 1, []),
                KeyMessage(KEY_COPY, 1, 1, [KeyEntry(b"k", JOB, HELD, number, 1, 1)]),
                KeyMessage(KEY_COPY, 1, 1, [KeyEntry(b"k", JOB, HELD, 1, number, 1)]),
                KeyMessage(KEY_COPY, 1, 1, [KeyEntry(b"k", JOB, HELD, 1, 1, number)]),
            ):
                error = self.assertRaises(LocalError, encoded, message)
                self.assertEqual(f"the number {number} about a key", str(error))
        self.assertTrue(taken(encoded(KeyMessage(KEY_COPY, 2**53 - 1, 0, []))))

    def test_key_entries(self) -> None:
        """A hundred keys fit into a message, of 512 bytes each, in any state that there is."""
        for count, size, fits in ((100, 512, True), (1, 513, False)):
            entries = [KeyEntry(bytes(size), JOB, HELD, 0, 0, 0)] * count
            self.assertEqual(fits, taken(encoded(KeyMessage(KEY_COPY, 0, 0, entries))))
        data = encoded(KeyMessage(KEY_COPY, 0, 0, [KeyEntry(b"k", JOB, 3, 0, 0, 0)]))
        self.assertTrue(taken(data))
        for state in (b"\0\0\0\4", b"\xff" * 4):
            self.assertFalse(taken(data, 12, state))

    def test_questions(self) -> None:
        """The number of a question is below 2^63, and 20,000 words fit into it."""
        data = encoded(QueryMessage(QUERY, 1, []))
        self.assertTrue(taken(data, 0, struct.pack(">Q", 2**63 - 1)))
        self.assertFalse(taken(data, 0, struct.pack(">Q", 2**63)))
        for count in (20_000, 20_001):
            message = QueryMessage(QUERY, 1, [b""] * count)
            self.assertEqual(count == 20_000, taken(encoded(message)))

    def test_demand(self) -> None:
        """A thousand entries fit into a message, of 400 words each."""
        for entries, words, fits in ((1_000, 0, True), (1_001, 0, False), (1, 400, True)):
            entry = DemandEntry([b""] * words, 1, 1, 1)
            self.assertEqual(fits, taken(encoded(DemandMessage([entry] * entries))))
        self.assertFalse(taken(encoded(DemandMessage([DemandEntry([b""] * 401, 1, 1, 1)]))))

    def test_holders(self) -> None:
        """A thousand holders fit into a message."""
        for count in (0, 1_000, 1_001):
            message = HoldersMessage([JOB], (ME,) * count, 1, 1)
            self.assertEqual(count != 1_001, taken(encoded(message)), count)

    def test_handover(self) -> None:
        """A thousand jobs fit into a message, each with the longest life that there is."""
        life_ms = (2**32 - 1) * 1_000
        for count, left_ms, fits in (
            (1_000, life_ms, True),
            (1_001, 0, False),
            (1, life_ms + 1, False),
        ):
            entries = [HandoverEntry(JOB, 1, left_ms)] * count
            self.assertEqual(fits, taken(encoded(HandoverMessage(1, entries))), (count, left_ms))


class OtherBodyTests(SynchronousTestCase):
    """Messages whose type is not that of their content: a mistake of this program."""

    def test_refused(self) -> None:
        """Such a message is refused before a byte of it is sent, and the error names the type."""
        other = JobSignal(GOTJOB, JOB)
        for kind in (BULK, KEY_COPY, QUERY, DEMAND, HOLDERS, HANDOVER, FORGET):
            message = Message(kind)
            error = self.assertRaises(LocalError, encoded, message)
            expected = f"a bus message of type {kind} with the body of another type"
            self.assertEqual(expected, str(error))
            known = known_type(kind)
            assert known is not None
            self.assertEqual(0, int(known.format.count(other)))
        self.assertRaises(LocalError, encoded, Message(TABLE_CHANGE))
        error = self.assertRaises(LocalError, encoded, Message(99))
        self.assertEqual("a bus message of the unknown type 99", str(error))

    def test_counts(self) -> None:
        """The header announces what the body holds, of the types that need it."""
        register = Register(b"q", b"ttl", b"1", 1, ME)
        for message, count in (
            (TableChange([register] * 3), 3),
            (TablePull(b"q", b"ttl"), 0),
            (KeyMessage(KEY_COPY, 1, 1, [KeyEntry(b"k", JOB, HELD, 1, 1, 1)] * 2), 2),
            (QueryMessage(QUERY, 1, [b"word"]), 0),
            (DemandMessage([DemandEntry([b"=q"], 1, 1, 1)] * 4), 4),
            (HoldersMessage([JOB], (ME,) * 5, 1, 1), 5),
            (HandoverMessage(1, [HandoverEntry(JOB, 1, 1)] * 6), 6),
            (NodeForgotten(ME), 0),
        ):
            self.assertEqual(count, int.from_bytes(encoded(message)[14:16], "big"), message.type)
        bulk = Bulk([JobSignal(GOTJOB, JOB) for _ in range(2)])
        self.assertEqual((2, BULK), (int.from_bytes(encoded(bulk)[14:16], "big"), int(bulk.type)))
        self.assertEqual(34, TABLE_PULL)
