"""What signals do to ``disque-server``.

SIGTERM and SIGINT stop the daemon in an orderly way, a second one at once; with
``shutdown-evacuates`` the first one has it give its jobs away before, and the next one ends that.
SIGHUP reloads the certificates. SIGUSR1 makes the node leave its cluster, as it makes beanstalkd
drain. SIGPIPE is ignored.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import attrs

if TYPE_CHECKING:
    from disque_tx.services.machine.log import DaemonLog
    from disque_tx.services.node.root import NodeRoot
    from disque_tx.services.processes.parent.parent import Parent

_STOP_WITHIN_S: Final = 10

Report = Callable[[str], object]


@attrs.frozen
class Daemon:
    """What the process runs. ``loading``: nothing can be lost by ending at once. ``reload``: reads
    the certificates again. ``leave``: makes the node leave its cluster, in good order.
    ``evacuate``: makes it give its jobs away, and calls what it is given when that is over;
    ``False`` if it is not to. ``kill``: ends other processes that belong to it. ``connect``: given
    what a parent process may call to stop it, with the reason."""

    root: NodeRoot | Parent
    loading: Callable[[], bool]
    reload: Callable[[], object]
    leave: Callable[[], object]
    evacuate: Callable[[Callable[[], object]], bool]
    kill: Callable[[], object]
    connect: Callable[[Report], object] = lambda end: None


class _Stopping:
    """The end of the process. What a parent process says is not counted as a signal: Ctrl-C reaches
    all processes, and the parent's word may come first."""

    def __init__(self, daemon: Daemon, log: DaemonLog, reactor: Any) -> None:
        self._daemon = daemon
        self._log = log
        self._reactor = reactor
        self._asked = False
        self._evacuating = False
        self._signals = 0

    def signal(self, number: int, _frame: object) -> None:
        """SIGTERM, SIGINT. The first one works without the reactor, which may be busy for long."""
        self._signals += 1
        why = f"Received {signal.Signals(number).name}, scheduling shutdown..."
        if self._signals == 1:
            self._begin(why, self._evacuate)
        elif self._evacuating:
            self.end(why)
        else:
            self._give_up()

    def end(self, why: str) -> None:
        """Stop in an orderly way, and give no more jobs away."""
        if self._evacuating:
            self._asked = self._evacuating = False
        self._begin(why, lambda: self._daemon.root.request_stop(0))

    def _begin(self, why: str, step: Callable[[], object]) -> None:
        if self._asked:
            return
        self._asked = True
        if self._daemon.loading():
            os._exit(0)
        self._log.warning(why)
        signal.signal(signal.SIGALRM, self._give_up)
        signal.alarm(_STOP_WITHIN_S)
        self._reactor.callFromThread(step)

    def _evacuate(self) -> None:
        self._evacuating = True
        if not self._daemon.evacuate(lambda: self.end("The daemon stops")):
            self._evacuating = False
            self._daemon.root.request_stop(0)
        elif self._evacuating:
            signal.alarm(0)

    def _give_up(self, *_: object) -> None:
        self._daemon.kill()
        os._exit(1)


def handle_signals(daemon: Daemon, log: DaemonLog, reactor: Any) -> None:
    """See above."""
    from twisted.internet.process import reapAllProcesses

    stopping = _Stopping(daemon, log, reactor)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopping.signal)
    daemon.connect(stopping.end)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def leave(*_: object) -> None:
        log.warning(
            "Received SIGUSR1: the node leaves its cluster and takes no more jobs;"
            " CLUSTER LEAVING no ends that"
        )
        reactor.callFromThread(daemon.leave)

    signal.signal(signal.SIGUSR1, leave)
    signal.signal(signal.SIGHUP, lambda *_: reactor.callFromThread(daemon.reload))
    # The end of processes that the daemon has started.
    signal.signal(signal.SIGCHLD, lambda *_: reactor.callFromThread(reapAllProcesses))
