"""The points of one queue's history, in three rings."""

from __future__ import annotations

import sys

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.statistics.rings import NUMBERS, POINTS_MAX, STEPS_S, WIDTH, Record, Ring
from disque_tx.core.statistics.waits import BOUNDS_MS

_LEVELS = [5, 6, 7, 8]
_FOREVER = 1 << 40


def counts(added: int = 0, delivered: int = 0, bucket: int = 0) -> list[int]:
    """What happened in a step; each delivery waited up to the bound of this place."""
    found = [added, delivered, 0, 0]
    if delivered:
        found += [delivered * (place == bucket) for place in range(len(BOUNDS_MS) + 1)]
    return found


class RingTests(SynchronousTestCase):
    """One ring."""

    def setUp(self) -> None:
        self.ring = Ring(0)

    def rows(self) -> list[list[int]]:
        """Step, added and delivered of each point."""
        return [row[:3] for row in self.ring.between(0, _FOREVER)]

    def test_same_step(self) -> None:
        """What happens in a step is added up in one point, whose levels are the last ones; the next
        step begins from zero."""
        self.ring.put(70_000, counts(3), _LEVELS)
        self.ring.put(70_000, counts(4, 1), [1, 2, 3, 4])
        self.ring.put(70_001, counts(1), _LEVELS)
        first, second = self.ring.between(0, _FOREVER)
        self.assertEqual([70_000, 7, 1, 0, 0, 1, 2, 3, 0, 1, 4], first)
        self.assertEqual([70_001, 1, 0, 0, 0, 5, 6, 7, 0, 0, 8], second)

    def test_waits(self) -> None:
        """Waits of a step are those of all its parts, and none of the step before."""
        self.ring.put(1, counts(0, 98, 3), _LEVELS)
        self.ring.put(1, counts(0, 2, 9), _LEVELS)
        self.ring.put(2, counts(0, 1, 0), _LEVELS)
        p50, p99 = 1 + NUMBERS.index("wait_p50_ms"), 1 + NUMBERS.index("wait_p99_ms")
        first, second = self.ring.between(0, _FOREVER)
        self.assertEqual((8, 750), (first[p50], first[p99]))
        self.assertEqual((0, 1), (second[p50], second[p99]))

    def test_clock_set_back(self) -> None:
        """Points of a time that has not come yet are forgotten, and that of the same step is
        replaced."""
        for slot in (10, 11, 12):
            self.ring.put(slot, counts(slot), _LEVELS)
        self.ring.put(11, counts(5), _LEVELS)
        self.assertEqual([[10, 10, 0], [11, 5, 0]], self.rows())

    def test_old(self) -> None:
        """A ring has the points of its last steps: the one that many steps ago is gone."""
        most = POINTS_MAX[0]
        for slot in (1, 2, most):
            self.ring.put(slot, counts(1), _LEVELS)
        self.assertEqual([1, 2, most], [row[0] for row in self.rows()])
        self.ring.trim(most + 1)
        self.assertEqual([2, most], [row[0] for row in self.rows()])
        self.ring.trim(3 * most)
        self.assertEqual([], self.rows())

    def test_between(self) -> None:
        """The first and the last step that are asked for are among those found."""
        for slot in (1, 3, 5, 7):
            self.ring.put(slot, counts(1), _LEVELS)
        found = [row[0] for row in self.ring.between(3, 5)]
        self.assertEqual([3, 5], found)
        self.assertEqual([], self.ring.between(8, 9))

    def test_resumed(self) -> None:
        """A ring of a file goes on with its last point, if that is of the same step."""
        self.ring.resume()
        self.ring.put(1, counts(9), _LEVELS)
        self.ring.put(2, counts(3, 2, 0), _LEVELS)
        again = Ring(0)
        again.points = self.ring.points
        again.resume()
        again.put(2, counts(4), _LEVELS)
        self.assertEqual([[1, 9, 0], [2, 7, 2]], [row[:3] for row in again.between(0, _FOREVER)])


