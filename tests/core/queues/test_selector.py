"""Which queue comes first of those that match."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.queues.selector import Selector
from tests import profiles  # noqa: F401


def selector(*patterns: bytes, excepts: tuple[bytes, ...] = ()) -> Selector:
    """One with these globs."""
    return Selector(1, patterns, excepts)


class NameTests(SynchronousTestCase):
    """Which queues belong to it."""

    def test_globs(self) -> None:
        """Any of the patterns is enough, and any of the exceptions too much."""
        chosen = selector(b"mail:*", b"sms", b"?-[ab]", excepts=(b"*:test", b"mail:x*"))
        names = (b"mail:", b"mail:a", b"sms", b"1-b", b"mail:test", b"mail:xy", b"sms:", b"1-c")
        matching = [name for name in names if chosen.matches(name)]
        self.assertEqual([b"mail:", b"mail:a", b"sms", b"1-b"], matching)

    def test_literal_star(self) -> None:
        """An escaped star stands for itself."""
        self.assertTrue(selector(rb"a\*").matches(b"a*"))
        self.assertFalse(selector(rb"a\*").matches(b"ab"))

    def test_prefixes(self) -> None:
        """A pattern is found by what all its names begin with."""
        self.assertEqual({b"mail:", b"", b"sms"}, selector(b"mail:*", b"*x", b"sms").prefixes())

    def test_many_stars(self) -> None:
        """A pattern that tempts a matcher to try everything is answered at once."""
        self.assertFalse(selector(b"a*" * 500 + b"b").matches(b"a" * 5_000))


class OrderTests(SynchronousTestCase):
    """The heap."""

    def test_fewest_in_flight(self) -> None:
        """The queue with the fewest jobs in flight comes first, then the one served longest ago."""
        chosen = selector(b"*")
        chosen.offer(b"busy", 5, 1)
        chosen.offer(b"late", 2, 9)
        chosen.offer(b"early", 2, 3)
        order = []
        while (name := chosen.first()) is not None:
            order.append(name)
            chosen.withdraw()
        self.assertEqual([b"early", b"late", b"busy"], order)

    def test_better_place(self) -> None:
        """A queue with fewer jobs in flight than before moves up at once."""
        chosen = selector(b"*")
        chosen.offer(b"a", 5, 1)
        chosen.offer(b"b", 3, 1)
        chosen.offer(b"a", 2, 1)
        self.assertEqual(b"a", chosen.first())

    def test_worse_place(self) -> None:
        """A queue that was served since gets its place when it is about to be chosen."""
        chosen = selector(b"*")
        chosen.offer(b"a", 0, 1)
        chosen.offer(b"b", 1, 0)
        self.assertFalse(chosen.confirm(2, 5))
        self.assertEqual(b"b", chosen.first())
        self.assertTrue(chosen.confirm(1, 0))

    def test_forgotten(self) -> None:
        """After a flush nothing is left."""
        chosen = selector(b"*")
        chosen.offer(b"a", 0, 0)
        chosen.forget()
        self.assertIsNone(chosen.first())

    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=400))
    def test_right_queue(self, changes: list[tuple[int, int]]) -> None:
        """Whatever happened before, the chosen queue is one of the best, and the heap does not grow
        with what happened."""
        chosen = selector(b"*")
        numbers: dict[bytes, tuple[int, int]] = {}
        served = 0
        for which, in_flight in changes:
            name = b"%d" % which
            if name in numbers and in_flight > numbers[name][0]:
                served += 1
                numbers[name] = (in_flight, served)  # by being served: the heap is not told
            else:
                numbers[name] = (in_flight, numbers.get(name, (0, 0))[1])
                chosen.offer(name, *numbers[name])
            first = chosen.first()
            while first is not None and not chosen.confirm(*numbers[first]):
                first = chosen.first()
            assert first is not None
            self.assertEqual(min(numbers.values()), numbers[first])
