"""What all checkers have in common."""

from __future__ import annotations

from disque_tx.sim.stage.stage import Stage


class Checker:
    """One promise. A checker gets the run and returns one sentence for every breach it finds. Some
    look while the run goes on, all of them when it is over: healed, drained, and quiet."""

    def watch(self, run: Stage) -> None:
        """The run begins: look whenever it matters. Most promises show in the end."""

    def judge(self, run: Stage) -> list[str]:
        """The run is over: every breach, in one sentence each."""
        raise NotImplementedError
