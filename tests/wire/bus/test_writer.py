"""How much waits to be sent over the bus."""

from __future__ import annotations

from struct import unpack_from

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.bus import NOREPLY, Gossip, JobCopy
from disque_tx.messages.bustypes import BULK, DELJOB, GOTJOB, REPLJOB, SETACK
from disque_tx.wire.bus.bulk import RUN_BYTES
from disque_tx.wire.bus.writer import BusWriter
from tests.wire.bus.test_bulk import SENDER, a_job, job_id


class PendingTests(SynchronousTestCase):
    """What waits is counted, for a node that reads nothing is disconnected when it is too much."""

    def setUp(self) -> None:
        self.written: list[BusWriter] = []
        self.writer = BusWriter(self.written)

    def send(self) -> None:
        """Send messages of each kind, and one at the end that is in no bulk."""
        for number in range(5):
            self.writer.signal(SENDER, GOTJOB, job_id(number), 0)
        self.writer.signal(SENDER, SETACK, job_id(1), 3)
        self.writer.copy(SENDER, JobCopy(a_job(1, b"x" * 1_000), 60), NOREPLY)
        self.writer.copy(SENDER, JobCopy(a_job(2), 60), 0)
        self.writer.signal(SENDER, DELJOB, job_id(2), 0)
        gossip = Gossip(0, [])
        SENDER.sign(gossip)
        self.writer.send(gossip)

    def test_one_by_one(self) -> None:
        """Messages that are sent one by one are counted to the byte."""
        self.send()
        pending = int(self.writer.pending_bytes)
        self.assertEqual(len(self.writer.take()), pending)
        self.assertEqual(0, self.writer.pending_bytes)

    def test_bulk(self) -> None:
        """Those of a bulk are counted but for the starts of its five runs."""
        self.writer.bulk = True
        self.send()
        pending = int(self.writer.pending_bytes)
        self.assertEqual(len(self.writer.take()), pending + 5 * RUN_BYTES)
        self.assertEqual(0, self.writer.pending_bytes)

    def test_grows(self) -> None:
        """Each message counts at once, before its bulk has ended."""
        self.writer.bulk = True
        for number in range(3):
            self.writer.signal(SENDER, GOTJOB, job_id(number), 0)
            self.assertEqual(44 * (number + 1), self.writer.pending_bytes)
        self.writer.copy(SENDER, JobCopy(a_job(1, b"x" * 1_000), 60), 0)
        self.assertGreater(int(self.writer.pending_bytes), 44 * 3 + 1_000)

    def test_end_of_bulks(self) -> None:
        """A copy that is sent by itself ends the bulk before it: all arrive in their order."""
        self.writer.bulk = True
        for number in (1, 2):
            self.writer.signal(SENDER, GOTJOB, job_id(number), 0)
        self.writer.bulk = False
        self.writer.copy(SENDER, JobCopy(a_job(3), 60), 0)
        self.writer.bulk = True
        for number in (4, 5):
            self.writer.signal(SENDER, GOTJOB, job_id(number), 0)
        data, kinds = self.writer.take(), []
        while data:
            size, kind = unpack_from(">4xI4xH", data)
            kinds.append(kind)
            data = data[size:]
        self.assertEqual([BULK, REPLJOB, BULK], kinds)

    def test_listed(self) -> None:
        """The writer is in the list of those to be flushed once for all that waits, and again
        after it was taken."""
        for bulk in (False, True):
            self.writer.bulk = bulk
            self.send()
            self.assertEqual([self.writer], self.written)
            self.writer.take()
            self.written.clear()
