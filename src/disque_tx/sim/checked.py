"""A run in which every promise is checked."""

from __future__ import annotations

from disque_tx.sim.checkers import all_checkers
from disque_tx.sim.run import Run
from disque_tx.sim.shape import Shape


def checked_run(seed: int, shape: Shape | None = None, keep_trace: bool = False) -> Run:
    """The run of a seed, with all checkers; in this shape, if any is given."""
    return Run(seed, all_checkers(), shape, keep_trace)
