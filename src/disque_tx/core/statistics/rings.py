"""The history of one queue, or of the whole node: points in three rings, of which each covers a
longer time in longer steps.

A point is made of small numbers, so that much of the past fits into little memory: those up to
2,047 are exact, and others are at most a thousandth too small. Steps without anything to tell have
no point.
"""

from __future__ import annotations

from array import array
from typing import Final

from mypy_extensions import i64

from disque_tx.core.statistics.waits import BOUNDS_MS, quantile_ms
from disque_tx.messages.limits import U16_MAX
from disque_tx.messages.records import Keyed

#: Seconds from a point to the next one, by ring; and how many points a ring has at most: an hour, a
#: day, 14 days.
STEPS_S: Final = (10, 60, 900)
POINTS_MAX: Final = (360, 1_440, 1_344)
#: The numbers of a point, in order: events since the point before, then levels at its end. Waits
#: and ages are in milliseconds.
NUMBERS: Final = (
    *("added", "delivered", "acked", "failed", "queued", "in_flight"),
    *("oldest_ms", "wait_p50_ms", "wait_p99_ms", "memory_bytes"),
)
COUNTS: Final = 4
#: A step's number in two words, and the numbers of the point.
WIDTH: Final = 2 + len(NUMBERS)
_POINT_BYTES: Final = 2 * WIDTH
#: What a record takes besides its points and its name, rather too many bytes.
_RECORD_BYTES: Final = 1_536
_EXACT: Final = 2_048
_HALF: Final = 1_024
_SHIFT_MAX: Final = 50
_DAY_STEPS: Final = 8_640
_DAY_QUARTERS: Final = 96
_HOUR_QUARTERS: Final = 4
#: The places of two numbers in a row of a ring.
_DELIVERED: Final = 2
_P99: Final = 9
_BUCKETS: Final = len(BOUNDS_MS) + 1


def packed(number: int) -> int:
    """A number in 16 bits."""
    if number < _EXACT:
        return max(0, number)
    shift = min(number.bit_length() - 11, _SHIFT_MAX)
    return _EXACT + (shift - 1) * _HALF + min(number >> shift, 2 * _HALF - 1) - _HALF


