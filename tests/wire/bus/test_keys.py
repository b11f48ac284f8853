"""The messages about keys as bytes, and keys in the log."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import CAN_KEYS, KEY_CHECK, KEY_COPY, KEY_RESERVE, type_name
from disque_tx.messages.keys import ENTRIES_MAX, HELD, KEY_BYTES_MAX, KeyMessage
from disque_tx.messages.records import KeyEntry
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, BusParser, encode
from disque_tx.wire.files.aof import FreedKey, LogDecoder, LogEncoder, holds_records, parse_record

SENDER = b"5" * 40
JOB = b"D-55555555-000000000000000000000001-05a1"


def entry(key: bytes = b"k\0\xff", life_ms: int = 86_400_000) -> KeyEntry:
    """A key that a job has."""
    return KeyEntry(key, JOB, HELD, life_ms, 5_000, 1_700_000_000_000)


def message(*entries: KeyEntry, kind: int = KEY_COPY) -> KeyMessage:
    """A message that can be sent."""
    made = KeyMessage(kind, 7, 1, list(entries))
    made.sender = SENDER
    return made


def parsed(data: bytes, keys: bool = True) -> Message | None:
    """What a node reads."""
    parser = BusParser(PEER_BYTES_MAX)
    if not keys:
        parser.features &= ~CAN_KEYS
    parser.feed(data)
    return parser.next()


class BusTests(SynchronousTestCase):
    """All four types have the same body."""

    def test_there_and_back(self) -> None:
        """Keys arrive as they were sent, whatever bytes they hold."""
        sent = [entry(), entry(b"x" * KEY_BYTES_MAX)]
        for kind in range(KEY_RESERVE, KEY_CHECK + 1):
            found = parsed(encode(message(*sent, kind=kind)))
            assert isinstance(found, KeyMessage)
            self.assertEqual((kind, 7, 1), (found.type, found.number, found.status))
            self.assertEqual([e.fields() for e in sent], [e.fields() for e in found.entries])
            self.assertTrue(type_name(kind).startswith("KEY "))

    def test_bytes(self) -> None:
        """The body is what the protocol says, byte for byte."""
        body = bytes.fromhex("0000000000000007 00000001 00000002")
        body += bytes.fromhex("0000000005265c00 0000000000001388 0000018bcfe56800")
        body += JOB + bytes.fromhex("00000003 6b00ff")
        self.assertEqual(body, encode(message(entry()))[144:])

    def test_cut(self) -> None:
        """A body that ends early, or goes on behind its end, is ignored."""
        whole = encode(message(entry(), entry(b"other")))
        for size in range(144, len(whole) + 3):
            data = (whole + b"xx")[:size]
            data = data[:4] + size.to_bytes(4, "big") + data[8:]
            self.assertEqual(size == len(whole), parsed(data) is not None, size)

    def test_out_of_range(self) -> None:
        """Numbers that would overflow, unknown states and long keys are ignored."""
        whole = encode(message(entry()))
        for at, what in ((144, b"\xff" * 8), (156, b"\0\0\0\4"), (160, b"\xff" * 8)):
            self.assertIsNone(parsed(whole[:at] + what + whole[at + len(what) :]), at)
        for at in (168, 176):
            self.assertIsNone(parsed(whole[:at] + b"\x7f" + whole[at + 1 :]), at)
        self.assertIsNone(parsed(encode(message(entry(b"x" * (KEY_BYTES_MAX + 1))))))

    def test_too_many(self) -> None:
        """A message holds a bounded number of keys."""
        with self.assertRaises(LocalError):
            encode(message(*[entry()] * (ENTRIES_MAX + 1)))

    def test_unknown(self) -> None:
        """A node without keys ignores the messages, as an original does."""
        self.assertIsNone(parsed(encode(message(entry())), keys=False))


class LogTests(SynchronousTestCase):
    """Keys in the log."""

    def records(self) -> bytes:
        """A key that is taken, then free."""
        encoder = LogEncoder()
        encoder.hold_key(entry())
        encoder.free_key(b"k\0\xff")
        size = int(encoder.size)
        data = encoder.take()
        self.assertEqual(size, len(data))
        return data

    def test_there_and_back(self) -> None:
        """What a node writes, it reads after a restart."""
        decoder = LogDecoder()
        decoder.feed(self.records())
        words = [decoder.next(), decoder.next()]
        self.assertEqual(0, decoder.rest())
        held, freed = (parse_record(one) for one in words if one is not None)
        assert isinstance(held, KeyEntry) and isinstance(freed, FreedKey)
        self.assertEqual(entry().fields(), held.fields())
        self.assertEqual(b"k\0\xff", freed.key)

    def test_refused(self) -> None:
        """Records that no node writes are damage, and not guessed at."""
        for words in (
            [b"HOLDKEY"],
            [b"HOLDKEY", b""],
            [b"HOLDKEY", b"x" * 80],
            [b"FREEKEY", b""],
            [b"FREEKEY", b"x" * 513],
        ):
            with self.assertRaises(PeerError):
                parse_record(words)

    def test_behind_a_torn_record(self) -> None:
        """Complete records of keys behind damage show that it is no torn end."""
        self.assertTrue(holds_records(b"x\n" + self.records()))
