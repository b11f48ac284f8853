"""Kinds of values in the configuration."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.kinds import NumberOrAuto, Text


class ShownTests(SynchronousTestCase):
    """What CONFIG GET shows, and what CONFIG REWRITE writes."""

    def test_auto(self) -> None:
        """A number that is left to the node is shown as that word."""
        kind = NumberOrAuto("no number")
        for shown, value in ((b"auto", 0), (b"3", 3)):
            self.assertEqual((shown, shown), (kind.show(value), kind.line(value)))
            self.assertEqual(value, kind.parse([shown]))
        self.assertEqual(0, kind.parse([b"AUTO"]))
        self.assertRaisesRegex(ValueError, "no number", kind.parse, [b"-1"])

    def test_empty_text(self) -> None:
        """An empty text is written as one, unless it means that there is none."""
        self.assertEqual(b'""', Text().line(""))
        self.assertIsNone(Text(optional=True).line(""))
        self.assertEqual(b'"x"', Text(optional=True).line("x"))
