"""How long the names of queues and patterns of names may be, for all commands and protocols.

Longer names of queues come from originals and from logs: their jobs are kept, delivered, listed and
moved away, but no new ones are added to them.
"""

from __future__ import annotations

from typing import Final

from disque_tx.errors import CommandError
from disque_tx.messages.limits import QUEUE_BYTES_MAX
from disque_tx.text.globs import is_plain

#: The longest pattern of a command, in bytes; one that is nothing but a name is as long as that.
GLOB_BYTES_MAX: Final = 256


def check_queue(name: bytes) -> None:
    """Raise ``CommandError`` for a name that is too long for a queue that gets new jobs."""
    if len(name) > QUEUE_BYTES_MAX:
        raise CommandError("ERR", f"Name of a queue longer than {QUEUE_BYTES_MAX} bytes")


def check_glob(what: str, pattern: bytes) -> None:
    """Raise ``CommandError`` for a pattern that is too long. ``what``: begins the error text."""
    if len(pattern) > GLOB_BYTES_MAX and not is_plain(pattern):
        raise CommandError("ERR", f"{what} longer than {GLOB_BYTES_MAX} bytes")
    if len(pattern) > QUEUE_BYTES_MAX:
        raise CommandError("ERR", f"{what} longer than {QUEUE_BYTES_MAX} bytes")
