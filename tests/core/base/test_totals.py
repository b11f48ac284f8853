"""The counters of INFO: every way into a queue, to a client, and out of the node."""

from __future__ import annotations

from disque_tx.core.base.totals import Totals
from disque_tx.core.eviction import evict
from disque_tx.core.queues.queues import Queues
from disque_tx.messages.bus import QueueSignal
from disque_tx.messages.bustypes import DELJOB, NEEDJOBS, SETACK, WORKING
from tests.core.bench import NodeCase
from tests.core.peerbench import B, PeerCase

_NAMES = (
    *("added", "delivered", "acked", "nacked", "requeued", "expired", "evicted", "dropped"),
    *("queued", "in_flight"),
)


def counted(totals: Totals) -> dict[str, int]:
    """The counters that are not zero."""
    values = {name: int(getattr(totals, name)) for name in _NAMES}
    return {name: value for name, value in values.items() if value}


class TotalsTests(NodeCase):
    """One node."""

    def assert_totals(self, **expected: int) -> None:
        """Exactly these counters are not zero."""
        self.assertEqual(expected, counted(self.node.totals))

    def test_usual_life(self) -> None:
        """A job is added, queued, delivered, held by a client, and finally acknowledged."""
        job_id = self.add()
        self.assert_totals(added=1, queued=1)
        self.get(b"q")
        self.assert_totals(added=1, delivered=1, in_flight=1)
        self.node.acknowledge([job_id])
        self.assert_totals(added=1, delivered=1, acked=1)

    def test_waiting_client(self) -> None:
        """A job that goes directly to a waiting client counts as held by it."""
        self.wait(b"q")
        job_id = self.add()
        self.assert_totals(added=1, delivered=1, in_flight=1)
        self.node.fast_acknowledge([job_id])
        self.assert_totals(added=1, delivered=1, acked=1)

    def test_again(self) -> None:
        """NACK and RETRY queue a job again, and the client no longer counts as holding it."""
        job_id = self.add(retry_s=10)
        self.get(b"q")
        self.node.enqueue([job_id], True)
        self.assert_totals(added=1, delivered=1, nacked=1, queued=1)
        self.get(b"q")
        self.pass_ms(11_000)
        self.assert_totals(added=1, delivered=2, nacked=1, requeued=1, queued=1)

    def test_by_command(self) -> None:
        """ENQUEUE and DEQUEUE move jobs, DELJOB drops them."""
        job_id = self.add()
        self.node.dequeue([job_id])
        self.assert_totals(added=1)
        self.node.enqueue([job_id], False)
        self.assert_totals(added=1, requeued=1, queued=1)
        self.node.delete([job_id])
        self.assert_totals(added=1, requeued=1, dropped=1)

    def test_delay(self) -> None:
        """A delayed job is in no queue yet, and its first queueing is not counted as a requeue."""
        self.add(delay_s=5)
        self.assert_totals(added=1)
        self.pass_ms(5_100)
        self.assert_totals(added=1, queued=1)

    def test_expired(self) -> None:
        """A job that expires in the queue, or while a client holds it, is counted once."""
        self.add(ttl_s=5, retry_s=0)
        self.add(ttl_s=5, retry_s=0)
        self.get(b"q")
        self.pass_ms(5_100)
        self.assert_totals(added=2, delivered=1, expired=2)

    def test_expired_while_fetching(self) -> None:
        """So is one that a GETJOB finds expired before the timer does."""
        self.add(ttl_s=5, retry_s=0)
        self.begin(self.now_ms + 5_100, self.wall_us + 5_100_000)
        self.assertEqual([], self.get(b"q"))
        self.assert_totals(added=1, expired=1)

    def test_evicted(self) -> None:
        """An evicted job counts as neither expired nor dropped."""
        self.add(retry_s=0)
        self.get(b"q")
        self.node.memory.limit = 100
        evict(self.node, True, lambda: 0.0)
        self.assert_totals(added=1, delivered=1, evicted=1)

    def test_flush(self) -> None:
        """An empty node has no queued or delivered jobs."""
        self.add()
        self.add()
        self.get(b"q")
        self.node.flush_all()
        self.assert_totals(added=2, delivered=1)

    def test_reset(self) -> None:
        """CONFIG RESETSTAT resets totals, but not current numbers."""
        self.add()
        self.add()
        self.get(b"q")
        self.node.totals.reset()
        self.assert_totals(queued=1, in_flight=1)


class PeerTotalsTests(PeerCase):
    """Several nodes."""

    def copied(self) -> bytes:
        """A queued job of which B holds a copy, too."""
        job_id = self.replicated(B).id
        self.assertEqual({"added": 1, "queued": 1}, counted(self.node.totals))
        return job_id

    def test_acknowledged_elsewhere(self) -> None:
        """A job that a client of another node acknowledged is no longer held by a client here."""
        job_id = self.copied()
        self.get(b"q")
        self.receive_signal(B, SETACK, job_id, 1)
        self.assertEqual({"added": 1, "delivered": 1}, counted(self.node.totals))

    def test_deleted_elsewhere(self) -> None:
        """A copy that another node deletes does not count as dropped here."""
        self.receive_signal(B, DELJOB, self.copied())
        self.assertEqual({"added": 1}, counted(self.node.totals))

    def test_worked_on_elsewhere(self) -> None:
        """A job that a worker of another node holds leaves the queue without counting as
        delivered."""
        self.receive_signal(B, WORKING, self.copied())
        self.assertEqual({"added": 1}, counted(self.node.totals))

    def test_given_away(self) -> None:
        """A job that moves to another node is not held by a client here."""
        self.copied()
        self.receive(B, QueueSignal(NEEDJOBS, b"q", 1))
        self.assertEqual({"added": 1}, counted(self.node.totals))

    def test_taken_back(self) -> None:
        """A job with too few copies counts as dropped."""
        self.begin_add(2, timeout_ms=100)
        self.pass_ms(200)
        self.assertEqual({"added": 1, "dropped": 1}, counted(self.node.totals))


class LongestWaitTests(NodeCase):
    """How long the oldest job at the front of a queue has been waiting."""

    def waited_ms(self) -> int:
        """The value that INFO reports."""
        queues: Queues = self.node.queues
        return int(queues.longest_wait_ms(self.now_ms))

    def test_of_several_queues(self) -> None:
        """The longest wait of all queues, or -1 if all are empty."""
        self.assertEqual(-1, self.waited_ms())
        self.add(b"a")
        self.pass_ms(500)
        self.add(b"b")
        self.pass_ms(200)
        self.assertEqual(700, self.waited_ms())
        self.get(b"a")
        self.assertEqual(200, self.waited_ms())

    def test_delay_does_not_count(self) -> None:
        """A delayed job waits from the moment it is queued."""
        self.add(delay_s=60)
        self.pass_ms(60_000)
        self.pass_ms(300)
        self.assertEqual(300, self.waited_ms())

    def test_very_many_queues(self) -> None:
        """With very many queues the value is from the last complete sweep, so that INFO stays
        fast."""
        self.add(b"first")
        self.pass_ms(500)
        for number in range(1_500):
            self.add(b"q%d" % number)
        self.assertEqual(-1, self.waited_ms())
        while self.node.queues.sweep(self.now_ms, 200) == 0 and self.waited_ms() < 0:
            pass
        self.assertEqual(500, self.waited_ms())
