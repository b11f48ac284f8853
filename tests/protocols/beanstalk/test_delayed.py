"""Delayed jobs of a tube, in the order in which they are due."""

from __future__ import annotations

from random import Random

from disque_tx.protocols.beanstalk.jobs import Delayed, TubeJob
from tests.protocols.beanstalk.bench import BeanstalkCase


class DelayedTests(BeanstalkCase):
    """``Delayed``."""

    def setUp(self) -> None:
        super().setUp()
        self.delayed = Delayed()
        self.expected: dict[TubeJob, int] = {}  # in the order in which they were delayed

    def entries(self, count: int) -> list[TubeJob]:
        """Jobs that are not delayed yet."""
        tube = self.tubes.obtain(b"default")
        return [TubeJob(self.tubes, tube, 0) for _ in range(count)]

    def add(self, entry: TubeJob, due_ms: int) -> None:
        """Delay a job."""
        entry.due_ms = due_ms
        self.delayed.add(entry)
        self.expected.pop(entry, None)
        self.expected[entry] = due_ms

    def check(self) -> None:
        """The first job is the one that is due first, and of several the one delayed first."""
        first = min(self.expected, key=self.expected.__getitem__, default=None)
        self.assertIs(first, self.delayed.first())
        self.assertEqual(len(self.expected), len(self.delayed))

    def test_any_order(self) -> None:
        """Whatever is delayed, delayed anew, and not delayed any more, the first one is right."""
        random = Random(1)
        entries = self.entries(30)
        for _ in range(3_000):
            entry = random.choice(entries)
            if random.random() < 0.3:
                self.delayed.discard(entry)
                self.expected.pop(entry, None)
            else:
                self.add(entry, random.randrange(40))
            if random.random() < 0.2:
                self.check()
        for entry in entries:
            self.delayed.discard(entry)
        self.assertIsNone(self.delayed.first())

    def test_memory(self) -> None:
        """Jobs that are delayed again and again take no more memory than a few others, and stay in
        order."""
        entries = self.entries(100)
        for turn in range(10):
            for number, entry in enumerate(entries):
                self.add(entry, 1_000 - 10 * turn + number % 7)
                self.assertLessEqual(len(self.delayed._heap), 2 * len(self.expected) + 64)
        while self.expected:
            self.check()
            first = self.delayed.first()
            assert first is not None
            self.delayed.discard(first)
            del self.expected[first]
