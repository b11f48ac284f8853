"""QUERY and REPORT as bytes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.bus import Message, QueryMessage
from disque_tx.messages.bustypes import CAN_MATCH, CAN_QUERY, NEEDMATCH, QUERY, REPORT, type_name
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, BusParser, encode

SENDER = b"5" * 40


def query(kind: int = QUERY, number: int = 7, words: list[bytes] | None = None) -> QueryMessage:
    """A message that can be sent."""
    message = QueryMessage(kind, number, [b"COUNT", b"", b"q\0\xff"] if words is None else words)
    message.sender = SENDER
    return message


def parsed(data: bytes, queries: bool = True) -> Message | None:
    """What a node reads."""
    parser = BusParser(PEER_BYTES_MAX)
    if not queries:
        parser.features &= ~(CAN_QUERY | CAN_MATCH)
    parser.feed(data)
    return parser.next()


class QueryTests(SynchronousTestCase):
    """The body of all three types."""

    def test_there_and_back(self) -> None:
        """Words arrive as they were sent, whatever bytes they hold."""
        for kind in (QUERY, REPORT, NEEDMATCH):
            message = parsed(encode(query(kind, (1 << 63) - 1)))
            assert isinstance(message, QueryMessage)
            self.assertEqual(
                (kind, (1 << 63) - 1, [b"COUNT", b"", b"q\0\xff"], SENDER),
                (message.type, message.number, message.words, message.sender),
            )

    def test_bytes(self) -> None:
        """The body is what the protocol says, byte for byte."""
        body = bytes.fromhex("0000000000000007 00000002 00000001 41 00000000")
        self.assertEqual(body, encode(query(words=[b"A", b""]))[144:])

    def test_cut(self) -> None:
        """A body that ends early, or goes on behind its end, is ignored: nothing behind it is
        read."""
        whole = encode(query())
        for size in range(144, len(whole) + 3):
            data = (whole + b"xx")[:size]
            data = data[:4] + size.to_bytes(4, "big") + data[8:]
            self.assertEqual(size == len(whole), parsed(data) is not None, size)

    def test_too_many_words(self) -> None:
        """A message with very many words is ignored before they are read."""
        self.assertIsNone(parsed(encode(query(words=[b""] * 20_001))))

    def test_number_out_of_range(self) -> None:
        """A number that no node gives a question is ignored."""
        data = encode(query())
        self.assertIsNone(parsed(data[:144] + b"\x80" + data[145:]))

    def test_unknown(self) -> None:
        """A node that does not know the type ignores it."""
        self.assertIsNone(parsed(encode(query()), queries=False))

    def test_names(self) -> None:
        """Messages for people name the types."""
        self.assertEqual(["QUERY", "REPORT"], [type_name(QUERY), type_name(REPORT)])
