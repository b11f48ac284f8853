"""Parsing replies with both parsers, and encoding requests."""

from __future__ import annotations

from typing import Any

import hiredis
import txredisapi
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.tx import protocol as protocols
from disque_tx.client.tx.protocol import FastProtocol, PlainProtocol, pack, pack_in_python

KINDS = (FastProtocol, PlainProtocol)
SIMPLE = st.none() | st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=40)
REPLIES = st.recursive(SIMPLE, lambda inner: st.lists(inner, max_size=4), max_leaves=12)
WORDS = st.lists(st.binary(max_size=40) | st.text(max_size=20) | st.integers(), min_size=1)


class Receiver:
    """Records what a protocol reports."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.errors: list[str] = []

    def connected(self) -> None:
        """Not recorded."""

    def received(self, reply: Any) -> None:
        """Record a reply."""
        self.replies.append(reply)

    def broken(self, what: str) -> None:
        """Record an error."""
        self.errors.append(what)

    def disconnected(self, reason: BaseException | None) -> None:
        """Not recorded."""


def encoded(reply: Any) -> bytes:
    """A reply as a node would send it."""
    if reply is None:
        return b"$-1\r\n"
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, bytes):
        return b"$%d\r\n%s\r\n" % (len(reply), reply)
    return b"*%d\r\n" % len(reply) + b"".join(map(encoded, reply))


def parsed(kind: Any, *pieces: bytes) -> Receiver:
    """What the protocol reports for these bytes."""
    clock, receiver = Clock(), Receiver()
    parser = kind(clock, receiver)
    parser.makeConnection(StringTransport())
    for piece in pieces:
        if receiver.errors:
            break
        parser.dataReceived(piece)
        while clock.getDelayedCalls():
            clock.advance(0)
    return receiver


class ReplyTests(SynchronousTestCase):
    """Replies that a node may send."""

    @given(st.lists(REPLIES, max_size=4), st.integers(1, 30))
    def test_any_reply(self, replies: list[Any], size: int) -> None:
        """Replies are parsed correctly, however the data is split, and no value is converted."""
        data = b"".join(map(encoded, replies))
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        for kind in KINDS:
            found = parsed(kind, *pieces)
            self.assertEqual(([], replies), (found.errors, found.replies))

    def test_both_parsers(self) -> None:
        """Statuses, nil arrays and errors are the same with both parsers."""
        for kind in KINDS:
            found = parsed(kind, b"+OK\r\n*-1\r\n*2\r\n+a\r\n*0\r\n-LEAVING now\r\n")
            *values, error = found.replies
            self.assertEqual([b"OK", None, [b"a", []]], values)
            self.assertIsInstance(error, txredisapi.ResponseError)
            self.assertEqual("LEAVING now", str(error))

    @given(st.lists(st.binary(max_size=20), max_size=5))
    def test_any_bytes(self, pieces: list[bytes]) -> None:
        """No input raises an exception."""
        for kind in KINDS:
            parsed(kind, *pieces)

    def test_invalid_headers(self) -> None:
        """Invalid headers are detected before memory is allocated for them."""
        for data in (
            b"hello\r\n",
            b"$99999999999999999999999\r\n",
            b"$-7\r\n",
            b"$x\r\n",
            b"*-5\r\n",
        ):
            for kind in KINDS:
                self.assertEqual(1, len(parsed(kind, data).errors), (data, kind))
        for data in (b"\r\n", b"*1\r\n" * 50, b"*99999999\r\n", b"+\xff\r\n", b"+" + b"a" * 20_000):
            self.assertEqual(1, len(parsed(PlainProtocol, data).errors), data[:20])

    def test_header_limits(self) -> None:
        """The parser in Python takes the largest body and the longest array that are allowed, one
        within the other as deep as is allowed, and nothing above."""
        body, array = protocols.REPLY_BYTES_MAX, protocols._ELEMENTS_MAX
        deepest = b"*1\r\n" * protocols._DEPTH_MAX
        for allowed in (b"$%d\r\n" % body, b"*%d\r\n" % array, deepest + b"$1\r\n"):
            self.assertEqual([], parsed(PlainProtocol, allowed).errors, allowed)
        for refused in (b"$%d\r\n" % (body + 1), b"*%d\r\n" % (array + 1), deepest + b"*1\r\n"):
            self.assertEqual(1, len(parsed(PlainProtocol, refused).errors), refused)

    def test_size_limit(self) -> None:
        """A reply above the size limit is an error; many small ones are not."""
        self.patch(protocols, "REPLY_BYTES_MAX", 100)
        for kind in KINDS:
            large = parsed(kind, b"*9\r\n", *[b"$30\r\n" + b"x" * 30 + b"\r\n"] * 4)
            self.assertIn("more than 100 bytes", large.errors[0])
            self.assertEqual([], parsed(kind, *[b"+PONG\r\n"] * 50).errors)


class RequestTests(SynchronousTestCase):
    """Requests sent to a node."""

    @given(WORDS)
    def test_packing(self, words: list[Any]) -> None:
        """A node reads the same words, with either encoder."""
        expected = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        for way in (pack, pack_in_python):
            reader = hiredis.Reader()
            reader.feed(way(tuple(words)))
            self.assertEqual(expected, reader.gets())

    def test_without_hiredis(self) -> None:
        """Without hiredis, the parser in Python is used."""
        self.assertIsInstance(protocols.new_protocol(Clock(), Receiver()), FastProtocol)
        self.patch(txredisapi, "hiredis", None)
        self.assertIsInstance(protocols.new_protocol(Clock(), Receiver()), PlainProtocol)
