"""The words of a line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.beanstalk import requests


class RequestTests(SynchronousTestCase):
    """Lines that are nearly right are refused, or else a number would mean another job."""

    def test_names(self) -> None:
        """Every request is found by its name; what follows counts as beanstalkd does it."""
        for number, name in enumerate(requests.NAMES, 1):
            plain = number >= requests.RESERVE
            line = name if plain else name + b" rest"
            self.assertEqual((number, b"" if plain else b"rest"), requests.request_of(line))
        for line in (b"reserve 1", b"statsx", b"stats-job", b"list-tubes-x", b"peek-ready "):
            self.assertEqual(requests.MALFORMED, requests.request_of(line)[0], line)
        for line in (b"", b" put", b"put", b"Reserve", b"use", b"delete"):
            self.assertEqual(requests.UNKNOWN, requests.request_of(line)[0], line)
        self.assertEqual(requests.QUIT, requests.request_of(b"quit now")[0])

    @given(st.lists(st.integers(0, requests.U32_MAX), min_size=1, max_size=4), st.integers(1, 3))
    def test_numbers(self, values: list[int], spaces: int) -> None:
        """Numbers are read as written, with any number of spaces before each."""
        text = b"".join(b" " * spaces + b"%d" % value for value in values)
        self.assertEqual(values, requests.numbers(text, len(values)))
        self.assertIsNone(requests.numbers(text, len(values) + 1))
        self.assertIsNone(requests.numbers(text + b" ", len(values)))
        self.assertIsNone(requests.numbers(text + b"x", len(values)))

    def test_no_numbers(self) -> None:
        """Signs, other digits and numbers that are too large are refused."""
        for text in (
            b"",
            b" ",
            b"-1",
            b"+1",
            b"0x1",
            b"1.0",
            b"4294967296",
            b"9" * 30,
            b"\xd9\xa1",
        ):
            self.assertIsNone(requests.numbers(text, 1), text)

    def test_job_numbers(self) -> None:
        """IDs have 64 bits."""
        for text, number in ((b"1", 1), (b" 77", 77), (b"0", 0)):
            self.assertEqual(number, requests.job_number(text))
        self.assertGreater(requests.job_number(b"18446744073709551615"), 1 << 50)
        for text in (b"", b"x", b"1 ", b"1 2", b"-1", b"18446744073709551616", b"1\0"):
            self.assertEqual(-1, requests.job_number(text), text)
        self.assertEqual((5, [6, 7]), requests.job_number_and(b" 5  6 7", 2))
        self.assertIsNone(requests.job_number_and(b"5", 1))
