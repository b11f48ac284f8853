"""Lines and bodies out of bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.beanstalk.intake import (
    BODY,
    LINE,
    LONG_LINE,
    NO_BODY,
    NOTHING,
    SKIPPED,
    Intake,
)
from disque_tx.protocols.beanstalk.requests import LINE_BYTES_MAX


def found(pieces: list[bytes]) -> list[tuple[int, bytes]]:
    """What is found in these; the lines ``B n`` and ``S n`` announce bodies."""
    intake, all_found = Intake(), []
    for piece in pieces:
        intake.feed(piece)
        while (what := intake.next()) != NOTHING:
            taken = intake.taken if what in (LINE, BODY) else b""
            all_found.append((int(what), taken))
            if what == LINE and taken[:2] == b"B ":
                intake.expect_body(int(taken[2:]))
            elif what == LINE and taken[:2] == b"S ":
                intake.skip_body(int(taken[2:]))
    return all_found


class IntakeTests(SynchronousTestCase):
    """Networks split bytes anywhere."""

    @given(st.lists(st.integers(0, 700), max_size=8))
    def test_any_split(self, cuts: list[int]) -> None:
        """Where bytes are split makes no difference."""
        data = b"one\r\nB 4\r\na\r\nb\r\nS 300\r\n" + b"x" * 300 + b"\r\n\r\n" + b"l" * 250
        data += b"\r\nB 1\r\nabcB 0\r\n\r\nlast\r\n"
        places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
        pieces = [data[a:b] for a, b in pairwise(places)]
        expected = [
            (LINE, b"one"), (LINE, b"B 4"), (BODY, b"a\r\nb"), (LINE, b"S 300"), (SKIPPED, b""),
            (LINE, b""), (LONG_LINE, b""), (LINE, b"B 1"), (NO_BODY, b""), (LINE, b"B 0"),
            (BODY, b""), (LINE, b"last"),
        ]  # fmt: skip
        self.assertEqual(expected, found(pieces))

    def test_longest_line(self) -> None:
        """A line has 224 bytes with its end, however it arrives."""
        fits = b"f" * (LINE_BYTES_MAX - 2) + b"\r\n"
        for pieces in ([fits + b"f" + fits], [fits, b"f", fits[:-1], fits[-1:]]):
            self.assertEqual([(LINE, fits[:-2]), (LONG_LINE, b"")], found(pieces))

    def test_endless_line(self) -> None:
        """A client that never ends its line takes no memory."""
        intake = Intake()
        for _ in range(100):
            intake.feed(b"z" * 10_000)
            self.assertEqual(NOTHING, intake.next())
        self.assertLessEqual(intake.unread(), LINE_BYTES_MAX)
