"""When the turns of a simulated process happen, and the work in its threads: what the reactor is to
the daemon.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.sim.disk import PowerLostError
from disque_tx.sim.interfaces import Running
from disque_tx.sim.world import Timer

_TICK_MS: Final = 100
#: What a turn takes at the most; input that comes meanwhile is part of it.
_TURN_US_MAX: Final = 150


class Loop:
    """Gathers the input of one process, and runs a turn when there is some, or something is due."""

    def __init__(self, process: Running) -> None:
        machine = process.machine
        self._process = process
        self._world = machine.world
        self._clocks = machine.clocks
        self._random = machine.world.random(f"turns {machine.name}")
        self._inputs: list[Callable[[], object]] = []
        self._input_us = -1
        self._timer: Timer | None = None
        self._timer_us = -1
        self._tick_ms = machine.clocks.steady_ms()

    def feed(self, work: Callable[[], object]) -> None:
        """Input: to be executed in the next turn, after what came before."""
        if self._process.alive:
            self._inputs.append(work)
            if self._input_us < 0:
                self._input_us = self._world.now_us + self._random.randint(1, _TURN_US_MAX)
                self.schedule()

    def schedule(self) -> None:
        """See to it that the next turn comes in time."""
        process = self._process
        if not process.alive or process.frozen:
            return
        at_us = self._next_us()
        if self._timer is not None:
            if self._timer_us <= at_us:
                return
            self._timer.cancel()
        self._timer_us = at_us
        self._timer = self._world.at(at_us - self._world.now_us, self._turn)

    def stop(self) -> None:
        """No more turns."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _next_us(self) -> int:
        due_ms = self._tick_ms
        other_ms = int(self._process.turns.next_due_ms())
        if 0 <= other_ms < due_ms:
            due_ms = other_ms
        # A turn takes time, so whatever is due always comes later than this one.
        at_us = self._world.now_us + max(1, self._clocks.true_delay_us(due_ms))
        return at_us if self._input_us < 0 else max(self._world.now_us, min(at_us, self._input_us))

    def _turn(self) -> None:
        self._timer = None
        process = self._process
        if not process.alive or process.frozen:
            return
        try:
            with process.turn() as node:
                if 0 <= self._input_us <= self._world.now_us:
                    inputs, self._inputs, self._input_us = self._inputs, [], -1
                    for work in inputs:
                        process.guard(work)
                if node.now_ms >= self._tick_ms:
                    self._tick_ms = int(node.now_ms) + _TICK_MS
                    process.guard(process.tick)
                process.guard(process.turns.run_due)
        except PowerLostError:
            process.machine.lose_power()
            return
        process.turn_over()
        self.schedule()


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

    def __init__(self, process: Running) -> None:
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
