"""What a client knows of copies when its job is accepted, and which jobs count as lost."""

from __future__ import annotations

from disque_tx.core.jobs.job import BACKOFF
from disque_tx.sim.checkers.jobs import EnoughCopies, NothingLost
from disque_tx.sim.checkers.retries import EveryJobSettled
from disque_tx.sim.stage.history import Added, RecordedFlush
from tests.core.bench import make_job
from tests.sim.checkers.bench import HERE, THERE, CheckerCase, S


class EnoughCopiesTests(CheckerCase):
    """A job with two copies that was accepted a second after it was sent."""

    def accept(self, *holders: bytes) -> None:
        """The nodes that had a copy then."""
        added = Added(b"D", b"q", HERE, S, 2, 5, 7_200, 0, False, S, 2 * S, b"D")
        self.history.added[b"D"] = added
        self.run_.copies.seen[b"D"] = frozenset(holders)
        self.run_.copies.down[b"D"] = frozenset()

    def flush(self, at_s: float) -> None:
        """The queue is emptied."""
        us = int(at_s * S)
        self.history.flushes.append(RecordedFlush(b"q", b"any", True, us, THERE, us + 1_000, 1, {}))

    def test_enough(self) -> None:
        """As many nodes as the client asked for."""
        self.accept(HERE, THERE)
        self.assertEqual(0, self.found(EnoughCopies()))

    def test_too_few(self) -> None:
        """A copy that nobody has, and nobody had."""
        self.accept(HERE)
        self.assertEqual(1, self.found(EnoughCopies()))

    def test_flushed(self) -> None:
        """A node that ended the job because its queue was emptied meanwhile had a copy; one that
        was emptied before or afterwards is no excuse (seed 5000078)."""
        self.accept(HERE)
        self.flush(0.5)
        self.flush(2.5)
        self.assertEqual(1, self.found(EnoughCopies()))
        self.flush(1.5)
        self.assertEqual(0, self.found(EnoughCopies()))


class LostTests(CheckerCase):
    """A job with two copies that nobody got."""

    def test_letter_waits(self) -> None:
        """A job that came back too often, and whose dead letter cannot have two copies because a
        node leaves for good, is not lost; it is if it may be delivered, if no node has it, or if
        the letter could have its copies (seed 38459)."""
        for machine in self.run_.machines:
            machine.start()
        nodes = [node for _, node in self.run_.nodes()]
        job = make_job(1)
        job.place, job.deliveries = BACKOFF, 3
        nodes[0].policies.set(b"q", b"max-deliveries", b"3")
        added = Added(b"D", b"q", HERE, S, 2, 5, 7_200, 0, False, S, 2 * S, job.id)
        added.holders = frozenset({HERE})
        self.history.added[b"D"] = added
        for node in nodes[1:]:
            node.membership.set_leaving(True)
        self.assertEqual(1, self.found(NothingLost()))
        nodes[0].jobs.add(job)
        for checker in (NothingLost(), EveryJobSettled()):
            self.assertEqual(0, self.found(checker))
        job.deliveries = 2
        self.assertEqual(1, self.found(NothingLost()))
        job.deliveries = 3
        nodes[1].membership.set_leaving(False)
        self.assertEqual(1, self.found(NothingLost()))
