"""What is queued at a clean stop is queued again at the next start (cluster protocol, section
14.7)."""

from __future__ import annotations

from collections.abc import Callable
from errno import EIO
from itertools import count

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.counting.flushing import FLUSH_LOADED
from disque_tx.services.machine.memoryfiles import MemoryFiles
from disque_tx.wire.files.queued import QueuedJobs, parse, render
from tests.engine.aof.bench import Bench, settings

LOG = "/data/disque.aof"
LIST = f"{LOG}.queued"


class QueuedCase(SynchronousTestCase):
    """One node that is stopped and started again."""

    def setUp(self) -> None:
        self.files = MemoryFiles()
        self.bench = Bench(self.files, settings())
        self.bench.start()

    def stop(self) -> None:
        """A clean stop, as the lifecycle does it."""
        self.bench.aof.flush_and_sync()
        self.bench.aof.stopService()
        self.bench.aof.queued.save()

    def start(self) -> None:
        """The next start, and the moment at which it serves."""
        self.load()
        while self.bench.aof.queued.resume():
            pass

    def load(self, away_ms: int = 1_000, monotonic: Callable[[], float] | None = None) -> None:
        """The next start, until the log is loaded."""
        wall_us = self.bench.wall_us
        self.bench = Bench(self.files, settings(), monotonic, seed=2)
        self.bench.wall_us = wall_us + away_ms * 1_000
        self.bench.begin()
        self.bench.start()

    def queued(self, name: bytes = b"q") -> list[bytes]:
        """The jobs in a queue, in order."""
        queue = self.bench.node.queues.get(name)
        return [] if queue is None else [job.id for job in queue.jobs.oldest(1_000)]

    def loaded(self, name: bytes = b"q") -> int:
        """How many jobs of a queue QCOUNT counts as loaded."""
        node = self.bench.node
        return node.queue_queries.counts.of(name).numbers[-1]


class StopTests(QueuedCase):
    """A clean stop, then a start."""

    def test_in_order(self) -> None:
        """Jobs are back in their queues at once, in order, and nothing is counted as a delivery."""
        ids: list[bytes] = []
        self.bench.turn(lambda: ids.extend([self.bench.add(body=b"%d" % n) for n in range(20)]))
        self.stop()
        self.start()
        self.assertEqual((ids, 0), (self.queued(), self.loaded()))
        job = self.bench.node.jobs.get(ids[0])
        assert job is not None
        self.assertEqual((0, 0), (job.nacks, job.deliveries))

    def test_slices(self) -> None:
        """Many jobs are queued a part at a time, and a stop in between forgets none."""
        ids: list[bytes] = []
        self.bench.turn(lambda: ids.extend([self.bench.add() for _ in range(500)]))
        self.stop()
        self.load(monotonic=count().__next__)
        self.assertTrue(self.bench.aof.queued.resume())
        self.assertLess(len(self.queued()), 500)
        self.stop()
        self.start()
        self.assertEqual(ids, self.queued(b"q"))

    def test_retry_0(self) -> None:
        """A job that may be delivered once only is back if it was not delivered, and only then."""
        ids: list[bytes] = []
        self.bench.turn(lambda: ids.extend([self.bench.add(retry_s=0) for _ in range(2)]))
        self.bench.turn(self.bench.get)
        self.stop()
        self.start()
        self.assertEqual((ids[1:], 1), (self.queued(), self.loaded()))

    def test_crash(self) -> None:
        """Without a clean stop RETRY decides, and the jobs count as loaded until then."""
        self.bench.turn(self.bench.add, lambda: self.bench.add(retry_s=0))
        self.files.crash()
        self.start()
        self.assertEqual(([], 2), (self.queued(), self.loaded()))
        node = self.bench.node
        self.assertEqual(2, node.totals.loaded)
        self.bench.now_ms += 61_000
        self.bench.begin()
        node.run_due()
        self.assertEqual((1, 1), (len(self.queued()), self.loaded()))

    def test_read_once(self) -> None:
        """The list is gone from the disk before a job is queued: after a crash right behind the
        start nothing is queued by it again."""
        self.bench.turn(lambda: self.bench.add(retry_s=0))
        self.stop()
        self.assertTrue(LIST in self.files.paths())
        self.start()
        self.assertFalse(LIST in self.files.paths())
        self.files.crash()
        self.assertFalse(LIST in self.files.paths())
        self.start()
        self.assertEqual(([], 1), (self.queued(), self.loaded()))

    def test_nothing_queued(self) -> None:
        """A node without queued jobs leaves no list."""
        self.bench.turn(self.bench.add)
        self.bench.turn(self.bench.get)
        self.stop()
        self.assertFalse(LIST in self.files.paths())

    def test_no_log(self) -> None:
        """A node without a log writes no list at its stop, and does not complain about that."""
        files = MemoryFiles()
        bench = Bench(files, settings(appendonly=False))
        bench.turn(bench.add)
        bench.aof.queued.save()
        self.assertEqual(([], []), (files.paths(), bench.log.lines))

    def test_log_unchanged(self) -> None:
        """The log itself is the same, byte for byte: originals load it."""
        self.bench.turn(self.bench.add)
        before = self.files.content(LOG)
        self.stop()
        self.assertEqual(before, self.files.content(LOG))

    def test_flushed(self) -> None:
        """Loaded jobs do not come back after QFLUSH."""
        self.bench.turn(self.bench.add, self.bench.add)
        self.files.crash()
        self.start()
        self.bench.turn(
            lambda: self.bench.node.queue_queries.flush_queue(
                self.bench.client, b"q", FLUSH_LOADED, False, False
            )
        )
        self.bench.turn(self.bench.node.run_due)
        self.assertEqual((0, 0), (self.loaded(), len(self.bench.node.jobs)))


