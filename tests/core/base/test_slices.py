"""Long work in slices, and what each node may have at once."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.base.slices import SlicedTask, SlicedWork
from disque_tx.core.tables.shares import Shares


class Task(SlicedTask):
    """Needs some parts. ``ended``: how it ended; ``fault``: met by the next part."""

    def __init__(self, name: str, parts: int, done: list[str]) -> None:
        self.name = name
        self.ended: list[str] = []
        self.fault: Exception | None = None
        self._parts = parts
        self._done = done

    def step(self, now_ms: int) -> bool:
        self._done.append(f"{self.name}{now_ms}")
        if self.fault is not None:
            raise self.fault
        self._parts -= 1
        return self._parts == 0

    def over(self) -> None:
        self.ended.append("over")

    def failed(self) -> None:
        self.ended.append("failed")


class SlicesTests(SynchronousTestCase):
    """Several tasks."""

    def setUp(self) -> None:
        self.work = SlicedWork()
        self.done: list[str] = []

    def add(self, name: str, parts: int) -> Task:
        """A task under way."""
        task = Task(name, parts, self.done)
        self.work.add(task)
        return task

    def turn(self, now_ms: int) -> str:
        """The parts that a turn did, in order."""
        self.done.clear()
        self.work.run(now_ms)
        return " ".join(self.done)

    def test_in_turn(self) -> None:
        """Four parts of different tasks are done per turn, and those that are not done get their
        next turn after the others; each is told once that it is over."""
        self.assertFalse(self.work.busy())
        tasks = [
            self.add(name, parts) for name, parts in zip("abcdef", (1, 2, 3, 1, 1, 1), strict=True)
        ]
        self.work.add(tasks[1])
        self.assertEqual((True, 6), (self.work.busy(), self.work.count()))
        self.assertEqual("a1 b1 c1 d1", self.turn(1))
        self.assertEqual("e2 f2 b2 c2", self.turn(2))
        self.assertEqual("c3", self.turn(3))
        self.assertEqual("", self.turn(4))
        self.assertEqual([["over"]] * 6, [task.ended for task in tasks])

    def test_once_per_turn(self) -> None:
        """A task alone does one part per turn."""
        self.add("a", 9)
        self.assertEqual(["a1", "a2"], [self.turn(1), self.turn(2)])

    def test_fault(self) -> None:
        """A fault ends the task that met it, which is told, and is raised; the others go on."""
        first, broken, last = self.add("a", 5), self.add("b", 5), self.add("c", 5)
        broken.fault = ZeroDivisionError("oops")
        self.assertRaises(ZeroDivisionError, self.work.run, 1)
        self.assertEqual(([], ["failed"], []), (first.ended, broken.ended, last.ended))
        self.assertEqual("c2 a2", self.turn(2))

    def test_forgotten(self) -> None:
        """Tasks that are forgotten do nothing more, and may begin again."""
        task = self.add("a", 5)
        self.work.clear()
        self.assertEqual(("", 0), (self.turn(1), self.work.count()))
        self.work.add(task)
        self.assertEqual("a2", self.turn(2))


class SharesTests(SynchronousTestCase):
    """Two of something per node and millisecond."""

    def test_at_once(self) -> None:
        """Each node has its share, whatever others had, and again in another millisecond, also one
        that is earlier."""
        shares = Shares(2)
        found = [shares.take(node, ms) for ms in (5, 6, 4) for node in (b"a", b"a", b"b", b"a")]
        self.assertEqual([True, True, True, False] * 3, found)
