"""What must happen at which time."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.schedule import SLOT_MS, Schedule
from tests import profiles  # noqa: F401

ALL = 1 << 40


class ScheduleMachine(RuleBasedStateMachine):
    """``Schedule`` beside a dict of times."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule: Schedule[int] = Schedule()
        self.times: dict[int, int] = {}
        self.slots: dict[int, int] = {}
        self.now_ms = 1000
        self.number = 0

    @rule(in_ms=st.integers(-100, 500), count=st.integers(1, 30))
    def add(self, in_ms: int, count: int) -> None:
        """Items become due some time, perhaps in the past."""
        for _ in range(count):
            self.number += 1
            self.times[self.number] = self.now_ms + in_ms
            self.slots[self.number] = self.schedule.add(self.number, self.now_ms + in_ms)

    @precondition(lambda self: self.times)
    @rule(place=st.floats(0, 1, exclude_max=True))
    def remove(self, place: float) -> None:
        """An item is taken back."""
        item = list(self.times)[int(place * len(self.times))]
        self.schedule.remove(item, self.slots.pop(item))
        del self.times[item]

    @rule(ms=st.integers(0, 300), limit=st.integers(1, 20))
    def pass_ms(self, ms: int, limit: int) -> None:
        """Time passes; a bounded number of items is handled at once, then the others."""
        self.now_ms += ms
        first = self.schedule.due(self.now_ms, limit)
        assert len(first) <= limit
        rest = self.schedule.due(self.now_ms, ALL) if len(first) == limit else []
        for item in first + rest:
            assert self.times[item] <= self.now_ms
            del self.times[item]
            del self.slots[item]
        for at_ms in self.times.values():
            assert at_ms > self.now_ms - SLOT_MS

    @invariant()
    def next_is_not_too_late(self) -> None:
        """Whoever sleeps until ``next_ms`` misses nothing."""
        if self.times:
            assert 0 <= self.schedule.next_ms() < min(self.times.values()) + SLOT_MS


class ScheduleTests(SynchronousTestCase):
    """``Schedule``."""

    def setUp(self) -> None:
        self.schedule: Schedule[int] = Schedule()

    def test_like_a_dict(self) -> None:
        """Nothing is early, at most one slot late, lost, or given twice."""
        run_state_machine_as_test(
            ScheduleMachine, settings=settings(max_examples=60, stateful_step_count=30)
        )

    def test_order(self) -> None:
        """Earlier slots come first, and within a slot what went in first: runs can be repeated."""
        for item, at_ms in enumerate((90, 10, 95, 11, 200, 1)):
            self.schedule.add(item, at_ms)
        self.assertEqual([1, 3, 5, 0, 2], self.schedule.due(100, ALL))
        self.assertEqual([4], self.schedule.due(200, ALL))

    def test_on_time(self) -> None:
        """A time on the grid is met exactly."""
        self.schedule.add(1, 5 * SLOT_MS)
        self.assertEqual([], self.schedule.due(5 * SLOT_MS - 1, ALL))
        self.assertEqual([1], self.schedule.due(5 * SLOT_MS, ALL))

    def test_limit_cuts_a_slot(self) -> None:
        """What does not fit in one turn stays due and comes in the same order."""
        for item in range(10):
            self.schedule.add(item, 20)
        self.assertEqual([0, 1, 2], self.schedule.due(20, 3))
        self.assertEqual(20, self.schedule.next_ms())
        self.assertEqual([3, 4, 5, 6, 7, 8, 9], self.schedule.due(20, ALL))

    def test_nothing(self) -> None:
        """An empty schedule says so."""
        self.assertEqual(-1, self.schedule.next_ms())
        self.schedule.add(1, 20)
        self.schedule.clear()
        self.assertEqual(-1, self.schedule.next_ms())
        self.assertEqual([], self.schedule.due(1000, ALL))

    def test_remove_unknown(self) -> None:
        """Taking back what is not there is an error, not a silent nothing."""
        slot = self.schedule.add(1, 20)
        self.assertRaises(KeyError, self.schedule.remove, 2, slot)

    def test_churn(self) -> None:
        """Items that are added and taken back all day leave nothing behind."""
        self.schedule.add(-1, 10**9)
        for item in range(20_000):
            self.schedule.remove(item, self.schedule.add(item, item * SLOT_MS))
        # Numbers of empty slots are dropped on the way, so few of them are left to skip.
        skipped = 0
        now_ms = 0
        while (now_ms := self.schedule.next_ms()) < 10**9:
            self.assertEqual([], self.schedule.due(now_ms, ALL))
            skipped += 1
        self.assertLess(skipped, 200)
        self.assertEqual([-1], self.schedule.due(10**9, ALL))

    def test_far_future(self) -> None:
        """The longest life a job can have is a time like any other."""
        at_ms = 4_294_967_295 * 1000 + 10**12
        self.schedule.add(1, at_ms)
        self.assertEqual([], self.schedule.due(at_ms - 1, ALL))
        self.assertEqual([1], self.schedule.due(at_ms + SLOT_MS, ALL))
