"""Time, randomness and trace of a simulated world, and the clocks of its machines.

Everything that happens is an action at a time, and all chance comes from the seed of the world: the
same seed is the same run, down to the hash of its trace.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Final

#: What is kept of a trace and of the failures.
TRACE_LINES_MAX: Final = 200_000
FAILURES_MAX: Final = 100


class Timer:
    """An action that will happen, until it is cancelled or has happened."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Cancel the call, if it has not happened; may be called repeatedly."""
        self.action = None


class World:
    """One run. ``now_us``: true time since the beginning.

    ``counters``: how often what happened: every fault as ``fault.<name>``, every bus message as
    ``bus.<TYPE>`` when it is written and ``bus.<TYPE>.<what>`` for what became of it.
    ``failures``: what must not happen and did. ``stop_at_failure``: the first one ends the run, and
    ``stopped`` is set then.
    ``longest_transit_us``: what a message between nodes took at the most, until now.
    ``keep_trace``: keep the lines of the trace in ``lines``, not only their hash.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now_us = 0
        self.counters: Counter[str] = Counter()
        self.failures: list[str] = []
        self.stop_at_failure = False
        self.stopped = False
        self.keep_trace = False
        self.longest_transit_us = 0
        self.lines: deque[str] = deque(maxlen=TRACE_LINES_MAX)
        self._heap: list[tuple[int, int, Timer]] = []
        self._scheduled = 0
        self._randoms: dict[str, Random] = {}
        self._hash = hashlib.blake2b(digest_size=16)

    def random(self, name: str) -> Random:
        """The source of chance with this name: always the same one, and independent of others."""
        found = self._randoms.get(name)
        if found is None:
            found = self._randoms[name] = Random(f"{self.seed}/{name}")
        return found

    # -- time --------------------------------------------------------------------------------

    def at(self, delay_us: int, action: Callable[[], None]) -> Timer:
        """Let ``action`` happen in ``delay_us``; at equal times what was asked for first is first.

        ``ValueError`` for a time that has passed.
        """
        if delay_us < 0:
            raise ValueError(f"nothing can happen {-delay_us} microseconds ago")
        timer = Timer(action)
        self._scheduled += 1
        heappush(self._heap, (self.now_us + delay_us, self._scheduled, timer))
        return timer

    def run_until(self, us: int) -> None:
        """Let happen what happens until then, unless the world is stopped."""
        heap = self._heap
        while heap and heap[0][0] <= us and not self.stopped:
            at_us, _, timer = heappop(heap)
            action, timer.action = timer.action, None
            if action is not None:
                self.now_us = at_us
                action()
        if not self.stopped:
            self.now_us = max(self.now_us, us)

    def run_for(self, us: int) -> None:
        """Let this time pass."""
        self.run_until(self.now_us + us)

    # -- memory ------------------------------------------------------------------------------

    def trace(self, *words: object) -> None:
        """Note what happens now."""
        line = " ".join([str(self.now_us), *map(str, words)])
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if self.keep_trace:
            self.lines.append(line)

    def trace_hash(self) -> str:
        """A number for all that was noted so far."""
        return self._hash.copy().hexdigest()

    def record_transit(self, us: int) -> None:
        """A message between nodes arrived after so long in transit."""
        self.longest_transit_us = max(self.longest_transit_us, us)

    def count_fault(self, name: str, *where: object) -> None:
        """A fault happens."""
        self.counters[f"fault.{name}"] += 1
        self.trace("fault", name, *where)

    def fail(self, reason: str) -> None:
        """Note something that must not happen."""
        self.trace("failure", reason)
        if len(self.failures) < FAILURES_MAX:
            self.failures.append(f"at {self.now_us / 1e6:.6f} s: {reason}")
        if self.stop_at_failure:
            self.stopped = True


DRIFT_PPM_MAX: Final = 500
STEP_US_MAX: Final = 3_600_000_000
#: Some moment in the year 2026, as microseconds since 1970.
EPOCH_US: Final = 1_790_000_000_000_000
_MILLION: Final = 1_000_000
_ZERO_US_MIN: Final = 10_000_000
_ZERO_US_MAX: Final = 100 * 86_400 * _MILLION
_OFFSET_US_MAX: Final = 300_000


#: By how much a wall clock that is right may be wrong.
_RIGHT_US: Final = 200_000


class MachineClocks:
    """Both clocks of one machine, which are never quite right.

    The steady clock never goes backwards and is at most 500 ppm faster or slower than true time;
    every start of a process gives it another zero, since no program may rely on where that is. The
    wall clock drifts in the same way, is set wrong from the beginning, and is stepped at any time.

    ``drift_ppm``: how much too fast they are. ``shifts_us``: by how much the wall clock was ever
    ahead of what it would have been since an earlier moment. ``wrong``: it was set wrong, and will
    be put right.
    """

    def __init__(self, world: World, name: str) -> None:
        self.drift_ppm = 0
        self.wrong = False
        self.shifts_us: set[int] = set()
        self._recent_us: set[int] = set()
        self._world = world
        self._random = world.random(f"clocks {name}")
        self._mark_us = world.now_us
        self._passed_us = 0
        self._zero_us = 0
        self._offset_us = self._random.randint(-_OFFSET_US_MAX, _OFFSET_US_MAX)
        self.restart()
        self.drift(self._random.randint(-DRIFT_PPM_MAX // 10, DRIFT_PPM_MAX // 10))

    def _elapsed_us(self) -> int:
        """Microseconds that passed on this machine."""
        true_us = self._world.now_us - self._mark_us
        return self._passed_us + true_us + true_us * self.drift_ppm // _MILLION

    def steady_us(self) -> int:
        """The steady clock."""
        return self._zero_us + self._elapsed_us()

    def steady_ms(self) -> int:
        """The steady clock in milliseconds, as nodes read it."""
        return self.steady_us() // 1000

    def wall_us(self) -> int:
        """Microseconds since 1970, as far as this machine knows."""
        return EPOCH_US + self._offset_us + self._elapsed_us()

    def true_delay_us(self, steady_ms: int) -> int:
        """True time until the steady clock shows at least this time."""
        left_us = max(0, steady_ms * 1000 - self.steady_us())
        return left_us * _MILLION // (_MILLION + self.drift_ppm) + 1 if left_us else 0

    def restart(self) -> None:
        """A process starts: the zero of the steady clock lies elsewhere."""
        self._zero_us = self._random.randint(_ZERO_US_MIN, _ZERO_US_MAX)

    def set_right(self) -> None:
        """Before anything begins: the wall clock is right, to a fifth of a second."""
        self._offset_us %= _RIGHT_US

    def agree(self, other: MachineClocks) -> None:
        """Before anything begins: these are the clocks of the same machine."""
        self._offset_us = other._offset_us
        self.drift(other.drift_ppm)

    def step(self, us: int) -> None:
        """The wall clock is set."""
        self._offset_us += us
        self._recent_us = {us} | {earlier_us + us for earlier_us in self._recent_us}
        self.shifts_us |= self._recent_us

    def drift(self, ppm: int) -> None:
        """Let both clocks run too fast by this many parts per million; ``ValueError`` beyond what
        clocks do."""
        if abs(ppm) > DRIFT_PPM_MAX:
            raise ValueError(f"no clock drifts by {ppm} ppm")
        self._passed_us = self._elapsed_us()
        self._mark_us = self._world.now_us
        self.drift_ppm = ppm