def unpacked(code: int) -> int:
    """The number of a code; a code that :func:`packed` never makes gives the greatest number."""
    if code < _EXACT:
        return code
    shift = min((code - _EXACT) // _HALF + 1, _SHIFT_MAX)
    return (_HALF + (code - _EXACT) % _HALF) << shift


class Ring:
    """The points of one step. ``points``: :data:`WIDTH` words each, in order of time."""

    __slots__ = ("_slot", "_sums", "_waits", "points", "step")

    def __init__(self, step: i64) -> None:
        self.step: i64 = step
        self.points: array[int] = array("H")
        # What the last point is made of.
        self._slot: i64 = -1
        self._sums: array[int] = array("Q", [0] * COUNTS)
        self._waits: array[int] = array("Q")

    def slot_at(self, place: i64) -> i64:
        """The step of the point that begins at this place."""
        return i64(self.points[place] << 16 | self.points[place + 1])

    def put(self, slot: i64, counts: list[int], levels: list[int]) -> None:
        """Add to the point of a step: ``counts`` as of ``Flow.take``; ``levels``: queued, in
        flight, oldest and memory as they are now."""
        self._drop_from(slot)
        if slot != self._slot:
            self._begin(slot)
        self._add(counts)
        waits = self._waits.tolist()
        p50_ms, p99_ms = 0.0, 0.0
        if waits:
            p50_ms, p99_ms = quantile_ms(waits, 0.5), quantile_ms(waits, 0.99)
        queued, in_flight, oldest_ms, memory = levels
        numbers = [*self._sums, queued, in_flight, oldest_ms, round(p50_ms), round(p99_ms), memory]
        words = [int(slot) >> 16, int(slot) & U16_MAX, *[packed(number) for number in numbers]]
        self.points.extend(words)
        self.trim(slot)

    def _begin(self, slot: i64) -> None:
        self._slot = slot
        self._sums = array("Q", [0] * COUNTS)
        self._waits = array("Q")

    def _add(self, counts: list[int]) -> None:
        for place in range(COUNTS):
            self._sums[place] += counts[place]
        if len(counts) > COUNTS:
            if not self._waits:
                self._waits = array("Q", [0] * _BUCKETS)
            for place in range(_BUCKETS):
                self._waits[place] += counts[COUNTS + place]

    def _drop_from(self, slot: i64) -> None:
        """Forget the point of this step, and later ones: then the clock was set back."""
        while self.points and self.slot_at(len(self.points) - WIDTH) >= slot:
            del self.points[-WIDTH:]

    def trim(self, slot: i64) -> None:
        """Forget points that are too old at this step."""
        first = slot - POINTS_MAX[self.step]
        place: i64 = 0
        while place < len(self.points) and self.slot_at(place) <= first:
            place += WIDTH
        if place:
            del self.points[:place]

    def resume(self) -> None:
        """The points were loaded: go on with the last one, whose waits are not known any more."""
        if not self.points:
            return
        last = len(self.points) - WIDTH
        self._begin(self.slot_at(last))
        for place in range(COUNTS):
            self._sums[place] = unpacked(self.points[last + 2 + place])

    def between(self, first: i64, last: i64) -> list[list[int]]:
        """The points of these steps: their numbers, behind the one of the step."""
        found: list[list[int]] = []
        place: i64 = len(self.points)
        while place > 0:
            place -= WIDTH
            slot = self.slot_at(place)
            if slot < first:
                break
            if slot <= last:
                row = [int(slot)]
                for code in self.points[place + 2 : place + WIDTH]:
                    row.append(unpacked(code))
                found.append(row)
        found.reverse()
        return found


class Record(Keyed):
    """The history of one queue. ``rings``: by step. ``weight``: how busy it is: its events, those
    of each day half as much as those of the day after."""

    __slots__ = ("_day", "rings", "weight")

    def __init__(self, name: bytes) -> None:
        super().__init__(name)
        self.rings: list[Ring] = [Ring(step) for step in range(len(STEPS_S))]
        self.weight: int = 0
        self._day: i64 = 0  # of which it is up to date; 0 for the first one that comes

    def put(self, slot: i64, counts: list[int], levels: list[int]) -> None:
        """Take in what happened in a step of the first ring."""
        self.age(slot)
        self.weight += sum(counts[:COUNTS])
        for ring in self.rings:
            ring.put(slot * STEPS_S[0] // STEPS_S[ring.step], counts, levels)

    def age(self, slot: i64) -> None:
        """Bring the weight up to date."""
        day = slot // _DAY_STEPS
        if 0 < self._day < day:
            self.weight >>= min(int(day - self._day), 62)
        self._day = day

    def trim(self, slot: i64) -> None:
        """Forget what is too old at a step of the first ring."""
        for ring in self.rings:
            ring.trim(slot * STEPS_S[0] // STEPS_S[ring.step])

    def usual_wait_ms(self, slot: i64) -> int:
        """For how long 99 % of the jobs wait usually: the greatest such wait of a quarter of an
        hour of the last day, but for the last hour, in which something may be wrong. -1 if too
        little is known."""
        quarter = slot * STEPS_S[0] // STEPS_S[2]
        rows = self.rings[2].between(quarter - _DAY_QUARTERS, quarter - _HOUR_QUARTERS)
        waits = [row[_P99] for row in rows if row[_DELIVERED] > 0]
        return max(waits) if len(waits) >= _HOUR_QUARTERS else -1

    def is_empty(self) -> bool:
        """Whether all of it was too old."""
        return not any(ring.points for ring in self.rings)

    def size(self) -> int:
        """How much memory it takes, in bytes."""
        words = 0
        for ring in self.rings:
            words += len(ring.points)
        return _RECORD_BYTES + len(self.data) + words * _POINT_BYTES // WIDTH
