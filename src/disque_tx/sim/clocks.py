"""The clocks of a machine, which are never quite right.

The steady clock never goes backwards and is at most 500 ppm faster or slower than true time; every
start of a process gives it another zero, since no program may rely on where that is. The wall clock
drifts in the same way, is set wrong from the beginning, and is stepped at any time.
"""

from __future__ import annotations

from typing import Final

from disque_tx.sim.world import World

DRIFT_PPM_MAX: Final = 500
STEP_US_MAX: Final = 3_600_000_000
#: Some moment in the year 2026, as microseconds since 1970.
_EPOCH_US: Final = 1_790_000_000_000_000
_MILLION: Final = 1_000_000
_ZERO_US_MIN: Final = 10_000_000
_ZERO_US_MAX: Final = 100 * 86_400 * _MILLION
_OFFSET_US_MAX: Final = 300_000


class Clocks:
    """Both clocks of one machine. ``drift_ppm``: how much too fast they are. ``shifts_us``: by how
    much the wall clock was ever ahead of what it would have been since an earlier moment."""

    def __init__(self, world: World, name: str) -> None:
        self.drift_ppm = 0
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
        return _EPOCH_US + self._offset_us + self._elapsed_us()

    def true_delay_us(self, steady_ms: int) -> int:
        """True time until the steady clock shows so much, at least."""
        left_us = max(0, steady_ms * 1000 - self.steady_us())
        return left_us * _MILLION // (_MILLION + self.drift_ppm) + 1 if left_us else 0

    def restart(self) -> None:
        """A process starts: the zero of the steady clock lies elsewhere."""
        self._zero_us = self._random.randint(_ZERO_US_MIN, _ZERO_US_MAX)

    def step(self, us: int) -> None:
        """The wall clock is set."""
        self._offset_us += us
        self._recent_us = {us} | {earlier_us + us for earlier_us in self._recent_us}
        self.shifts_us |= self._recent_us

    def drift(self, ppm: int) -> None:
        """Both clocks go so much too fast from now on; ``ValueError`` beyond what clocks do."""
        if abs(ppm) > DRIFT_PPM_MAX:
            raise ValueError(f"no clock drifts by {ppm} ppm")
        self._passed_us = self._elapsed_us()
        self._mark_us = self._world.now_us
        self.drift_ppm = ppm
