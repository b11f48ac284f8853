"""What a step wants done by the outside: the runtime performs it after the whole batch.

Plain lists that are reused: this is the hot path. The order in which the runtime performs them is
fixed: the log first, then the bus, then the replies (DESIGN section 3).
"""

from __future__ import annotations

from disque_tx.core.client import Client
from disque_tx.messages import LogSink


class Outbox:
    """``log``: where records go, ``None`` while nothing is recorded. ``touched``: clients with
    replies to write or a connection to close. ``resumed``: clients that were just unblocked, whose
    waiting input must be looked at."""

    __slots__ = ("log", "touched", "resumed")

    def __init__(self) -> None:
        self.log: LogSink | None = None
        self.touched: list[Client] = []
        self.resumed: list[Client] = []

    def touch(self, client: Client) -> None:
        """The client has something to write, or is to be closed; any number of times."""
        if not client.touched:
            client.touched = True
            self.touched.append(client)
