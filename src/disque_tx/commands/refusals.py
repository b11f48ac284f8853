"""Texts that several commands refuse with, and how they quote a request (client protocol, 4)."""

from __future__ import annotations

from disque_tx.errors import CommandError


def shown(word: bytes) -> str:
    """A word of the request as an error text quotes it: up to its first NUL."""
    return word.partition(b"\0")[0].decode("latin-1")


def wrong_arguments(name: bytes) -> CommandError:
    """The refusal of a wrong number of words; ``name``: the original lower-case command name."""
    return CommandError("ERR", f"wrong number of arguments for '{name.decode('latin-1')}' command")
