"""Queues: created on first use, removed when they are idle (client protocol, 13.7)."""

from __future__ import annotations

from disque_tx.core.queues.queues import PAUSE_IN, PAUSE_NONE
from tests.core.bench import NodeCase

ALL = 1 << 30


class IdleTests(NodeCase):
    """When a queue is removed."""

    def sweep(self, limit: int = ALL) -> int:
        return self.node.queues.sweep(self.now_ms, limit)

    def test_limit_by_memory_level(self) -> None:
        """An empty queue lives 300 s; 10 s above 75 % of memory, 2 s above 95 %."""
        for used, limit_ms in ((0, 300_000), (800_000, 10_000), (960_000, 2_000)):
            self.node.memory.limit = 1_000_000
            self.get(b"q")
            self.node.memory.used += used
            self.pass_ms(limit_ms - 1)
            self.assertEqual(0, self.sweep(), used)
            self.pass_ms(1)
            self.assertEqual(1, self.sweep(), used)
            self.node.memory.used -= used
        self.assertEqual(0, self.node.used_memory())

    def test_in_use(self) -> None:
        """Queues with jobs, waiting clients, or a pause are never removed."""
        self.add(b"full")
        client = self.wait(b"waited-for")
        self.node.pause(b"paused", PAUSE_IN)
        self.pass_ms(3_600_000)
        self.assertEqual(0, self.sweep())
        self.node.client_gone(client)
        self.node.pause(b"paused", PAUSE_NONE)
        self.get(b"full")
        self.assertEqual(2, self.sweep())
        self.assertIsNotNone(self.node.queues.get(b"full"))

    def test_use(self) -> None:
        """Enqueues and deliveries count as use; GETJOB on an empty queue does not."""
        self.add(b"q", retry_s=0)
        self.pass_ms(299_000)
        self.assertEqual(1, len(self.get(b"q")))
        self.pass_ms(299_000)
        self.assertEqual([], self.get(b"q"))
        self.assertEqual(0, self.sweep())
        self.pass_ms(1_000)
        self.assertEqual(1, self.sweep())

    def test_enqueues_are_use(self) -> None:
        """A queue whose jobs were all deleted lives on from the last enqueue."""
        self.get(b"q")
        self.pass_ms(299_000)
        self.node.delete([self.add(b"q")])
        self.pass_ms(299_000)
        self.assertEqual(0, self.sweep())
        self.pass_ms(1_000)
        self.assertEqual(1, self.sweep())

    def test_statistics_start_again(self) -> None:
        """A queue that is created again starts with new statistics."""
        self.add(b"q", retry_s=0)
        self.get(b"q")
        self.pass_ms(300_000)
        self.sweep()
        self.get(b"q")
        queue = self.node.queues.get(b"q")
        assert queue is not None
        self.assertEqual((0, 0, self.now_ms), (queue.jobs_in, queue.jobs_out, queue.created_ms))

    def test_bounded(self) -> None:
        """One sweep examines few of many queues, and repeated sweeps examine all of them."""
        for number in range(3000):
            self.node.queues.obtain(b"q%d" % number, self.now_ms)
        self.pass_ms(300_000)
        first = self.sweep(100)
        self.assertTrue(0 < first < 300)
        for _ in range(100):
            self.sweep(100)
        self.assertEqual((0, 0), (len(self.node.queues), self.node.used_memory()))

    def test_from_the_start_after_a_flush(self) -> None:
        """After FLUSHALL in the middle of a sweep, the next sweep is a complete one."""
        for number in range(300):
            self.node.queues.obtain(b"old%d" % number, self.now_ms)
        self.sweep(100)
        self.node.flush_all()
        for number in range(300):
            self.node.queues.obtain(b"new%d" % number, self.now_ms)
        self.pass_ms(300_000)
        self.assertEqual((300, 0), (self.sweep(), len(self.node.queues)))

    def test_delayed_job(self) -> None:
        """A delayed job recreates its queue if it was removed meanwhile."""
        self.get(b"q")
        self.add(b"q", delay_s=400)
        self.pass_ms(300_000)
        self.assertEqual(1, self.sweep())
        self.pass_ms(100_000)
        self.assertEqual(1, self.length(b"q"))
