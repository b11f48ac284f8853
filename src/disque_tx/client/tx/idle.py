"""The idle timeout of a connection.

It uses one timer per connection, not one per request: the timer runs out when the timeout would
expire if nothing arrived, or after the check interval, and is set again if something did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class IdleTimeout:
    """Calls ``expired`` with the timeout, in seconds, when nothing has arrived for that long.

    ``allowed_s``: returns the timeout that applies now; ``None`` while no reply is expected,
    infinite while the node may wait forever. ``check_interval_s``: the longest time between
    checks of ``allowed_s``.
    """

    def __init__(
        self,
        reactor: Any,
        check_interval_s: float,
        allowed_s: Callable[[], float | None],
        expired: Callable[[float], None],
    ) -> None:
        self._reactor = reactor
        self._check_interval_s = check_interval_s
        self._allowed_s = allowed_s
        self._expired = expired
        self._restarted_s = 0.0
        self._timer: Any = None

    def restart(self) -> None:
        """Count from now on: something has arrived, or a reply is expected only now."""
        self._restarted_s = self._reactor.seconds()

    def start(self) -> None:
        """Start the timer, unless it runs. The check stops by itself when no reply is expected."""
        if self._timer is None:
            self._timer = self._reactor.callLater(self._check_interval_s, self._check)

    def stop(self) -> None:
        """Stop the timer."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _check(self) -> None:
        self._timer = None
        allowed_s = self._allowed_s()
        if allowed_s is None:
            return
        left_s = self._restarted_s + allowed_s - self._reactor.seconds()
        if left_s <= 0:
            self._expired(allowed_s)
        else:
            # What is allowed may be less soon: a wait is over, and another request follows.
            delay_s = min(left_s, self._check_interval_s)
            self._timer = self._reactor.callLater(delay_s, self._check)
