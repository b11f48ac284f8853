"""What happened in queues, over time."""

from __future__ import annotations

import sys
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.statistics.flows import FLOWS_MAX
from disque_tx.core.statistics.history import BYTES_MAX
from disque_tx.core.statistics.rings import NUMBERS, POINTS_MAX, STEPS_S, packed, unpacked
from tests.core.bench import NodeCase

_STEP_MS = STEPS_S[0] * 1_000


class NumberTests(SynchronousTestCase):
    """Numbers in 16 bits."""

    def test_precise(self) -> None:
        """Small numbers stay as they are, and no chart shows the error of a large one."""
        for number in range(3_000):
            self.assertLessEqual(unpacked(packed(number)), number)
            self.assertTrue(number >= 2_048 or unpacked(packed(number)) == number, number)
        for number in (2_048, 65_535, 123_456_789, 2**40 + 12_345, 2**59):
            self.assertTrue(number * 0.999 <= unpacked(packed(number)) <= number, number)

    def test_bounded(self) -> None:
        """Every code is a number that fits into a machine word, and no number needs more bits."""
        self.assertTrue(all(0 <= unpacked(code) < 2**62 for code in range(2**16)))
        self.assertTrue(all(0 <= packed(number) < 2**16 for number in (-1, 2**62, 2**90)))


