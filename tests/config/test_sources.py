"""Where nodes are looked for, as users write it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.sources import NodePlace, Sources, parse_file, parse_place, parse_source


class PlaceTests(SynchronousTestCase):
    """One host with its ports."""

    def test_accepted(self) -> None:
        """Names and addresses, with the ports that are given."""
        for text, expected in (
            ("node-1.example", NodePlace("node-1.example")),
            ("node_1.example.:7712", NodePlace("node_1.example.", 7712)),
            ("10.0.0.1:7712@7000", NodePlace("10.0.0.1", 7712, 7000)),
            ("10.0.0.1@7000", NodePlace("10.0.0.1", 0, 7000)),
            ("[fd00::1]:60000@7000", NodePlace("fd00::1", 60_000, 7000)),
        ):
            self.assertEqual(expected, parse_place(text))

    def test_refused(self) -> None:
        """The error says what is wrong with which word, without control characters."""
        for text, what in (
            ("", "'' is not host, host:port or host:port@busport"),
            ("a b", "'a b' is not host"),
            ("a\n", r"'a\\n' is not host"),
            ("fd00::1", "'fd00::1' is not host"),
            ("[10.0.0.1]", "has neither the name nor the address"),
            ("10.0.0.256", "has neither the name nor the address"),
            ("a..b", "has neither the name nor the address"),
            ("x" * 64, "has neither the name nor the address"),
            ("a:0", "has a port that is not 1 to 65535"),
            ("a:65536", "has a port that is not 1 to 65535"),
            ("a@0", "has a port that is not 1 to 65535"),
            ("a:60000", "needs a bus port"),
        ):
            with self.assertRaisesRegex(ValueError, what):
                parse_place(text)


class SourceTests(SynchronousTestCase):
    """One word of ``cluster-discovery``."""

    def test_accepted(self) -> None:
        """Each kind has what it needs."""
        places = {
            "dns:n.example:7712": (NodePlace("n.example", 7712),),
            "static:a,b:1": (NodePlace("a"), NodePlace("b", 1)),
        }
        for text, expected in places.items():
            self.assertEqual(("", expected), (parse_source(text).name, parse_source(text).places))
        for text, name in (("srv:_d._tcp.n.example", "_d._tcp.n.example"), ("file:/a b", "/a b")):
            self.assertEqual((name, ()), (parse_source(text).name, parse_source(text).places))

    def test_refused(self) -> None:
        """The error names the word."""
        for text, what in (
            ("n.example", "'n.example' begins with none of dns:, srv:, file:, static:"),
            ("dns:", "'dns:' begins with none of"),
            ("srv:n.example:7711", "'srv:n.example:7711' has no name of SRV records"),
            ("file:nodes", "'file:nodes' has no path that begins with /"),
            ("static:a,,b", "'' is not host"),
            ("static:" + ",".join(["a"] * 1_001), "more than 1000 places"),
        ):
            with self.assertRaisesRegex(ValueError, what):
                parse_source(text)


class SourcesTests(SynchronousTestCase):
    """The whole directive."""

    def test_several(self) -> None:
        """Up to sixteen sources are taken, each once; an empty word takes none."""
        words = [f"dns:n{number}.example".encode() for number in range(16)]
        self.assertEqual([word.decode() for word in words], Sources().parse(words))
        with self.assertRaisesRegex(ValueError, "at most 16 sources"):
            Sources().parse([*words, b"dns:more.example"])
        self.assertEqual(["dns:a"], Sources().parse([b"dns:a", b"", b"dns:a"]))
        self.assertEqual([], Sources().parse([b""]))
        self.assertRaises(ValueError, Sources().parse, [])
        with self.assertRaisesRegex(ValueError, "begins with none of"):
            Sources().parse([b"dns:a", b"n.example"])

    def test_written(self) -> None:
        """CONFIG GET and CONFIG REWRITE give back what was set; without sources nothing is
        written."""
        found = ["dns:a", "file:/a b"]
        self.assertEqual(b"dns:a file:/a b", Sources().show(found))
        self.assertEqual(b'"dns:a" "file:/a b"', Sources().line(found))
        self.assertIsNone(Sources().line([]))


class FileTests(SynchronousTestCase):
    """A file of places."""

    def test_lines(self) -> None:
        """Comments and empty lines are no places; an error has the number of its line."""
        text = "# nodes\n\n10.0.0.1 # first\n  b:7712@7000\n"
        self.assertEqual((NodePlace("10.0.0.1"), NodePlace("b", 7712, 7000)), parse_file(text))
        with self.assertRaisesRegex(ValueError, "line 2: 'b c' is not host"):
            parse_file("a\nb c\n")

    def test_long(self) -> None:
        """Of a file that never ends the beginning counts."""
        self.assertEqual(1_000, len(parse_file("a\n" * 2_000)))