class RecordTests(SynchronousTestCase):
    """The record of one queue."""

    def test_rings(self) -> None:
        """A step is in each ring, at the step of that ring."""
        record = Record(b"q")
        record.put(180, counts(1), _LEVELS)
        record.put(181, counts(2), _LEVELS)
        found = [[row[:2] for row in ring.between(0, _FOREVER)] for ring in record.rings]
        self.assertEqual([[[180, 1], [181, 2]], [[30, 3]], [[2, 3]]], found)
        self.assertEqual((10, 60, 900), STEPS_S)

    def test_spans(self) -> None:
        """The rings cover an hour, a day and 14 days."""
        spans = [step * most for step, most in zip(STEPS_S, POINTS_MAX, strict=True)]
        self.assertEqual([3_600, 86_400, 1_209_600], spans)

    def test_weight(self) -> None:
        """What happened a day ago counts half as much, for each day in between."""
        day = 86_400 // 10
        record = Record(b"q")
        record.put(5 * day, counts(60, 4, 0), _LEVELS)
        record.put(6 * day - 1, counts(0), _LEVELS)
        self.assertEqual(64, record.weight)
        record.age(6 * day)
        self.assertEqual(32, record.weight)
        record.age(8 * day)
        self.assertEqual(8, record.weight)
        record.age(7 * day)
        self.assertEqual(8, record.weight)
        record.age(200 * day)
        self.assertEqual(0, record.weight)

    def test_first_day(self) -> None:
        """What a file says of the weight holds on the first day that comes, whichever that is."""
        record = Record(b"q")
        record.weight = 64
        record.age(5 * 8_640)
        self.assertEqual(64, record.weight)

    def test_trimmed(self) -> None:
        """Each ring forgets what is too old in its own steps; a record without points is empty."""
        record = Record(b"q")
        self.assertTrue(record.is_empty())
        record.put(90, counts(1), _LEVELS)
        left = []
        for seconds in (0, 3_600, 86_400, 14 * 86_400):
            record.trim(90 + seconds // 10)
            left.append([len(ring.points) // WIDTH for ring in record.rings])
        self.assertEqual([[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]], left)
        self.assertTrue(record.is_empty())
        record.put(90, counts(1), _LEVELS)
        record.trim(90 + 360)
        self.assertFalse(record.is_empty())

    def test_size(self) -> None:
        """What a record is said to take grows with its points and its name, and is not less than
        what it takes."""
        record = Record(b"q" * 100)
        empty = record.size()
        self.assertEqual(empty, Record(b"").size() + 100)
        for slot in range(100):
            record.put(90 + slot, counts(1, 1, 0), _LEVELS)
        points = sum(len(ring.points) for ring in record.rings) // WIDTH
        self.assertEqual(empty + points * 2 * WIDTH, record.size())
        taken = sum(sys.getsizeof(ring.points) for ring in record.rings)
        self.assertGreater(record.size(), taken)

    def test_usual_wait(self) -> None:
        """The greatest of the last day counts, but for the last hour; less than four quarters of
        an hour tell nothing, and those without deliveries do not count."""
        record = Record(b"q")
        quarter = 90
        now = 200 * quarter
        for ago, bucket in ((97, 12), (96, 3), (50, 9), (30, 3)):
            record.put(now - ago * quarter, counts(0, 10, bucket), _LEVELS)
        record.put(now - 20 * quarter, counts(1), _LEVELS)
        self.assertEqual(-1, record.usual_wait_ms(now))
        record.put(now - 4 * quarter, counts(0, 10, 3), _LEVELS)
        record.put(now - 3 * quarter, counts(0, 10, 12), _LEVELS)
        self.assertEqual(995, record.usual_wait_ms(now))
        self.assertEqual(9_944, record.usual_wait_ms(now + quarter))
