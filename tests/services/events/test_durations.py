"""Which events of a job have a duration that is counted."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.events import ACKED, DELIVERED, FAST_ACKED, KIND_NAMES, QUEUED
from disque_tx.messages.records import JobRecord
from disque_tx.services.events.durations import DurationSink

JOB = JobRecord(b"D" * 40, b"q", b"b", (), 1, 2, delay_s=3, retry_s=4, repl=5)


class DurationTests(SynchronousTestCase):
    """The sink of one node."""

    def test_kinds(self) -> None:
        """Deliveries count as waits, both kinds of acknowledgements as runs, and nothing else."""
        found = {}
        for kind, name in enumerate(KIND_NAMES):
            sink = DurationSink()
            sink.job(kind, JOB, 0, 0, 2_000)
            counts = (sum(sink.wait.counts()), sum(sink.run.counts()))
            if counts != (0, 0):
                found[name] = counts
        names = [KIND_NAMES[kind] for kind in (DELIVERED, ACKED, FAST_ACKED)]
        self.assertEqual(dict(zip(names, [(1, 0), (0, 1), (0, 1)], strict=True)), found)

    def test_unknown(self) -> None:
        """A duration that is not known here counts nothing; one of no time counts."""
        sink = DurationSink()
        for elapsed_ms in (-1, 0):
            for kind in (DELIVERED, ACKED):
                sink.job(kind, JOB, 0, 0, elapsed_ms)
        self.assertEqual((1, 1), (sum(sink.wait.counts()), sum(sink.run.counts())))

    def test_others(self) -> None:
        """Events without a duration are taken, and change nothing."""
        sink = DurationSink()
        sink.added(JOB, 1, 2, 3, True)
        sink.moved(QUEUED, JOB, b"n" * 40)
        sink.paused(b"q", 1)
        sink.flushed(1)
        self.assertEqual((0, 0), (sum(sink.wait.counts()), sum(sink.run.counts())))
