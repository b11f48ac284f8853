"""The parsing of requests (client protocol, section 3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import PeerError
from disque_tx.wire.resp.requests import MAX_ARGS, MAX_BULK, MAX_LINE, RequestParser
from tests import profiles  # noqa: F401

Requests = list[list[bytes]]

words = st.one_of(st.binary(max_size=12), st.integers(0, 12_000).map(lambda n: b"x" * n))
requests = st.lists(st.lists(words, min_size=1, max_size=5), max_size=6)


def encode(argv: list[bytes]) -> bytes:
    """A request in the multibulk form."""
    parts = [b"*%d\r\n" % len(argv)]
    for word in argv:
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


def drained(parser: RequestParser) -> Requests:
    """All complete requests."""
    result = []
    while (argv := parser.next()) is not None:
        result.append(argv)
    return result


def fed(pieces: list[bytes]) -> Requests:
    """All requests of a stream that arrives in pieces, parsed after each piece."""
    parser = RequestParser()
    result: Requests = []
    for piece in pieces:
        parser.feed(piece)
        result += drained(parser)
    return result


class ParserCase(SynchronousTestCase):
    """A parser and its results."""

    def setUp(self) -> None:
        self.parser = RequestParser()

    def assert_requests(self, expected: Requests, data: bytes) -> None:
        """The stream contains exactly these requests, however it is cut."""
        self.assertEqual(expected, fed([data]), data)
        self.assertEqual(expected, fed([data[at : at + 1] for at in range(len(data))]), data)

    def assert_refused(self, text: str, data: bytes) -> None:
        """The stream is refused with this error, after a valid request that is still returned."""
        parser = RequestParser()
        parser.feed(b"PING\r\n" + data)
        self.assertEqual([b"PING"], parser.next())
        with self.assertRaises(PeerError) as caught:
            drained(parser)
        self.assertEqual(text, str(caught.exception))
        self.assertFalse(caught.exception.silent)


class MultibulkTests(ParserCase):
    """The form that client libraries use (section 3.1)."""

    def test_arguments_are_binary_safe(self) -> None:
        """An argument may contain any byte, line ends and NUL included."""
        argv = [b"ADDJOB", b"\0q\r\n", bytes(range(256)), b""]
        self.assert_requests([argv], encode(argv))

    def test_argument_sizes(self) -> None:
        """Arguments of every size class arrive whole, followed directly by the next request."""
        for size in (0, 1, 9, 10, 99, 100, 4095, 4096, 8191, 8192, 9999, 65536, 65537, 100_000):
            argv = [b"PING", b"a" * size]
            data = encode(argv) + encode([b"TIME"])
            self.assertEqual([argv, [b"TIME"]], fed([data]), size)
            self.assertEqual([argv, [b"TIME"]], fed([data[:20], data[20:-9], data[-9:]]), size)

    def test_no_arguments(self) -> None:
        """A count of zero or less is ignored without an error."""
        self.assert_requests([[b"PING"]], b"*0\r\n*-1\r\n*-99\r\n*1\r\n$4\r\nPING\r\n")

    def test_line_ends_are_not_checked(self) -> None:
        """The bytes in place of CR LF after a payload, and of LF in a header, may be any."""
        self.assert_requests([[b"PING", b"ab"]], b"*2\rx$4\r\nPINGxy$2\r\tab\0\0")

    def test_bad_count(self) -> None:
        """A count that is not a strict decimal, or too large, closes the connection."""
        for count in (b"+1", b"01", b"00", b"-0", b"", b"-", b"1 ", b" 1", b"x", b"1\0", b"0x1"):
            self.assert_refused("Protocol error: invalid multibulk length", b"*%s\r\n" % count)
        for number in (MAX_ARGS + 1, 1 << 31, (1 << 63) - 1, 1 << 63, 1 << 64, 10**400):
            self.assert_refused("Protocol error: invalid multibulk length", b"*%d\r\n" % number)

    def test_bad_length(self) -> None:
        """A length that is not a strict decimal, negative, or above 512 MiB closes the
        connection."""
        for length in (
            b"-1",
            b"+1",
            b"01",
            b"-0",
            b"",
            b"x",
            b"1x",
            b" 1",
            b"12345678x",
            b"4\f",
            b"12\n",
            b"4\x0e",
        ):
            data = b"*1\r\n$%s\r\n" % length
            self.assert_refused("Protocol error: invalid bulk length", data)
        for number in (MAX_BULK + 1, (1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), -(1 << 64)):
            data = b"*1\r\n$%d\r\n" % number
            self.assert_refused("Protocol error: invalid bulk length", data)

    def test_wrong_type(self) -> None:
        """The error shows the byte in place of the dollar sign, unless it would break the line."""
        for byte, shown in ((b":", ":"), (b"\n", " "), (b"\0", " "), (b"\xff", "\xff")):
            text = f"Protocol error: expected '$', got '{shown}'"
            self.assert_refused(text, b"*1\r\n" + byte + b"4\r\nPING\r\n")
        self.assert_refused("Protocol error: expected '$', got ' '", b"*1\r\n\r\n")

    def test_endless_headers(self) -> None:
        """An unterminated header line is refused above 64 KiB, and read up to there."""
        for start, text in (
            (b"*", "Protocol error: too big mbulk count string"),
            (b"*1\r\n$", "Protocol error: too big bulk count string"),
        ):
            self.assert_refused(text, start + b"1" * MAX_LINE)
            self.parser = RequestParser()
            self.parser.feed(start + b"1" * (MAX_LINE - 1))
            self.assertIsNone(self.parser.next())

    def test_largest_allowed(self) -> None:
        """The limits of the original are allowed, and use no memory until filled."""
        header = b"*%d\r\n$%d\r\n" % (MAX_ARGS, MAX_BULK)
        self.parser.feed(header)
        self.assertIsNone(self.parser.next())
        self.assertLessEqual(self.parser.pending_bytes(), len(header))

    def test_announced_is_not_allocated(self) -> None:
        """Memory is only used for bytes that arrived, not for announced sizes."""
        self.parser.feed(b"*2\r\n$4\r\nPING\r\n$%d\r\n" % MAX_BULK)
        self.assertIsNone(self.parser.next())
        for _ in range(10):
            self.parser.feed(b"x" * 1000)
            self.assertIsNone(self.parser.next())
        self.assertTrue(10_000 <= self.parser.pending_bytes() <= 10_050)

    def test_large_argument_in_pieces(self) -> None:
        """A large body arrives in many reads, the last of which contains the next request, too."""
        expected = [[b"ADDJOB", b"q", bytes(range(256)) * 2_000, b"0"], [b"PING"]]
        data = b"".join([encode(argv) for argv in expected])
        for size in (1_460, 65_536, 300_000, len(data) - 1):
            pieces = [data[at : at + size] for at in range(0, len(data), size)]
            self.assertEqual(expected, fed(pieces), size)

    def test_pending_bytes(self) -> None:
        """The input counted against a client is what it sent, even if it sends byte by byte."""
        data = encode([b"ADDJOB", b"q", b"b" * 3000, b"0"])
        for at in range(len(data) - 1):
            self.parser.feed(data[at : at + 1])
            self.assertIsNone(self.parser.next())
            self.assertTrue(at - 4 < self.parser.pending_bytes() <= at + 1, at)
        self.parser.feed(data[-1:])
        self.assertIsNotNone(self.parser.next())
        self.assertEqual(0, self.parser.pending_bytes())

    @given(requests, st.lists(st.integers(0, 30_000), max_size=10))
    def test_any_split(self, expected: Requests, cuts: list[int]) -> None:
        """The way the network cuts the stream changes nothing."""
        data = b"".join([encode(argv) for argv in expected])
        ends = sorted([min(cut, len(data)) for cut in cuts]) + [len(data)]
        pieces = []
        start = 0
        for end in ends:
            pieces.append(data[start:end])
            start = end
        self.assertEqual(expected, fed(pieces))

    @given(st.lists(st.lists(st.binary(max_size=12), min_size=1, max_size=4), max_size=4))
    def test_byte_by_byte(self, expected: Requests) -> None:
        """A stream of single bytes contains the same requests."""
        self.assert_requests(expected, b"".join([encode(argv) for argv in expected]))


class InlineTests(ParserCase):
    """The form that people type (section 3.2)."""

    def test_lines(self) -> None:
        """Lines end in LF, with or without CR, and the next request is not lost."""
        self.assert_requests([[b"PING"], [b"PING"], [b"TIME"]], b"PING\nPING\r\nTIME\n")

    def test_quotes(self) -> None:
        """Arguments are split as in a shell, and empty ones kept."""
        line = b'ADDJOB \'my queue\' "a\\x41\\n" ""\r\n'
        self.assert_requests([[b"ADDJOB", b"my queue", b"aA\n", b""]], line)

    def test_ignored_lines(self) -> None:
        """Blank lines, and lines whose first argument is empty, are ignored."""
        self.assert_requests([[b"PING"]], b'\r\n\n \t \r\n"" x\r\nPING\r\n')

    def test_nul(self) -> None:
        """A NUL is a byte like any other and does not stall the connection."""
        self.assert_requests([[b"PING", b"a\0b"], [b"\0"]], b"PING a\0b\r\n\0\n")

    def test_unbalanced(self) -> None:
        """A line with unbalanced quotes closes the connection."""
        for line in (b'PING "a\r\n', b"PING 'a\n", b'PING "a"b\n'):
            self.assert_refused("Protocol error: unbalanced quotes in request", line)

    def test_endless_line(self) -> None:
        """An unterminated line is refused above 64 KiB, and read up to there."""
        text = "Protocol error: too big inline request"
        self.assert_refused(text, b"P" * (MAX_LINE + 1))
        self.parser.feed(b"P" * MAX_LINE)
        self.assertIsNone(self.parser.next())
        self.parser.feed(b"\r\n")
        self.assertEqual([b"P" * MAX_LINE], self.parser.next())

    def test_both_forms(self) -> None:
        """Every request may use either form."""
        self.assert_requests([[b"PING"], [b"a*b"], [b"TIME"]], encode([b"PING"]) + b"a*b\nTIME\n")


class HttpTests(ParserCase):
    """Web pages that make browsers send requests here."""

    def assert_silent(self, data: bytes) -> None:
        """The connection is closed without a reply that a page could read."""
        self.parser = RequestParser()
        self.parser.feed(data)
        with self.assertRaises(PeerError) as caught:
            drained(self.parser)
        self.assertTrue(caught.exception.silent, data)

    def test_refused(self) -> None:
        """A request line or header line of HTTP closes the connection before any command runs."""
        for line in (b"GET / HTTP/1.1", b"POST / HTTP/1.0", b"post x", b"put /a http/2"):
            self.assert_silent(line + b"\r\nADDJOB q b 0\r\n")
        self.assert_silent(b"Host: localhost:7711\r\n")

    def test_not_http(self) -> None:
        """Only HTTP is treated as HTTP; unknown commands get their ordinary error."""
        self.assert_requests([[b"GET", b"key"], [b"hostess"]], b"GET key\r\nhostess\r\n")


class RestrictedTests(ParserCase):
    """Limits for clients that have not authenticated."""

    def setUp(self) -> None:
        super().setUp()
        self.parser.restricted = True

    def test_greeting_fits(self) -> None:
        """AUTH, and HELLO with all its options, fit within the limits."""
        hello = [b"HELLO", b"3", b"AUTH", b"default", b"secret" * 100, b"SETNAME", b"me"]
        self.parser.feed(encode([b"AUTH", b"x" * 16_384]) + encode(hello))
        self.assertEqual([[b"AUTH", b"x" * 16_384], hello], drained(self.parser))

    def test_refused(self) -> None:
        """More or longer arguments close the connection at their header."""
        for data, text in (
            (b"*11\r\n", "Protocol error: unauthenticated multibulk length"),
            (b"*2\r\n$4\r\nAUTH\r\n$16385\r\n", "Protocol error: unauthenticated bulk length"),
        ):
            parser = RequestParser()
            parser.restricted = True
            parser.feed(data)
            with self.assertRaises(PeerError) as caught:
                parser.next()
            self.assertEqual(text, str(caught.exception))

    def test_lifted(self) -> None:
        """After authentication the ordinary limits apply."""
        self.parser.restricted = False
        argv = [b"ACKJOB"] + [b"x"] * 100
        self.parser.feed(encode(argv))
        self.assertEqual(argv, self.parser.next())


class HostileTests(SynchronousTestCase):
    """Arbitrary bytes."""

    @given(st.lists(st.binary(max_size=30), max_size=10), st.booleans())
    def test_random(self, pieces: list[bytes], restricted: bool) -> None:
        """Whatever the input, there are only requests and ``PeerError``."""
        self.check(pieces, restricted)

    @given(
        st.lists(
            st.sampled_from([b"*", b"$", b"-", b"1", b"0", b"9" * 20, b"\r", b"\n", b"\r\n", b"a"]),
            max_size=40,
        ),
        st.booleans(),
    )
    def test_nearly_right(self, pieces: list[bytes], restricted: bool) -> None:
        """The same for input that resembles the protocol."""
        self.check(pieces, restricted)

    def check(self, pieces: list[bytes], restricted: bool) -> None:
        parser = RequestParser()
        parser.restricted = restricted
        total = 0
        for piece in pieces:
            parser.feed(piece)
            total += len(piece)
            try:
                for argv in drained(parser):
                    self.assertTrue(argv and argv[0] is not None)
            except PeerError as error:
                self.assertNotEqual("", str(error))
                return
            self.assertTrue(0 <= parser.pending_bytes() <= total)