class UnusableTests(QueuedCase):
    """Lists that must not be used."""

    def setUp(self) -> None:
        super().setUp()
        self.bench.turn(self.bench.add)
        self.stop()

    def refused(self, why: str) -> None:
        """The node starts without the list, says why, and keeps it under another name."""
        self.start()
        self.assertEqual(([], 1), (self.queued(), self.loaded()))
        self.assertFalse(LIST in self.files.paths())
        lines = [text for text in self.bench.log.lines if why in text]
        self.assertEqual(1, len(lines), self.bench.log.lines)

    def test_damaged(self) -> None:
        """A damaged list queues nothing."""
        content = self.files.content(LIST)
        self.files.replace(LIST, content[:-20] + b"x" + content[-19:])
        self.refused("damaged: its checksum is wrong")

    def test_cut(self) -> None:
        """A list that was cut short queues nothing."""
        self.files.replace(LIST, self.files.content(LIST)[:40])
        self.refused("damaged: it has only 40 bytes")

    def test_other_log(self) -> None:
        """A log that another program has written to since does not belong to the list."""
        file = self.files.open(LOG)
        file.append(b"*2\r\n$6\r\nDELJOB\r\n$40\r\n" + b"x" * 40 + b"\r\n")
        file.close()
        self.refused("belongs to another log")

    def test_cannot_be_removed(self) -> None:
        """A list that may stay on the disk queues nothing, for its jobs could be delivered
        twice."""
        self.load()
        self.files.sync_error = EIO
        self.bench.aof.queued.resume()
        self.assertEqual(([], 1), (self.queued(), self.loaded()))


class FileTests(SynchronousTestCase):
    """The bytes of the list."""

    def test_round_trip(self) -> None:
        """What is written is read."""
        ids = [b"D-%038d" % number for number in range(3)]
        found = parse(render(QueuedJobs(7, b"h" * 16, 123, ids)))
        self.assertEqual(
            (7, b"h" * 16, 123, ids),
            (found.log_bytes, found.log_digest, found.unix_ms, found.ids),
        )
