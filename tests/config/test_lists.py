"""Directives of several words."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.lists import Addresses, Hosts, Networks, Prefixes, WaitFor, WaitForNodes


class LineTests(SynchronousTestCase):
    """What CONFIG REWRITE writes, and CONFIG GET shows."""

    def test_words(self) -> None:
        """A file that was rewritten has the same words, quoted where a prefix needs it; nothing is
        no line, for the default is nothing."""
        self.assertEqual(b"a.example b", Hosts().line(["a.example", "b"]))
        self.assertEqual(b"::1 127.0.0.1", Addresses().line(["::1", "127.0.0.1"]))
        self.assertEqual(b"10.0.0.0/8 ::1", Networks().line(["10.0.0.0/8", "::1"]))
        self.assertEqual(b'"a b" "c"', Prefixes().line(["a b", "c"]))
        self.assertEqual(b"a b c", Prefixes().show(["a b", "c"]))
        for kind in (Hosts(), Addresses(), Networks(), Prefixes()):
            self.assertIsNone(kind.line([]))


class LimitTests(SynchronousTestCase):
    """How much of a thing may be said."""

    def test_addresses(self) -> None:
        """A node listens on up to 16 addresses."""
        words = [b"127.0.0.%d" % number for number in range(1, 17)]
        self.assertEqual(16, len(Addresses().parse(words)))
        self.assertRaises(ValueError, Addresses().parse, [*words, b"127.0.0.17"])
        self.assertRaises(ValueError, Addresses().parse, [])

    def test_waiting(self) -> None:
        """A node waits for up to a thousand nodes, and up to a day."""
        kind = WaitForNodes()
        for words, expected in (
            ([b"0"], WaitFor(0, 0)),
            ([b"1000", b"86400"], WaitFor(1_000, 86_400)),
            ([b"3", b"0"], WaitFor(3, 0)),
        ):
            self.assertEqual(expected, kind.parse(words))
        for words in ([], [b"1001"], [b"-1"], [b"1", b"86401"], [b"1", b"-1"], [b"1"] * 3):
            self.assertRaises(ValueError, kind.parse, words)
