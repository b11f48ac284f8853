"""The schedule of deadlines."""

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

from disque_tx.core.base.schedule import SLOT_MS, Schedule
from disque_tx.core.jobs.job import Job
from disque_tx.errors import LocalError
from tests import profiles  # noqa: F401
from tests.core.bench import make_job

ALL = 1 << 40


class ScheduleMachine(RuleBasedStateMachine):
    """``Schedule`` compared with a dict of times."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule: Schedule[Job] = Schedule()
        self.times: dict[Job, int] = {}
        self.now_ms = 1000

    @rule(in_ms=st.integers(-100, 500), count=st.integers(1, 30))
    def add(self, in_ms: int, count: int) -> None:
        """Items with deadlines, some of them in the past."""
        for number in range(count):
            item = make_job(number)
            self.times[item] = self.now_ms + in_ms
            self.schedule.add(item, self.now_ms + in_ms)

    @precondition(lambda self: self.times)
    @rule(place=st.floats(0, 1, exclude_max=True), again=st.booleans())
    def remove(self, place: float, again: bool) -> None:
        """An item is removed; removing it again does no harm."""
        item = list(self.times)[int(place * len(self.times))]
        self.schedule.remove(item)
        if again:
            self.schedule.remove(item)
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
        for at_ms in self.times.values():
            assert at_ms > self.now_ms - SLOT_MS

    @invariant()
    def next_is_not_too_late(self) -> None:
        """A driver that sleeps until ``next_ms`` misses no deadline."""
        if self.times:
            assert 0 <= self.schedule.next_ms() < min(self.times.values()) + SLOT_MS


class ScheduleTests(SynchronousTestCase):
    """``Schedule``."""

    def setUp(self) -> None:
        self.schedule: Schedule[Job] = Schedule()
        self.items = [make_job(number) for number in range(10)]

    def add(self, number: int, at_ms: int) -> None:
        """Schedule one of the items."""
        self.schedule.add(self.items[number], at_ms)

    def due(self, now_ms: int, limit: int = ALL) -> list[int]:
        """The numbers of the items that are due."""
        return [self.items.index(item) for item in self.schedule.due(now_ms, limit)]

    def test_like_a_dict(self) -> None:
        """No item is early, more than one slot late, lost, or returned twice."""
        run_state_machine_as_test(
            ScheduleMachine, settings=settings(max_examples=60, stateful_step_count=30)
        )

    def test_order(self) -> None:
        """Earlier slots come first, and within a slot the order of adding: runs are
        reproducible."""
        for number, at_ms in enumerate((90, 10, 95, 11, 200, 1)):
            self.add(number, at_ms)
        self.assertEqual([1, 3, 5, 0, 2], self.due(100))
        self.assertEqual([4], self.due(200))

    def test_on_time(self) -> None:
        """A deadline on the grid is met exactly."""
        self.add(1, 5 * SLOT_MS)
        self.assertEqual([], self.due(5 * SLOT_MS - 1))
        self.assertEqual([1], self.due(5 * SLOT_MS))

    def test_limit_cuts_a_slot(self) -> None:
        """Items that exceed the limit stay due and come in the same order."""
        for number in range(10):
            self.add(number, 20)
        self.assertEqual([0, 1, 2], self.due(20, 3))
        self.assertEqual(20, self.schedule.next_ms())
        self.assertEqual([3, 4, 5, 6, 7, 8, 9], self.due(20))

    def test_nothing(self) -> None:
        """An empty schedule has no next deadline, and removed items can be scheduled again."""
        self.assertEqual(-1, self.schedule.next_ms())
        self.add(1, 20)
        self.add(2, 20)
        self.schedule.clear()
        self.assertEqual(-1, self.schedule.next_ms())
        self.assertEqual([], self.due(1000))
        self.add(1, 40)
        self.assertEqual([1], self.due(40))

    def test_twice(self) -> None:
        """An item has one deadline: scheduling it twice is an internal error."""
        self.add(1, 20)
        self.assertRaises(LocalError, self.add, 1, 40)
        self.assertEqual([1], self.due(100))

    def test_neighbours(self) -> None:
        """An item that is not scheduled any more keeps no other one in memory, however it was
        taken out."""
        for number in range(6):
            self.add(number, 20)
        self.schedule.remove(self.items[1])
        self.schedule.remove(self.items[5])
        self.assertEqual([0, 2], self.due(20, 2))
        self.schedule.clear()
        for item in self.items:
            self.assertEqual((None, None), (item.prev, item.next))

    def test_churn(self) -> None:
        """Adding and removing items for a long time leaves little behind."""
        self.add(0, 10**9)
        for number in range(20_000):
            self.add(1, number * SLOT_MS)
            self.schedule.remove(self.items[1])
        skipped = 0
        while (now_ms := self.schedule.next_ms()) < 10**9:
            self.assertEqual([], self.due(now_ms))
            skipped += 1
        self.assertLess(skipped, 2_000)
        self.assertEqual([0], self.due(10**9))

    def test_churn_keeps_the_order(self) -> None:
        """What is scheduled stays in its order while others are added and removed for long."""
        for number in range(9):
            self.add(number, 10**9 - number * SLOT_MS)
        for number in range(5_000):
            self.add(9, 10**10 + number * SLOT_MS)
            self.schedule.remove(self.items[9])
        self.assertEqual([8], self.due(10**9 - 8 * SLOT_MS))
        self.assertEqual(list(range(7, -1, -1)), self.due(10**9))

    def test_far_future(self) -> None:
        """The longest possible TTL is a deadline like any other."""
        at_ms = 4_294_967_295 * 1000 + 10**12
        self.add(1, at_ms)
        self.assertEqual([], self.due(at_ms - 1))
        self.assertEqual([1], self.due(at_ms + SLOT_MS))
