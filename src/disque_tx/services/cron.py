"""Runs the periodic work of a node ``hz`` times a second (client protocol, section 20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.application.service import Service
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from disque_tx.engine.periodic import PeriodicWork

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.aof import AppendOnlyFile
    from disque_tx.services.host.log import DaemonLog
    from disque_tx.services.runtime import Runtime


class Cron(Service):
    """The periodic work of one node, as a service."""

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        aof: AppendOnlyFile,
        log: DaemonLog,
        reactor: IReactorTime,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._log = log
        self._work = PeriodicWork(runtime.server, settings, runtime, aof, log)
        self._loop = LoopingCall(self.run)
        self._loop.clock = reactor

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
        self._log.warning(f"The periodic work failed and is taken up again: {failure}")
        if self.running:
            self._loop.start(1 / self._settings.hz, now=False).addErrback(self._broken)

    def run(self) -> None:
        """One run."""
        with self._runtime.turn():
            self._work.run()
