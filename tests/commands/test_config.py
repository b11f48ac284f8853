"""CONFIG, down to the edge of the process."""

from __future__ import annotations

from disque_tx.commands.config import config
from disque_tx.errors import CommandError
from tests.commands.desk import OK, DeskCase


class ConfigTests(DeskCase):
    """Sub-commands and their counts."""

    def test_get(self) -> None:
        """Names with their values, in RESP2 in turn; nothing matching is empty."""
        expected = {b"requirepass": b"", b"maxmemory": b"1073741824"}
        self.assertEqual(expected, self.call(config, b"CONFIG", b"get", b"*"))
        self.assertEqual({}, self.call(config, b"CONFIG", b"GET", b"nosuch"))

    def test_set(self) -> None:
        """What was set is what is read."""
        self.assertEqual(OK, self.call(config, b"CONFIG", b"SET", b"MaxMemory", b"10mb"))
        self.assertEqual({b"maxmemory": b"10mb"}, self.call(config, b"CONFIG", b"GET", b"maxm*"))
        line = b"ERR Unsupported CONFIG parameter: foo"
        self.assert_refused(line, config, b"CONFIG", b"SET", b"foo", b"bar")

    def test_resetstat(self) -> None:
        """Counters start again, inside and outside; the slow log stays."""
        self.server.stats.commands_processed = 5
        self.server.slowlog.note([b"PING"], 1, 10**6)
        command = self.server.registry.table[0]
        command.calls, command.ns = 3, 4
        self.assertEqual(OK, self.call(config, b"CONFIG", b"RESETSTAT"))
        self.assertEqual(
            (0, 0, 0), (self.server.stats.commands_processed, command.calls, command.ns)
        )
        self.assertEqual(["reset statistics"], self.control.performed)
        self.assertEqual(1, len(self.server.slowlog.entries))

    def test_rewrite(self) -> None:
        """The file is written, or the reason why it cannot be is passed on."""
        self.assertEqual(OK, self.call(config, b"CONFIG", b"REWRITE"))
        self.assertEqual(["rewrite config"], self.control.performed)
        self.control.refusal = CommandError("ERR", "The server is running without a config file")
        line = b"ERR The server is running without a config file"
        self.assert_refused(line, config, b"CONFIG", b"REWRITE")

    def test_counts(self) -> None:
        """A wrong count names the sub-command as it was typed, without breaking the line."""
        for words in ([b"GeT"], [b"SET", b"hz"], [b"RESETSTAT", b"x"], [b"REWRITE", b"x"]):
            line = b"ERR Wrong number of arguments for CONFIG " + words[0]
            self.assert_refused(line, config, b"CONFIG", *words)
        line = b"ERR CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE"
        self.assert_refused(line, config, b"CONFIG", b"FOO")
