"""FORGET: a node that had failed for long is forgotten."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError
from disque_tx.messages.bus import NodeForgotten
from disque_tx.messages.bustypes import CAN_NAME
from disque_tx.wire.bus.parser import BusParser, encode

NODE = b"b" * 40


class ForgetTests(SynchronousTestCase):
    """The message as bytes."""

    def encoded(self, about: bytes) -> bytes:
        """The message of a node."""
        message = NodeForgotten(about)
        message.sender = b"a" * 40
        return encode(message)

    def test_both_ways(self) -> None:
        """The ID comes back, as the whole body."""
        data = self.encoded(NODE)
        self.assertEqual((b"\0\x2f", NODE), (data[12:14], data[144:]))
        parser = BusParser(1_000)
        parser.feed(data)
        message = parser.next()
        assert isinstance(message, NodeForgotten)
        self.assertEqual((NODE, b"a" * 40), (message.about, message.sender))

    def test_damaged(self) -> None:
        """A body of another length is ignored, and so is the message if the node cannot do it."""
        self.assertRaises(LocalError, self.encoded, b"b")
        data = bytearray(self.encoded(NODE) + b"b")
        data[7] += 1
        for bad, features in ((bytes(data), CAN_NAME), (self.encoded(NODE), 0)):
            parser = BusParser(1_000)
            parser.features = features
            parser.feed(bad)
            self.assertIsNone(parser.next())
            self.assertEqual(1, parser.ignored)
