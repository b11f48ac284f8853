"""Steps of time, of which a plot shows a limited number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

BUCKETS_MAX: Final = 60
#: Steps of a scale of latencies, per power of ten, and at most: some 30 years.
BANDS_PER_DECADE: Final = 3
BANDS_MAX: Final = 36
#: Multiples of a window of a minute or a second that make a round step of time.
_MULTIPLES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 10_080, 43_200)
_HOUR_S: Final = 3_600
#: Multiples of an hour that make a round step of time, up to four weeks.
_HOURS: Final = (1, 2, 3, 6, 12, 24, 168, 672)
#: A period of fewer hours has steps that are shorter than an hour.
_HOURS_MIN: Final = 6
_US_IN_S: Final = 1_000_000


@attrs.frozen
class Axis:
    """Steps of time. ``begin_s``: since 1970."""

    begin_s: int
    step_s: int
    steps: int

    @classmethod
    def of_windows(cls, first_s: int, last_s: int, window_s: int) -> Axis:
        """Steps that are multiples of windows. ``first_s``, ``last_s``: begins of windows."""
        wanted = (last_s - first_s) // window_s + 1
        step_s = window_s * _round(_MULTIPLES, wanted)
        return cls(first_s, step_s, (last_s - first_s) // step_s + 1)

    def by_hours(self) -> Axis:
        """The same period in steps of hours, or of days if it is long; itself if it is short."""
        end_s = self.begin_s + self.steps * self.step_s
        if end_s - self.begin_s < _HOURS_MIN * _HOUR_S:
            return self
        days = -(-(end_s - self.begin_s) // (24 * _HOUR_S))
        # With one step less than there may be, since the first one begins before the period.
        for hours in (*_HOURS, 24 * -(-days // (BUCKETS_MAX - 1))):
            step_s = max(hours * _HOUR_S, self.step_s)
            begin_s = self.begin_s // step_s * step_s
            steps = -(-(end_s - begin_s) // step_s)
            if steps <= BUCKETS_MAX:
                break
        return Axis(begin_s, step_s, steps)

    def of(self, time: str) -> str:
        """The step of a time, in SQL; times outside count for the first or last step."""
        begin_us, step_us = self.begin_s * _US_IN_S, self.step_s * _US_IN_S
        step = f"floor((epoch_us({time}) - {begin_us}) / {step_us})"
        return f"CAST(least(greatest({step}, 0), {self.steps - 1}) AS INTEGER)"

    def at_s(self, step: int) -> int:
        """The begin of a step, since 1970."""
        return self.begin_s + step * self.step_s


def _round(multiples: Sequence[int], wanted: int) -> int:
    """The least of these multiples of a step with which a plot can show all steps."""
    enough = (multiple for multiple in multiples if multiple * BUCKETS_MAX >= wanted)
    return next(enough, -(-wanted // BUCKETS_MAX))
