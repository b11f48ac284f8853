"""The order of the jobs in a queue."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.order import JobOrder
from disque_tx.errors import LocalError
from tests import profiles  # noqa: F401
from tests.core.bench import make_job


def key(job: Job) -> tuple[int, bytes]:
    """The sort key of the queue order."""
    return job.ctime, job.id


class OrderMachine(RuleBasedStateMachine):
    """``JobOrder`` compared with a sorted list."""

    def __init__(self) -> None:
        super().__init__()
        self.order = JobOrder()
        self.model: list[Job] = []
        self.number = 0

    def put(self, ctime: int) -> None:
        self.number += 1
        job = make_job(self.number, ctime)
        self.order.add(job)
        self.model.append(job)
        self.model.sort(key=key)

    @rule(ctime=st.integers(0, 1000))
    def add(self, ctime: int) -> None:
        """Anywhere, including next to a job of the same moment."""
        self.put(ctime)

    @rule(count=st.integers(1, 700), step=st.sampled_from([-1, 0, 1]))
    def add_many(self, count: int, step: int) -> None:
        """Enough to fill the runs, at the end, at the front, or at one moment."""
        for number in range(count):
            self.put(500 + step * number)

    @rule(count=st.integers(1, 400))
    def pop(self, count: int) -> None:
        """The oldest jobs leave."""
        for _ in range(count):
            expected = self.model.pop(0) if self.model else None
            assert expected is self.order.pop()

    @rule(place=st.floats(0, 1, exclude_max=True), count=st.integers(1, 300))
    def remove(self, place: float, count: int) -> None:
        """Some jobs leave from the middle."""
        for _ in range(min(count, len(self.model))):
            self.order.remove(self.model.pop(int(place * len(self.model))))

    @rule(count=st.integers(1, 600))
    def peek(self, count: int) -> None:
        """Both ends can be examined."""
        assert self.model[:count] == self.order.oldest(count)
        assert self.model[::-1][:count] == self.order.newest(count)

    @invariant()
    def same(self) -> None:
        """Order, size and first job agree."""
        assert len(self.model) == self.order.size
        assert self.model == list(self.order)
        assert (self.model[0] if self.model else None) is self.order.first()


class OrderTests(SynchronousTestCase):
    """``JobOrder``."""

    def test_like_a_sorted_list(self) -> None:
        """Whatever is added and removed, the jobs stay in queue order and none is lost."""
        run_state_machine_as_test(
            OrderMachine, settings=settings(max_examples=30, stateful_step_count=20)
        )

    def test_remove_unknown(self) -> None:
        """Removing an unknown job is an internal error, and nothing else is removed."""
        order = JobOrder()
        self.assertRaises(LocalError, order.remove, make_job(1))
        for number in (1, 3):
            order.add(make_job(number))
        for number in (0, 1, 2, 4):
            self.assertRaises(LocalError, order.remove, make_job(number))
        self.assertEqual(2, order.size)

    def test_empty(self) -> None:
        """An empty queue has no first, oldest or newest job."""
        order = JobOrder()
        self.assertIsNone(order.pop())
        self.assertIsNone(order.first())
        self.assertEqual([], order.oldest(10))
        self.assertEqual([], order.newest(10))
        self.assertEqual(0, order.size)
