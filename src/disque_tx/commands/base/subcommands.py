"""Tables of sub-commands: their words and their handlers."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.context import Handler, Server
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError

#: For sub-commands that take any number of words.
ANY: Final = 1 << 30


class Subcommand:
    """``words_min``, ``words_max``: words of the request, with command and sub-command."""

    __slots__ = ("handler", "words_min", "words_max")

    def __init__(self, handler: Handler, words_min: int, words_max: int) -> None:
        self.handler: Handler = handler
        self.words_min: int = words_min
        self.words_max: int = words_max

    def accepts(self, words: int) -> bool:
        """Whether the request has the right number of words."""
        return self.words_min <= words <= self.words_max


def run_subcommand(
    table: dict[bytes, Subcommand],
    server: Server,
    client: Client,
    argv: list[bytes],
    refusal: CommandError,
) -> None:
    """Run the sub-command; raises ``refusal`` when none has that name and number of words."""
    found = table.get(argv[1].lower())
    if found is None or not found.accepts(len(argv)):
        raise refusal
    found.handler(server, client, argv)
