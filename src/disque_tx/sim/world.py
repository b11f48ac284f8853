"""Time, chance and memory of a simulated world.

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
        """It will not happen; any number of times."""
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
        """Let so much time pass."""
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
