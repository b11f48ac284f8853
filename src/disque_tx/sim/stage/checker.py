"""What all checkers have in common."""

from __future__ import annotations

from typing import ClassVar, Final

from disque_tx.sim.stage.stage import Stage

#: Faults that end no process, and keep no nodes from each other.
CLOCK_FAULTS: Final = frozenset(("clock_step", "clock_drift"))


class Checker:
    """One promise. A checker gets the run and returns one sentence for every breach it finds. Some
    look while the run goes on, all of them when it is over: healed, drained, and quiet."""

    def watch(self, run: Stage) -> None:
        """The run begins: look whenever it matters. Most promises show in the end."""

    def judge(self, run: Stage) -> list[str]:
        """The run is over: every breach, in one sentence each."""
        raise NotImplementedError


class WatchingChecker(Checker):
    """Looks at the cluster again and again, every ``period_us``, in runs that :meth:`concerns`."""

    period_us: ClassVar[int]

    def watch(self, run: Stage) -> None:
        """Begin."""
        if self.concerns(run):
            run.world.at(self.period_us, lambda: self._next(run))

    def _next(self, run: Stage) -> None:
        self.look(run)
        if not run.over:
            run.world.at(self.period_us, lambda: self._next(run))

    def concerns(self, run: Stage) -> bool:
        """Whether the promise is given in such a run."""
        raise NotImplementedError

    def look(self, run: Stage) -> None:
        """Some time has passed."""
        raise NotImplementedError
