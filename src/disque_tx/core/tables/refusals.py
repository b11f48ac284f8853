"""Registers that could not be taken, by the node that sent them."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

#: Nodes told apart; of others it is only known how many there were in all.
SENDERS_MAX: Final = 1_000


class Refusals:
    """``total``: all of them; ``by_sender``: by the ID of the node."""

    __slots__ = ("by_sender", "total")

    def __init__(self) -> None:
        self.total: i64 = 0
        self.by_sender: dict[bytes, int] = {}

    def count(self, sender: bytes) -> None:
        """Count a refused register of this sender."""
        self.total += 1
        if sender in self.by_sender or len(self.by_sender) < SENDERS_MAX:
            self.by_sender[sender] = self.by_sender.get(sender, 0) + 1
