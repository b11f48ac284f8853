"""A request's search for a node, which ends when the client is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.client.errors import ClientError, ConnectionLost
from disque_tx.client.nodes import Search

#: Why a connection ends that was opened while the client was closed.
CLOSED: Final = "the client was closed"


class AsyncSearch(Search):
    """A search that opens no more connections after the end of its client, which nobody would
    close. ``closings``: how often the client was closed so far."""

    __slots__ = ("_began", "_closings")

    def __init__(
        self, now_s: Callable[[], float], patience_s: float, closings: Callable[[], int]
    ) -> None:
        super().__init__(now_s, patience_s)
        self._closings = closings
        self._began = closings()

    @property
    def is_over(self) -> bool:
        """Whether the client was closed since it began."""
        return self._closings() != self._began

    def check(self) -> None:
        """:raises ConnectionLost: the client was closed."""
        if self.is_over:
            raise ConnectionLost("the cluster", CLOSED, False)

    def failed(self, address: str, error: ClientError) -> None:
        """Record a failure.

        :raises CannotConnect, Refused: when ``patience_s`` is over.
        :raises ClientError: the error itself, when the client was closed.
        """
        if self.is_over:
            raise error
        super().failed(address, error)
