"""How long requests may take: looking for a node, and waiting for jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.client.errors import CannotConnect, ClientError, ConnectionLost, Refused

#: A GETJOB waits that long at one node; a node that went silent is found out that soon.
WAIT_MS_MAX: Final = 10_000


def whole_ms(timeout_s: float | None) -> int:
    """A time-out as GETJOB takes it: 0 for ever, and never 0 because it is short."""
    return 0 if timeout_s is None else max(1, int(timeout_s * 1000))


class Search:
    """How long one request has looked for a node that serves, and what it met.

    ``patience_s``: how long it looks, from its first failure on. ``notice``: is told, for people,
    when it begins to look.
    """

    __slots__ = ("_deadline_s", "_notice", "_now_s", "_patience_s", "_tried")

    def __init__(
        self,
        now_s: Callable[[], float],
        patience_s: float,
        notice: Callable[[str], object] | None = None,
    ) -> None:
        self._now_s = now_s
        self._patience_s = patience_s
        self._notice = notice
        self._deadline_s: float | None = None
        self._tried: dict[str, str] = {}

    def failed(self, address: str, error: ClientError) -> None:
        """Note a failure; raise when there were enough.

        :raises CannotConnect, Refused: when patience is over.
        """
        self._tried[address] = error.reason if isinstance(error, ConnectionLost) else str(error)
        if self._deadline_s is None:
            self._deadline_s = self._now_s() + self._patience_s
            if self._notice is not None and self._patience_s > 0:
                self._notice(
                    f"{address} does not serve ({self._tried[address].rstrip('.')}). Looking for a"
                    f" node that does, for up to {self._patience_s:g} s."
                )
        if self._now_s() >= self._deadline_s:
            if isinstance(error, Refused):
                raise error
            raise CannotConnect(self._tried) from error


class Wait:
    """A wait for jobs, made of GETJOBs that wait for :data:`WAIT_MS_MAX` at most.

    ``timeout_ms``: of the whole, 0 for ever.
    """

    __slots__ = ("_deadline_s", "_now_s")

    def __init__(self, now_s: Callable[[], float], timeout_ms: int) -> None:
        self._now_s = now_s
        self._deadline_s = now_s() + timeout_ms / 1000 if timeout_ms else None

    def next_ms(self) -> int:
        """How long the next GETJOB waits; 0 when time is up."""
        if self._deadline_s is None:
            return WAIT_MS_MAX
        left_ms = round((self._deadline_s - self._now_s()) * 1000)
        return max(0, min(left_ms, WAIT_MS_MAX))
