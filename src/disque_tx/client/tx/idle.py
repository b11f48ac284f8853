"""How long a node may be silent.

One delayed call per connection looks after that, not one per request: it comes when the node would
have been silent for too long if nothing were heard of it, and comes again if something was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


class Silence:
    """``allowed_s``: asked how long the node may be silent now; ``None`` while nothing is expected
    of it, infinite while it may wait for ever. ``over``: told how long it was allowed.

    ``look_s``: how often to look at least.
    """

    def __init__(
        self,
        reactor: Any,
        look_s: float,
        allowed_s: Callable[[], float | None],
        over: Callable[[float], None],
    ) -> None:
        self._reactor = reactor
        self._look_s = look_s
        self._allowed_s = allowed_s
        self._over = over
        self._since_s = 0.0
        self._timer: Any = None

    def broken(self) -> None:
        """Something was heard, or silence only begins to count now."""
        self._since_s = self._reactor.seconds()

    def watch(self) -> None:
        """Look after it from now on, as long as something is expected."""
        if self._timer is None:
            self._timer = self._reactor.callLater(self._look_s, self._look)

    def stop(self) -> None:
        """Look no more."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _look(self) -> None:
        self._timer = None
        allowed_s = self._allowed_s()
        if allowed_s is None:
            return
        left_s = self._since_s + allowed_s - self._reactor.seconds()
        if left_s <= 0:
            self._over(allowed_s)
        else:
            delay_s = left_s if math.isfinite(left_s) else self._look_s
            self._timer = self._reactor.callLater(delay_s, self._look)
