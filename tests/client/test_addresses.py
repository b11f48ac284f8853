"""Formats of addresses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address, address, seeds
from disque_tx.client.errors import BadAddress


class SeedsTests(SynchronousTestCase):
    """One address, several, and URLs."""

    def test_forms(self) -> None:
        """All documented formats are accepted."""
        one, two = Address("a", 1), Address("b", 7711)
        for given_, expected in (
            ("a:1", (one,)),
            ("a:1,b", (one, two)),
            (["a:1", "b:7711"], (one, two)),
            ("disque://a:1,b", (one, two)),
            ("disque://a:1/", (one,)),
            ("[::1]:5", (Address("::1", 5),)),
            ("[::1]", (Address("::1", 7711),)),
            ("dns:a:1,b", (Address("a", 1, "dns"), two)),
            ("dns:7711", (Address("dns", 7711),)),
            (
                ["dns:a", "srv:_d._tcp.a"],
                (Address("a", 7711, "dns"), Address("_d._tcp.a", 0, "srv")),
            ),
            ("disque+dns://a:1,b", (Address("a", 1, "dns"), Address("b", 7711, "dns"))),
            ("disque+srv://:pw@_d._tcp.a/", (Address("_d._tcp.a", 0, "srv"),)),
            (["disque+dns://a:1"], (Address("a", 1, "dns"),)),
            ("unix:/run/d.sock,a:1", (Address("/run/d.sock", 0), one)),
        ):
            self.assertEqual(expected, seeds(given_).addresses)

    def test_shown(self) -> None:
        """An address can be parsed from its own text."""
        for text in ("a:1", "[::1]:5", "unix:/run/d.sock", "dns:a:1", "srv:_d._tcp.a"):
            self.assertEqual(text, str(address(text)))

    def test_password(self) -> None:
        """A password may contain any character, and is not shown."""
        found = seeds("disque://:p%40ss:w@a:1,b")
        self.assertEqual(("p@ss:w", 2), (found.password, len(found.addresses)))
        self.assertNotIn("p@ss", repr(found))

    def test_bad(self) -> None:
        """An invalid address is reported at once, without its password."""
        for given_ in (
            "",
            "a:0",
            "a:65536",
            "a:x",
            ":7711",
            "a b:1",
            "redis://:secret@a:1",
            "unix:d",
            "dns:[::1]:1",
            "dns:dns:a",
            "srv:a:1",
            "disque+dns://secret@a",
            ["disque+dns://:secret@a"],
            "/d:1",
        ):
            error = self.assertRaises(BadAddress, seeds, given_)
            self.assertNotIn("secret", str(error))
        for given_ in ("::1", "[::1", "[::1]5", "[[::1]", "[a]:5", "a]:5", "a\0:5"):
            error = self.assertRaises(BadAddress, seeds, given_)
            self.assertNotIn("secret", str(error))
        for given_ in ("disque://secret@a:1", "disque://user:secret@a:1"):
            error = self.assertRaises(BadAddress, seeds, given_)
            self.assertNotIn("secret", str(error))
        self.assertRaises(BadAddress, seeds, [])

    @given(st.text())
    def test_anything(self, text: str) -> None:
        """Every text is either an address, or BadAddress with a message of one line."""
        try:
            found = address(text)
        except BadAddress as error:
            self.assertTrue(str(error).isprintable())
        else:
            self.assertEqual(found, address(str(found)))
