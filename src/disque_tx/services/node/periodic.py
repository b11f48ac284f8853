"""The periodic work of a node and of its cluster, as services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twisted.application.service import Service
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from disque_tx.engine.periodic import PeriodicWork
from disque_tx.services.bus.clusterlog import ClusterLog
from disque_tx.services.bus.tablelog import KeyLog, TableLog

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.delays import Delays
    from disque_tx.services.machine.log import DaemonLog
    from disque_tx.services.machine.platform import Platform
    from disque_tx.services.node.aof import AppendOnlyFile
    from disque_tx.services.turns.runtime import Runtime


class Cron(Service):
    """Runs the periodic work of a node ``hz`` times a second (client protocol, section 20), and
    notes in ``delays`` when it is late."""

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        platform: Platform,
        aof: AppendOnlyFile,
        delays: Delays,
    ) -> None:
        self._runtime = runtime
        self._clock = platform.clock
        self._delays = delays
        self._settings = settings
        self._log = platform.log
        self._work = PeriodicWork(runtime.server, settings, runtime, aof, platform.log)
        self._loop = LoopingCall(self.run)
        self._loop.clock = platform.reactor

    def startService(self) -> None:
        """Begin; the first run is one period from now."""
        super().startService()
        self._loop.start(1 / self._settings.hz, now=False).addErrback(self._broken)

    def stopService(self) -> None:
        """No more runs."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()

    def hz_changed(self) -> None:
        """``hz`` was set: go on at the new pace."""
        if self._loop.running:
            self._loop.stop()
            self._loop.start(1 / self._settings.hz, now=False).addErrback(self._broken)

    def _broken(self, failure: object) -> None:
        self._log.warning(f"The periodic work failed and starts again: {failure}")
        if self.running:
            self._loop.start(1 / self._settings.hz, now=False).addErrback(self._broken)

    def run(self) -> None:
        """Run the periodic work once."""
        self._delays.ran(self._clock.steady_ms() / 1000, 1 / self._settings.hz)
        with self._runtime.turn():
            self._work.run()


PERIOD_S: Final = 0.1


class GossipService(Service):
    """Ten times a second: the node checks its links, gossips, and detects nodes that fail (cluster
    protocol, sections 8.4 to 8.7)."""

    name = "gossip"

    def __init__(self, runtime: Runtime, log: DaemonLog, reactor: IReactorTime) -> None:
        self._runtime = runtime
        self._log = log
        self._cluster_log = ClusterLog(runtime.node, log)
        self._key_log = KeyLog(runtime.node, log)
        self._table_log = TableLog(runtime.node, log)
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
            node.cluster.tick()
        self._cluster_log.update()
        self._key_log.update()
        self._table_log.update()

    def _broken(self, failure: object) -> None:
        self._log.warning(f"The cluster's periodic work failed and starts again: {failure}")
        if self.running:
            self._loop.start(PERIOD_S, now=False).addErrback(self._broken)


class FederationService(Service):
    """Runs the federation, which moves jobs to the nodes where they are asked for (cluster
    protocol, section 11), on the runtime's timer while it is started."""

    name = "federation"

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def startService(self) -> None:
        """Add its deadlines to those of the runtime."""
        super().startService()
        self._runtime.turns.deadlines.append(self._runtime.node.federation)

    def stopService(self) -> None:
        """Remove its deadlines."""
        super().stopService()
        self._runtime.turns.deadlines.remove(self._runtime.node.federation)
