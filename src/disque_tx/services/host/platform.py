"""What the services of one process share of the world outside, and know of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from disque_tx.engine.interfaces import IFiles
from disque_tx.services.guesses import Guesses
from disque_tx.services.host.log import DaemonLog
from disque_tx.services.turninterfaces import IClock


@attrs.frozen
class Platform:
    """``reactor``: of Twisted, with its timers and sockets. ``in_thread``: calls a function that
    blocks, with its arguments, in a thread of the reactor's pool. ``guesses``: the wrong
    passwords that clients have sent."""

    reactor: Any
    clock: IClock
    files: IFiles
    log: DaemonLog
    in_thread: Callable[..., Deferred[Any]]
    guesses: Guesses = attrs.field(init=False)

    @guesses.default
    def _no_guesses(self) -> Guesses:
        return Guesses(self.clock.steady_ms)
