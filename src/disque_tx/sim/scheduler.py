"""Work of the engine in a simulated process, and in its threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from disque_tx.sim.disk import PowerLostError

if TYPE_CHECKING:
    from disque_tx.sim.process import Process

#: How long work in a thread takes.
_WORK_US: Final = (50, 20_000)
#: How often a thread of a stopped process is looked at again.
_FROZEN_US: Final = 10_000


class _Piece:
    """Work that is done, unless it is cancelled before."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work: Callable[[], object] | None = work

    def run(self) -> None:
        if self._work is not None:
            self._work()

    def cancel(self) -> None:
        self._work = None


class SimScheduler:
    """The engine's ``Scheduler``. Of a process that ended nothing is done any more."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world
        self._random = process.world.random(f"threads {process.machine.name}")

    def soon(self, work: Callable[[], object]) -> Callable[[], object]:
        """In the next turn."""
        piece = _Piece(work)
        self._process.feed(piece.run)
        return piece.cancel

    def in_background(
        self, work: Callable[[], object], done: Callable[[Exception | None], object]
    ) -> None:
        """After a while; ``done`` is input of a turn."""
        self._world.at(self._random.randint(*_WORK_US), lambda: self._run(work, done))

    def _run(self, work: Callable[[], object], done: Callable[[Exception | None], object]) -> None:
        process = self._process
        if not process.alive:
            return
        if process.frozen:
            self._world.at(_FROZEN_US, lambda: self._run(work, done))
            return
        reason: Exception | None = None
        try:
            work()
        except PowerLostError:
            process.machine.lose_power()
            return
        except Exception as error:
            reason = error
        process.feed(lambda: done(reason))
