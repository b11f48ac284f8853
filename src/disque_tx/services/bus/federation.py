"""Wakes the federation, which moves jobs to the nodes where they are asked for (cluster protocol,
section 11), when it has something to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.application.service import Service

if TYPE_CHECKING:
    from disque_tx.services.runtime import Runtime


class FederationService(Service):
    """Runs the federation of one node on the runtime's timer while it is started."""

    name = "federation"

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def startService(self) -> None:
        """From the next turn on the runtime's timer knows of it."""
        super().startService()
        self._runtime.turns.deadlines.append(self._runtime.node.federation)

    def stopService(self) -> None:
        """It is woken no more."""
        super().stopService()
        self._runtime.turns.deadlines.remove(self._runtime.node.federation)
