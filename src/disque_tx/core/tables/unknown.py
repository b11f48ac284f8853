"""Registers that other nodes sent and that this one refused, or that this version has no use for:
how many of the latter are kept.

Nodes of a later version may know settings that this one does not. They are kept and passed on, so
that a node that is upgraded has them at once; but a member cannot fill the table with them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.tables.registers import Key

#: Nodes told apart; of others it is only known how many there were in all.
SENDERS_MAX: Final = 1_000
#: Those that came from one node, and all of them.
SENDER_MAX: Final = 2_500
UNKNOWN_MAX: Final = 10_000


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


class Unknown:
    """The registers by key, in the order in which they came. ``dropped``: how many were one too
    many."""

    __slots__ = ("_by_sender", "_senders", "dropped")

    def __init__(self) -> None:
        self.dropped: int = 0
        self._senders: OrderedDict[Key, bytes] = OrderedDict()
        self._by_sender: dict[bytes, OrderedDict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._senders)

    def add(self, key: Key, sender: bytes) -> Key | None:
        """Note one that came from a node; which one has to go for it, ``None`` for none."""
        if key in self._senders:
            return None
        self._senders[key] = sender
        of_sender = self._by_sender.get(sender)
        if of_sender is None:
            of_sender = self._by_sender[sender] = OrderedDict()
        of_sender[key] = None
        oldest: Key | None = None
        if len(of_sender) > SENDER_MAX:
            oldest = next(iter(of_sender))
        elif len(self._senders) > UNKNOWN_MAX:
            oldest = next(iter(self._senders))
        if oldest is not None:
            self.dropped += 1
            self.forget(oldest)
        return oldest

    def forget(self, key: Key) -> None:
        """Forget a key that has left the table, or that this version knows."""
        sender = self._senders.pop(key, None)
        if sender is not None:
            of_sender = self._by_sender[sender]
            del of_sender[key]
            if not of_sender:
                del self._by_sender[sender]
