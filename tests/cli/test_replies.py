"""Reading replies from a stream."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.connection import encode
from disque_tx.cli.replies import ErrorReply, Pairs, Reply, StatusReply, read_reply
from disque_tx.errors import PeerError


def read(data: bytes) -> Reply:
    return read_reply(io.BytesIO(data))


class ReadReplyTests(SynchronousTestCase):
    """``read_reply``."""

    def test_kinds(self) -> None:
        """Every kind of reply becomes its value."""
        cases: list[tuple[bytes, Reply]] = [
            (b"+OK\r\n", b"OK"),
            (b"-ERR no\r\n", b"ERR no"),
            (b":-42\r\n", -42),
            (b"$3\r\na\r\n\r\n", b"a\r\n"),
            (b"$0\r\n\r\n", b""),
            (b"$-1\r\n", None),
            (b"*-1\r\n", None),
            (b"_\r\n", None),
            (b"*0\r\n", []),
            (b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", [1, [b"x"]]),
            (b"%1\r\n+len\r\n:3\r\n", [b"len", 3]),
            (b">2\r\n+message\r\n:3\r\n", [b"message", 3]),
        ]
        for data, expected in cases:
            self.assertEqual(expected, read(data))

    def test_kinds_of_text_differ(self) -> None:
        """Status, error and string have different types, so that output can distinguish them."""
        self.assertIs(StatusReply, type(read(b"+OK\r\n")))
        self.assertIs(ErrorReply, type(read(b"-OK\r\n")))
        self.assertIs(bytes, type(read(b"$2\r\nOK\r\n")))
        self.assertIs(Pairs, type(read(b"%0\r\n")))

    def test_consumes_exactly_one(self) -> None:
        """Reading stops at the end of a reply, where the next one starts."""
        stream = io.BytesIO(b"$1\r\nx\r\n:2\r\n")
        read_reply(stream)
        self.assertEqual(2, read_reply(stream))

    def test_short_input_is_the_end(self) -> None:
        """A truncated reply is a lost connection, not a protocol error."""
        whole = b"*2\r\n$5\r\nhello\r\n+OK\r\n"
        for size in range(len(whole)):
            self.assertRaises(EOFError, read, whole[:size])

    def test_nonsense_is_refused(self) -> None:
        """Data from another kind of server is refused, and its lengths are not trusted."""
        for data in (
            b"HTTP/1.1 400 Bad Request\r\n",
            b"\r\n",
            b"$x\r\n",
            b"$99999999999\r\n",
            b":\r\n",
            b":1\n",
            b"*1\r\n" * 100,
        ):
            self.assertRaises(PeerError, read, data)

    @given(st.lists(st.binary(max_size=40), max_size=8))
    def test_reads_what_encode_writes(self, words: list[bytes]) -> None:
        """An encoded array of strings can be read back, with any bytes."""
        self.assertEqual(words, read(encode(words)))

    def test_complaints(self) -> None:
        """Who speaks with another server sees the beginning of what it answers."""
        long = bytes(range(65, 91)) * 3
        numbers = {b":" + long: long, b"$" + long: long, b"*--1": b"--1", b":": b""}
        for line, shown in numbers.items():
            expected = f"the server sent {shown[:40]!r} instead of a number"
            self.assertEqual(expected, str(self.assertRaises(PeerError, read, line + b"\r\n")))
        expected = f"this is not a Disque server: it answered {(b'?' + long)[:40]!r}"
        error = self.assertRaises(PeerError, read, b"?" + long + b"\r\n")
        self.assertEqual(expected, str(error))
        error = self.assertRaises(PeerError, read, long + b"\n")
        self.assertEqual(f"the server sent a line without a valid end: {long[:40]!r}", str(error))

    def test_exact_limits(self) -> None:
        """What is just within the limits is read, and what is just beyond them is refused."""
        digits = b"1" * 20
        self.assertEqual(int(digits), read(b":" + digits + b"\r\n"))
        self.assertEqual(-int(digits), read(b":-" + digits + b"\r\n"))
        self.assertRaises(PeerError, read, b":1" + digits + b"\r\n")
        value: Reply = []
        for _ in range(31):
            value = [value]
        self.assertEqual(value, read(b"*1\r\n" * 31 + b"*0\r\n"))
        error = self.assertRaises(PeerError, read, b"*1\r\n" * 32 + b"*0\r\n")
        self.assertEqual("the server nested its reply too deeply", str(error))
        size = 512 * 1024 * 1024
        self.assertRaises(EOFError, read, b"$%d\r\n" % size)
        error = self.assertRaises(PeerError, read, b"$%d\r\n" % (size + 1))
        expected = f"the server announced a string of {size + 1} bytes; the limit is 512 MiB"
        self.assertEqual(expected, str(error))

    def test_nothing(self) -> None:
        """The absence of a value has no length, and takes nothing from what follows."""
        self.assertEqual([None, None, 1], read(b"*3\r\n$-1\r\n*-1\r\n:1\r\n"))
