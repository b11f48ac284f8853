"""COMMAND: the table as clients see it."""

from __future__ import annotations

from disque_tx.commands.command import command
from disque_tx.commands.values import Status
from tests.commands.desk import DeskCase

READONLY, LOADING, FAST = Status(b"readonly"), Status(b"loading"), Status(b"fast")
AUTH = [b"auth", 2, [READONLY, LOADING, FAST], 0, 0, 0]
HELLO = [b"hello", 1, [READONLY, FAST], 0, 0, 0]


class CommandTests(DeskCase):
    """All, some, and how many."""

    def test_all(self) -> None:
        """Every command that can be called is described."""
        table = self.call(command, b"COMMAND")
        assert isinstance(table, list)
        self.assertEqual(32, len(table))
        self.assertIn(AUTH, table)
        self.assertEqual(32, self.call(command, b"COMMAND", b"count"))

    def test_info(self) -> None:
        """Unknown names are null, in the place where they were asked for."""
        words = [b"INFO", b"AUTH", b"nosuch", b"hello"]
        self.assertEqual([AUTH, None, HELLO], self.call(command, b"COMMAND", *words))
        self.assertEqual([], self.call(command, b"COMMAND", b"INFO"))

    def test_renamed(self) -> None:
        """A renamed command is found by its new name and tells its original one."""
        self.server.registry.rename(b"auth", b"login")
        self.server.registry.rename(b"hello", b"")
        self.assertEqual(31, self.call(command, b"COMMAND", b"COUNT"))
        words = [b"INFO", b"login", b"auth", b"hello"]
        self.assertEqual([AUTH, None, None], self.call(command, b"COMMAND", *words))

    def test_refused(self) -> None:
        """Everything else is refused with the original's text."""
        line = b"ERR Unknown subcommand or wrong number of arguments."
        for words in ([b"FOO"], [b"COUNT", b"x"], [b""]):
            self.assert_refused(line, command, b"COMMAND", *words)
