"""How the arguments of a request are parsed (client protocol, section 6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.arguments import (
    NOT_A_NUMBER,
    cursor,
    integer,
    job_ids,
    required_integer,
    timeout_ms,
)
from disque_tx.errors import CommandError
from tests import profiles  # noqa: F401

GOOD = b"D-a267464b-WepcnCEsLGzTE3WERFhKyqDG-05a1"
#: None of these is a number, whatever a C library may accept.
NO_NUMBERS = (b"", b"+", b"-", b"--1", b"1 ", b" 1", b"1.0", b"1e3", b"0x1", b"1_0", b"5\0", b"a")
TOO_LARGE = (1 << 63, 1 << 64, 1 << 65, -(1 << 63) - 1, 10**30, -(10**30))


class IntegerTests(SynchronousTestCase):
    """Section 6.1."""

    def test_numbers(self) -> None:
        """A sign, leading zeros and the whole 64-bit range are allowed."""
        for word, value in (
            (b"0", 0),
            (b"+5", 5),
            (b"-5", -5),
            (b"007", 7),
            (b"000000000000000000000000000000000007", 7),
            (b"999999999999999999", 999_999_999_999_999_999),
            (b"9223372036854775807", (1 << 63) - 1),
            (b"-9223372036854775808", -(1 << 63)),
        ):
            self.assertEqual(value, integer(word), word)
            self.assertEqual(value, required_integer(word), word)

    def test_no_numbers(self) -> None:
        """The empty string and digits followed by anything else are not numbers."""
        for word in NO_NUMBERS + tuple(b"%d" % number for number in TOO_LARGE):
            self.assertEqual(NOT_A_NUMBER, integer(word), word)
            error = self.assertRaises(CommandError, required_integer, word)
            self.assertEqual(b"ERR value is not an integer or out of range", error.reply())

    @given(st.one_of(st.integers(), st.integers(-(1 << 65), 1 << 65)))
    def test_any_number(self, number: int) -> None:
        """Numbers are parsed exactly or not at all."""
        inside = -(1 << 63) <= number < 1 << 63
        self.assertEqual(number if inside else NOT_A_NUMBER, integer(b"%d" % number))

    @given(st.binary(max_size=30))
    def test_any_word(self, word: bytes) -> None:
        """Any argument is a number in range or not a number; nothing else happens."""
        value = integer(word)
        self.assertTrue(value == NOT_A_NUMBER or -(1 << 63) <= value < 1 << 63)


class TimeoutTests(SynchronousTestCase):
    """Section 6.2."""

    def test_values(self) -> None:
        """Zero means no limit, and so does a value that would overflow a clock."""
        for word, value in ((b"0", 0), (b"250", 250), (b"9223372036854775807", 0)):
            self.assertEqual(value, timeout_ms(word))

    def test_errors(self) -> None:
        """Each of the two errors has its own text."""
        for word in NO_NUMBERS + tuple(b"%d" % number for number in TOO_LARGE):
            error = self.assertRaises(CommandError, timeout_ms, word)
            self.assertEqual(b"ERR timeout is not an integer or out of range", error.reply())
        for word in (b"-1", b"-9223372036854775808"):
            error = self.assertRaises(CommandError, timeout_ms, word)
            self.assertEqual(b"ERR timeout is negative", error.reply())


class JobIdTests(SynchronousTestCase):
    """Section 6.3."""

    def test_all_are_checked(self) -> None:
        """One bad ID among many refuses the whole request."""
        self.assertEqual([GOOD, GOOD], job_ids([b"ACKJOB", GOOD, GOOD]))
        self.assertEqual([], job_ids([b"ACKJOB"]))
        error = self.assertRaises(CommandError, job_ids, [b"ACKJOB", GOOD, GOOD[:-1]])
        self.assertEqual(b"BADID Invalid Job ID format.", error.reply())


class CursorTests(SynchronousTestCase):
    """Section 6.4."""

    def test_values(self) -> None:
        """Cursors are unsigned; the empty string is 0 and a negative number wraps around."""
        for word, value in (
            (b"0", 0),
            (b"", 0),
            (b"18446744073709551615", (1 << 64) - 1),
            (b"-1", (1 << 64) - 1),
            (b"+7", 7),
        ):
            self.assertEqual(value, cursor(word), word)

    def test_errors(self) -> None:
        """Anything else is not a cursor."""
        for word in (b"x", b" 1", b"1x", b"18446744073709551616", b"9" * 40, b"-", b"COUNT"):
            error = self.assertRaises(CommandError, cursor, word)
            self.assertEqual(b"ERR invalid cursor or option name", error.reply())
