"""The daemon's own reactor: Twisted's epoll reactor, whose loop is in compiled code while a node is
served.

It waits in one epoll object for the sockets of clients and other nodes, and for Twisted's own
poller, which is one more descriptor in it. Twisted's code runs only when that descriptor is ready,
a timed call is due, or a call was queued in a turn. Without a node it is Twisted's reactor and
nothing else. ``disque-server`` installs it; elsewhere it is chosen by ``twistd --reactor=disque``.
"""

from __future__ import annotations

import math
import select
import signal
from collections.abc import Callable
from typing import Any

from twisted.internet.base import DelayedCall
from twisted.internet.epollreactor import EPollReactor
from zope.interface import implementer

from disque_tx.services.turns.interfaces import IRoundsReactor
from disque_tx.services.turns.rounds import Rounds


@implementer(IRoundsReactor)
class DisqueReactor(EPollReactor):
    """At most one node is attached; the sockets of others are served as by any reactor."""

    _rounds: Rounds | None = None

    def attach(self, rounds: Rounds, poller: select.epoll) -> bool:
        """Run the rounds of a node; ``False`` when those of another one are run already."""
        if self._rounds is not None:
            return False
        poller.register(self._poller.fileno(), select.EPOLLIN)
        rounds.reactor_fd = self._poller.fileno()
        self._rounds = rounds
        return True

    def detach(self, rounds: Rounds) -> None:
        """Be Twisted's reactor again; the poller is closed next."""
        if self._rounds is rounds:
            rounds.interrupted = True
            self._rounds = None

    # -- the loop ----------------------------------------------------------------------------

    def doPoll(self, timeout: float | None) -> None:
        """Serve the node until there is something to do for Twisted, and do that."""
        rounds = self._rounds
        if rounds is None or rounds.in_turn():  # within a turn, somebody calls iterate()
            super().doPoll(timeout)
        elif rounds.run(-1 if timeout is None else math.ceil(timeout * 1000)):
            super().doPoll(0)

    doIteration = doPoll

    def mainLoop(self) -> None:
        """Run until stopped."""
        restore = self._wake_on_signals()
        try:
            super().mainLoop()
        finally:
            restore()

    def _wake_on_signals(self) -> Callable[[], object]:
        """Let every signal end the waiting: handlers are Python functions, which run only once
        interpreted code does. Returns what takes that back."""
        try:
            before = signal.set_wakeup_fd(self.waker.o, warn_on_full_buffer=False)
        except ValueError:  # not in the main thread, where no handler runs
            return lambda: None
        if before != -1:  # Twisted's own, which is one of the reactor's readers
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)
            return lambda: None
        return lambda: signal.set_wakeup_fd(-1)

    def _interrupt(self) -> None:
        """What happens in this turn concerns the reactor: it gets control after the turn."""
        if self._rounds is not None:
            self._rounds.interrupted = True

    # -- what turns may do -------------------------------------------------------------------

    def callLater(
        self, delay: float, callable: Callable[..., Any], *args: object, **kw: object
    ) -> DelayedCall:
        """Like Twisted's."""
        self._interrupt()
        return super().callLater(delay, callable, *args, **kw)

    def _moveCallLaterSooner(self, delayedCall: DelayedCall) -> None:
        self._interrupt()
        super()._moveCallLaterSooner(delayedCall)

    def stop(self) -> None:
        """Like Twisted's."""
        self._interrupt()
        super().stop()

    def crash(self) -> None:
        """Like Twisted's."""
        self._interrupt()
        super().crash()


def install() -> None:
    """Make this the global reactor; before anything imports ``twisted.internet.reactor``."""
    from twisted.internet.main import installReactor

    installReactor(DisqueReactor())
