"""A node that is about to be stopped gives its jobs away first (``shutdown-evacuates``).

It leaves the cluster for that. The nodes file does not say so once it has stopped: started again,
it is a member as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from disque_tx.config.settings import Settings
from disque_tx.core.healing.healing import NO_NODE
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.turns.runtime import Runtime
from disque_tx.text.counts import counted

_POLL_S: Final = 0.25
#: For how long a node waits for another one that takes jobs.
_ALONE_S: Final = 10.0


class ShutdownEvacuation:
    """``over``: the node is empty, or there was no more time."""

    def __init__(self, runtime: Runtime, settings: Settings, reactor: Any, log: DaemonLog) -> None:
        self.over = False
        self._runtime = runtime
        self._settings = settings
        self._reactor = reactor
        self._log = log
        self._begun = False
        self._comes_back = False
        self._end_s = 0.0
        self._alone_s = 0.0
        self._done: Callable[[], object] = lambda: None

    def begin(self, done: Callable[[], object]) -> bool:
        """Give the jobs away, and call ``done`` when none is left, or after the configured time;
        ``False`` if the node is to be stopped at once."""
        seconds = self._settings.shutdown_evacuates
        node = self._runtime.node
        if not seconds or node.membership.size < 2 or self._begun:
            return self._begun
        self._log.warning(f"The node gives its jobs to others before it stops, {seconds} s at most")
        self._begun = True
        self._comes_back = not node.membership.leaving
        self._done = done
        now_s = self._reactor.seconds()
        self._end_s = now_s + seconds
        self._alone_s = now_s + _ALONE_S
        with self._runtime.turn():
            node.membership.set_leaving(True)
            node.evacuation.begin()
        self._check()
        return True

    def _check(self) -> None:
        evacuation = self._runtime.node.evacuation
        now_s = self._reactor.seconds()
        if evacuation.obstacle != NO_NODE:
            self._alone_s = now_s + _ALONE_S
        left = int(evacuation.left)
        if left and now_s < min(self._end_s, self._alone_s):
            self._reactor.callLater(_POLL_S, self._check)
            return
        if left:
            why = evacuation.obstacle or "no more time"
            self._log.warning(f"{counted(left, 'job')} could not be given away ({why})")
        else:
            self._log.warning(
                f"The node is empty: {counted(int(evacuation.moved), 'job')} went to others"
            )
        self.over = True
        self._done()

    def stopped(self) -> None:
        """Nothing is served any more: the next start is an ordinary one."""
        if self._comes_back:
            self._runtime.node.membership.set_leaving(False)
