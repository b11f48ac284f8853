"""The heartbeat of the cluster: ten times a second the node looks after its links, says whom it
knows, and judges who is silent (cluster protocol, sections 8.4 to 8.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twisted.application.service import Service
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from disque_tx.services.bus.observer import Observer

if TYPE_CHECKING:
    from disque_tx.services.host.log import DaemonLog
    from disque_tx.services.runtime import Runtime

PERIOD_S: Final = 0.1


class GossipService(Service):
    """Lets the time pass for the cluster part of one node."""

    name = "gossip"

    def __init__(self, runtime: Runtime, log: DaemonLog, reactor: IReactorTime) -> None:
        self._runtime = runtime
        self._log = log
        self._observer = Observer(runtime.node, log)
        self._loop = LoopingCall(self._tick)
        self._loop.clock = reactor

    def startService(self) -> None:
        """Begin at once: there may be nodes to connect to."""
        super().startService()
        self._loop.start(PERIOD_S).addErrback(self._broken)

    def stopService(self) -> None:
        """No more ticks."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()

    def _tick(self) -> None:
        with self._runtime.turn() as node:
            node.cluster.tick(node.now_ms)
        self._observer.look()

    def _broken(self, failure: object) -> None:
        self._log.warning(f"The cluster's periodic work failed and is taken up again: {failure}")
        if self.running:
            self._loop.start(PERIOD_S, now=False).addErrback(self._broken)
