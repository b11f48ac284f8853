"""What a checker of the simulator is.

A checker gets the run and returns one sentence for every breach it finds. Some look while the run
goes on, all of them when it is over: healed, drained, and quiet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class Checker:
    """One promise."""

    def watch(self, run: Run) -> None:
        """The run begins: look whenever it matters. Most promises show in the end."""

    def judge(self, run: Run) -> list[str]:
        """The run is over: every breach, in one sentence each."""
        raise NotImplementedError