class HistoryTests(NodeCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.history = self.node.state.history
        self.history.sample(FLOWS_MAX)

    def step(self, seconds: int = STEPS_S[0]) -> None:
        """Let a step end."""
        self.begin(self.now_ms + seconds * 1000, self.wall_us + seconds * 1_000_000)
        self.history.sample(FLOWS_MAX)

    def column(self, number: str, name: bytes | None = b"q", ring: int = 0) -> list[int]:
        """One number of all points."""
        rows = self.history.between(name, ring, 0, 1 << 40)
        return [row[1 + NUMBERS.index(number)] for row in rows]

    def test_counted(self) -> None:
        """What happened in a step stands in its point: who looks later sees when jobs came, went,
        were done and failed."""
        ids = [self.add(retry_s=10) for _ in range(4)]
        self.step()
        self.get(b"q", count=3)
        self.node.acknowledge(ids[:1])
        self.node.enqueue(ids[1:2], True)
        self.step()
        self.assertEqual([4, 0], self.column("added"))
        self.assertEqual([0, 3], self.column("delivered"))
        self.assertEqual([0, 1], self.column("acked"))
        self.assertEqual([0, 1], self.column("failed"))
        self.assertEqual([4, 2], self.column("queued"))
        self.assertEqual([0, 1], self.column("in_flight"))
        self.assertEqual(self.column("added"), self.column("added", None))

    def test_times(self) -> None:
        """A point says when its step began, by the wall clock: charts show days and hours."""
        began_s = self.wall_us // 1_000_000 // STEPS_S[0] * STEPS_S[0]
        self.add()
        for _ in range(2):
            self.step()
        rows = self.history.between(b"q", 0, 0, 1 << 40)
        self.assertEqual([began_s, began_s + STEPS_S[0]], [row[0] * STEPS_S[0] for row in rows])

    def test_timed_out(self) -> None:
        """A job whose RETRY passes has failed, too: its worker never said so."""
        self.add(retry_s=5)
        self.get(b"q")
        self.pass_ms(6_000)
        self.step()
        self.assertEqual([1], self.column("failed"))

    def test_waits(self) -> None:
        """Half of the jobs waited for as long as the median says at most; a stuck queue shows the
        age of its first job."""
        self.add()
        self.begin(self.now_ms + 4_000, self.wall_us + 4_000_000)
        self.get(b"q")
        self.add()
        self.step(6)
        self.assertEqual([6_000], self.column("oldest_ms"))
        (median_ms,) = self.column("wait_p50_ms")
        self.assertTrue(2_500 < median_ms <= 5_000, median_ms)

    def test_longer_rings(self) -> None:
        """Minutes and quarters of an hour are sums of their steps, and hold the last levels."""
        for _ in range(12):
            self.add()
            self.step()
        self.assertEqual(12, sum(self.column("added", ring=1)))
        self.assertEqual(12, sum(self.column("added", ring=2)))
        self.assertEqual(12, self.column("queued", ring=2)[-1])

    def test_old_is_forgotten(self) -> None:
        """An hour has so many points and no more."""
        for _ in range(POINTS_MAX[0] + 20):
            self.add()
            self.step()
        self.assertEqual(POINTS_MAX[0], len(self.column("added")))

    def test_idle(self) -> None:
        """A queue in which nothing happens costs nothing: it has no points, and is not counted."""
        self.node.acknowledge([self.add()])
        for _ in range(5):
            self.step()
        self.assertEqual([1, 0], self.column("added"))
        self.assertEqual(0, len(self.node.state.flows.table))
        self.assertEqual([1, 0, 0, 0, 0], self.column("added", None))

    def test_clock_set_back(self) -> None:
        """There is one point per step, in order, whatever the clock does."""
        for _ in range(5):
            self.add()
            self.step()
        self.begin(self.now_ms, self.wall_us - 30_000_000)
        self.add()
        self.step()
        slots = [row[0] for row in self.history.between(b"q", 0, 0, 1 << 40)]
        self.assertEqual(sorted(set(slots)), slots)

    def test_many_queues(self) -> None:
        """No queue is counted beyond the bound; those that are much used are counted in any
        case."""
        for number in range(FLOWS_MAX + 50):
            self.add(b"idle-%d" % number)
        self.step()
        for _ in range(3):
            for _ in range(5):
                self.add(b"busy")
            self.step()
        self.assertLessEqual(len(self.node.state.flows.table), FLOWS_MAX)
        self.assertEqual([5, 5, 5], self.column("added", b"busy"))
        self.assertEqual(FLOWS_MAX + 50, self.column("added", None)[0])

    def test_sliced(self) -> None:
        """Samples of many queues are taken some at a time, and none is left out."""
        for number in range(90):
            self.add(b"%d" % number)
        self.begin(self.now_ms + _STEP_MS, self.wall_us + _STEP_MS * 1000)
        for _ in range(9):
            self.history.sample(10)
        self.assertEqual(90, len(self.history.records))

    def test_off(self) -> None:
        """Who wants no history has none, and what there was is gone."""
        self.add()
        self.step()
        self.history.set_active(False)
        self.add()
        self.step()
        self.assertEqual(([], []), (self.column("added"), self.column("added", None)))

    def test_bounded(self) -> None:
        """However many queues there are, what is remembered of them fits into 4 MiB; the least
        busy one is forgotten first."""
        for round_ in range(4):
            for number in range(900):
                self.add(b"queue-%d-%d" % (round_, number))
            for _ in range(50):
                self.add(b"busy")
            self.step()
            self.node.flush_all()
            self.step()
        self.assertLessEqual(self.history.size, BYTES_MAX)
        self.assertLess(len(self.history.records), 3_600)
        self.assertEqual(8, len(self.column("added", b"busy")))
        taken = sum(map(_bytes_of, self.history.records.values()))
        self.assertLess(taken, self.history.size + 400_000)

    def test_stored(self) -> None:
        """What was stored is there after a restart, and the step under way goes on."""
        self.add()
        self.step()
        rows = self.history.stored()
        before = self.column("added", ring=2)
        self.node = self.new_node()
        self.begin(self.now_ms, self.wall_us)
        self.history = self.node.state.history
        self.history.sample(FLOWS_MAX)
        self.history.load(rows)
        self.assertEqual([1], self.column("added"))
        self.add()
        self.step()
        self.assertEqual([1, 1], self.column("added"))
        self.assertEqual([before[0] + 1], self.column("added", ring=2))


def _bytes_of(record: Any) -> int:
    """What a record really takes."""
    parts = [record, record.rings, record.data]
    for ring in record.rings:
        parts += [ring, ring.points, ring._sums, ring._waits]
    return sum(map(sys.getsizeof, parts))
