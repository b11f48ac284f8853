"""Texts that differ by numbers and names only."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.text.similar import similar


class SimilarTests(SynchronousTestCase):
    """What is taken out of a reason, and what stays."""

    def test_taken_out(self) -> None:
        """Numbers, identifiers and addresses do not make two failures of one cause different."""
        for text, expected in (
            ("card of customer 4711 declined", "card of customer … declined"),
            ("timeout after 30.5 s", "timeout after … s"),
            ("no host at 10.0.0.7:7711, given up", "no host at …, given up"),
            ("unknown user ada@example.com.", "unknown user …."),
            ("order 0x7f12ac: not found", "order …: not found"),
            ("job D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1 gone", "job … gone"),
            ("rows 1, 2, 3 of 7", "rows … of …"),
            ("two\n  lines", "two lines"),
        ):
            self.assertEqual(expected, similar(text))

    def test_kept(self) -> None:
        """Words stay: failures with different words are different ones."""
        for text in ("KeyError: 'name'", "PaymentDeclined: no funds", "", "naïve, but ok"):
            self.assertEqual(text, similar(text))

    def test_long(self) -> None:
        """A long text costs no more than its beginning."""
        self.assertEqual(200, len(similar("x" * 1_000_000)))
