"""A node that serves nobody until it knows enough other nodes (``cluster-wait-for``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twisted.application.service import Service
from twisted.internet.task import LoopingCall

if TYPE_CHECKING:
    from disque_tx.commands.base.context import Server
    from disque_tx.config.lists import WaitFor
    from disque_tx.services.machine.log import DaemonLog

PERIOD_S: Final = 0.1


class WaitForNodes(Service):
    """Ends the wait as soon as the node reaches enough nodes, itself included, or when the time is
    over. It ends once: a node that has served goes on, whatever happens to the others."""

    name = "wait-for-nodes"

    def __init__(self, server: Server, wanted: WaitFor, log: DaemonLog, reactor: Any) -> None:
        self._server = server
        self._wanted = wanted
        self._log = log
        self._begun_s = 0.0
        self._reactor = reactor
        self._loop = LoopingCall(self._look)
        self._loop.clock = reactor
        server.awaited_nodes = wanted.nodes

    def startService(self) -> None:
        """Count the time from now on."""
        super().startService()
        self._begun_s = self._reactor.seconds()
        self._log.notice(
            f"Clients get LOADING until this node reaches {self._wanted.nodes} nodes, itself"
            " included (cluster-wait-for)"
        )
        self._loop.start(PERIOD_S)

    def stopService(self) -> None:
        """No more looks."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()

    def _look(self) -> None:
        reached = len(self._server.node.membership.reachable) + 1
        waited_s = self._reactor.seconds() - self._begun_s
        if reached >= self._wanted.nodes:
            self._log.notice(f"This node reaches {reached} nodes now: it serves clients")
        elif 0 < self._wanted.timeout_s <= waited_s:
            self._log.warning(
                f"This node reaches only {reached} of {self._wanted.nodes} nodes after"
                f" {self._wanted.timeout_s} s (cluster-wait-for): it serves clients all the same"
            )
        else:
            return
        self._server.awaited_nodes = 0
        self._loop.stop()
