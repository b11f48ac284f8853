"""Errors that become replies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import (
    CommandError,
    ConfigError,
    DisqueError,
    LocalError,
    PeerError,
    syntax_error,
)
from tests import profiles  # noqa: F401


class CommandErrorTests(SynchronousTestCase):
    """The reply of a refused request (client protocol, section 23)."""

    def test_reply(self) -> None:
        """Clients match the code, people read the text; a code without text has no trailing
        blank."""
        self.assertEqual(b"MAXLEN too long", CommandError("MAXLEN", "too long").reply())
        self.assertEqual(b"ERR", CommandError("ERR", "").reply())
        self.assertEqual(b"ERR syntax error", syntax_error().reply())

    @given(st.binary())
    def test_reply_is_one_line(self, word: bytes) -> None:
        """Part of the request that is quoted in the error cannot forge a second reply."""
        line = CommandError("ERR", f"unknown '{word.decode('latin-1')}'").reply()
        expected = word.replace(b"\r", b" ").replace(b"\n", b" ").replace(b"\0", b" ")
        self.assertEqual(b"ERR unknown '" + expected + b"'", line)

    def test_text_outside_latin_1(self) -> None:
        """An error text of the operating system in any script can be sent."""
        self.assertEqual(b"ERR no ? left", CommandError("ERR", "no \u20ac left").reply())


class HierarchyTests(SynchronousTestCase):
    """Exception classes show who caused the error."""

    def test_base(self) -> None:
        """One ``except`` catches all exceptions that this package raises deliberately."""
        for error in (LocalError, PeerError, CommandError, ConfigError):
            self.assertTrue(issubclass(error, DisqueError), error)

    def test_silent(self) -> None:
        """A peer is sent the error text unless the error forbids it."""
        self.assertFalse(PeerError("x").silent)
        self.assertTrue(PeerError("x", silent=True).silent)
