"""SLOWLOG: which requests were slow, without their passwords."""

from __future__ import annotations

from disque_tx.commands.base.arguments import mask
from disque_tx.commands.base.slowlog import shorten
from disque_tx.commands.server.diagnosis import slowlog
from tests.commands.desk import OK, DeskCase


class SlowLogTests(DeskCase):
    """The command, on requests that the server recorded."""

    def setUp(self) -> None:
        super().setUp()
        self.log = self.server.slowlog
        self.log.slower_than_us = 100

    def test_get(self) -> None:
        """Slow requests are listed newest first, with IDs that never repeat."""
        self.log.record([b"PING"], 7, 99)
        self.log.record([b"QLEN", b"q"], 8, 100)
        self.log.record([b"TIME"], 9, 500)
        self.assertEqual(2, self.call(slowlog, b"SLOWLOG", b"LEN"))
        self.assertEqual(
            [[1, 9, 500, [b"TIME"]], [0, 8, 100, [b"QLEN", b"q"]]],
            self.call(slowlog, b"SLOWLOG", b"GET"),
        )
        self.assertEqual(OK, self.call(slowlog, b"slowlog", b"reset"))
        self.log.record([b"PING"], 10, 100)
        self.assertEqual([[2, 10, 100, [b"PING"]]], self.call(slowlog, b"SLOWLOG", b"GET"))

    def test_count(self) -> None:
        """Ten entries by default; a negative count means all."""
        for second in range(12):
            self.log.record([b"PING"], second, 100)
        for words, expected in (([], 10), ([b"0"], 0), ([b"3"], 3), ([b"-1"], 12)):
            got = self.call(slowlog, b"SLOWLOG", b"GET", *words)
            assert isinstance(got, list)
            self.assertEqual(expected, len(got))

    def test_off_and_everything(self) -> None:
        """A negative limit records nothing, zero records everything."""
        self.log.slower_than_us = -1
        self.log.record([b"PING"], 1, 10**9)
        self.assertEqual(0, len(self.log.entries))
        self.log.slower_than_us = 0
        self.log.record([b"PING"], 1, 0)
        self.assertEqual(1, len(self.log.entries))

    def test_trimmed(self) -> None:
        """A smaller maximum length takes effect, even when the next request was fast."""
        for second in range(5):
            self.log.record([b"PING"], second, 100)
        self.log.len_max = 2
        self.log.record([b"PING"], 9, 0)
        self.assertEqual([4, 3], [entry.unix_s for entry in self.log.entries])
        self.log.len_max = -1
        self.log.record([b"PING"], 9, 0)
        self.assertEqual(0, len(self.log.entries))

    def test_length_set(self) -> None:
        """CONFIG SET slowlog-max-len takes effect at once, even on an idle server."""
        for second in range(5):
            self.log.record([b"PING"], second, 100)
        for length, left in ((9, 5), (2, 2), (-1, 0)):
            self.log.set_length(length)
            self.assertEqual(left, self.call(slowlog, b"SLOWLOG", b"LEN"))
        self.log.record([b"PING"], 9, 100)
        self.assertEqual(0, self.call(slowlog, b"SLOWLOG", b"LEN"))

    def test_shortened(self) -> None:
        """One huge request cannot fill the memory through the log."""
        self.assertEqual([b"x" * 128], shorten([b"x" * 128]))
        self.assertEqual([b"x" * 128 + b"... (1 more bytes)"], shorten([b"x" * 129]))
        self.assertEqual([b"x" * 128 + b"... (2 more bytes)"], shorten([b"x" * 130]))
        self.assertEqual([b"x"] * 32, shorten([b"x"] * 32))
        self.assertEqual([b"x"] * 31 + [b"... (2 more arguments)"], shorten([b"x"] * 33))
        self.assertEqual([b"x"] * 31 + [b"... (3 more arguments)"], shorten([b"x"] * 34))

    def test_password_hidden(self) -> None:
        """A slow AUTH does not show its password, whatever it was renamed to."""
        self.log.record([b"AUTH", b"secret"], 1, 100)
        self.log.record([b"login", b"secret"], 1, 100, b"auth")
        self.assertEqual(
            [[b"login", b"(redacted)"], [b"AUTH", b"(redacted)"]],
            [entry.words for entry in self.log.entries],
        )

    def test_refusals(self) -> None:
        """Invalid subcommands get the error that clients expect."""
        line = b"ERR Unknown SLOWLOG subcommand or wrong # of args. Try GET, RESET, LEN."
        for words in ([b"FOO"], [b"GET", b"1", b"2"], [b"LEN", b"x"], [b"RESET", b"x"]):
            self.assert_refused(line, slowlog, b"SLOWLOG", *words)
        line = b"ERR value is not an integer or out of range"
        self.assert_refused(line, slowlog, b"SLOWLOG", b"GET", b"x")


class MaskTests(DeskCase):
    """Which arguments are passwords."""

    def test_masked(self) -> None:
        """Passwords are hidden in every command that takes one."""
        hidden = b"(redacted)"
        cases = [
            ([b"auth", b"p"], [b"auth", hidden]),
            (
                [b"CONFIG", b"set", b"RequirePass", b"p"],
                [b"CONFIG", b"set", b"RequirePass", hidden],
            ),
            (
                [b"HELLO", b"3", b"Auth", b"u", b"p", b"SETNAME", b"n"],
                [b"HELLO", b"3", b"Auth", hidden, hidden, b"SETNAME", b"n"],
            ),
            ([b"HELLO", b"3", b"AUTH", b"u"], [b"HELLO", b"3", b"AUTH", hidden]),
        ]
        for argv, expected in cases:
            self.assertEqual(expected, mask(argv))

    def test_not_masked(self) -> None:
        """Everything else is shown as it was sent."""
        for argv in ([b"CONFIG", b"SET", b"hz", b"auth"], [b"CONFIG", b"GET", b"requirepass"]):
            self.assertIs(argv, mask(argv))
        argv = [b"QLEN", b"auth"]
        self.assertIs(argv, mask(argv))
