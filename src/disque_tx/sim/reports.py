"""What a simulated process logs for its operator: lines of the trace."""

from __future__ import annotations

from disque_tx.sim.world import World


class TracedReports:
    """The lines of one process."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def verbose(self, text: str) -> None:
        """Of no interest here."""

    def notice(self, text: str) -> None:
        """What an operator wants to know."""
        self._world.trace("notice", self._name, text)

    def warning(self, text: str) -> None:
        """What an operator must know."""
        self._world.trace("warning", self._name, text)
