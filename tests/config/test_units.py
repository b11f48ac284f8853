"""Tests of parsing and writing single values."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.units import (
    INT64_MAX,
    INT64_MIN,
    parse_int,
    parse_memory,
    printable,
    show_memory,
)


class IntegerTests(SynchronousTestCase):
    """Integers (client protocol, section 6.1)."""

    @settings(deadline=None)
    @given(st.integers(INT64_MIN, INT64_MAX))
    def test_every_64_bit_number(self, number: int) -> None:
        """Every number of 64 bits is parsed, so that it can be used as a limit."""
        self.assertEqual(number, parse_int(b"%d" % number))

    def test_plus_and_leading_zeros(self) -> None:
        """Clients of the original send numbers in these forms, so they stay valid."""
        self.assertEqual([5, 7, -7], [parse_int(text) for text in (b"+5", b"007", b"-007")])

    def test_refused(self) -> None:
        """Text that is not a number is refused."""
        beyond = [b"9223372036854775808", b"-9223372036854775809", b"9" * 5000]
        for text in [b"", b"abc", b"12x", b" 1", b"1 ", b"1\n", b"+-1", b"1.0", b"0\x001", *beyond]:
            error = self.assertRaises(ValueError, parse_int, text)
            self.assertEqual(f"Invalid number '{printable(text)}'", str(error))


class MemoryTests(SynchronousTestCase):
    """Memory sizes (client protocol, section 6.5)."""

    def test_units(self) -> None:
        """A unit of one letter is decimal, one of two letters binary, in upper or lower case."""
        sizes = {
            b"7": 7,
            b"7b": 7,
            b"7k": 7000,
            b"7kb": 7168,
            b"7m": 7000000,
            b"7MB": 7340032,
            b"7g": 7000000000,
            b"7Gb": 7516192768,
            b"-1kb": -1024,
        }
        self.assertEqual(sizes, {text: parse_memory(text) for text in sizes})

    def test_refused(self) -> None:
        """A mistyped unit is refused, instead of being read as bytes."""
        for text in [
            b"",
            b"kb",
            b"1tb",
            b"1.5gb",
            b"1 gb",
            b"+1",
            b"9223372036854775807kb",
            b"1\n",
        ]:
            error = self.assertRaises(ValueError, parse_memory, text)
            self.assertEqual(f"Invalid memory size '{printable(text)}'", str(error))

    @settings(deadline=None)
    @given(st.integers(0, INT64_MAX) | st.integers(0, 2**33 - 1).map(lambda n: n * 1024**3))
    def test_round_trip(self, size_bytes: int) -> None:
        """A size that is written to a file is read back exactly."""
        self.assertEqual(size_bytes, parse_memory(show_memory(size_bytes)))

    def test_largest_exact_unit(self) -> None:
        """Sizes are written in the largest exact unit, which is easier to read."""
        shown = [show_memory(size) for size in (0, 1000, 1024, 64 * 2**20, 2**30, 2**30 + 1024)]
        self.assertEqual([b"0", b"1000", b"1kb", b"64mb", b"1gb", b"1048577kb"], shown)
