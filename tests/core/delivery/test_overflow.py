"""``overflow drop-oldest``: a queue keeps its newest jobs."""

from __future__ import annotations

from disque_tx.commands.base.values import Status
from disque_tx.core.queues.queues import PAUSE_OUT
from disque_tx.messages import events
from disque_tx.messages.bustypes import GOTJOB
from disque_tx.messages.records import ACKED, QUEUED
from tests.core.bench import NodeCase
from tests.core.peerbench import B, PeerCase
from tests.core.recordedevents import RecordedEvents


class DropOldestTests(NodeCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.limit(b"q", 2)

    def limit(self, name: bytes, most: int) -> None:
        """At most so many jobs in a queue."""
        self.node.policies.set(name, b"overflow", b"drop-oldest")
        self.node.policies.set(name, b"max-length", b"%d" % most)

    def test_oldest_ends(self) -> None:
        """Producers are never refused; the oldest job is gone from node and log, and counted."""
        first, second, third = self.add(), self.add(), self.add()
        self.assertEqual([second, third], self.get(b"q", count=9))
        self.assertIsNone(self.node.jobs.get(first))
        self.assertIn(("delete", first), self.log.lines)
        self.assertEqual((1, 0), (self.node.totals.overflowed, self.node.totals.acked))

    def test_event(self) -> None:
        """The event log says why a job is gone."""
        recorded = self.node.outbox.events = RecordedEvents()
        first = self.add()
        self.add()
        recorded.take()
        self.add()
        self.assertIn(("deleted", "overflow", 0, -1), recorded.take())
        self.assertIsNone(self.node.jobs.get(first))
        self.assertEqual("overflow", events.REASON_NAMES[events.OVERFLOW])

    def test_waiting_clients_first(self) -> None:
        """A job that a client waits for is delivered, however short the queue must be."""
        self.limit(b"q", 1)
        clients = [self.wait(b"q") for _ in range(3)]
        for _ in clients:
            self.add()
        self.assertEqual([1, 1, 1], [len(self.replies(client)) for client in clients])
        self.assertEqual(0, self.node.totals.overflowed)

    def test_paused(self) -> None:
        """The limit holds, too, while nothing is delivered."""
        self.node.pause(b"q", PAUSE_OUT)
        for _ in range(5):
            self.add()
        self.assertEqual(2, self.length())

    def test_requeued(self) -> None:
        """Jobs that come back after RETRY count like others."""
        job_id = self.add(retry_s=10)
        self.get(b"q")
        self.add(retry_s=1000)
        self.add(retry_s=1000)
        self.pass_ms(11_000)
        self.assertEqual(2, self.length())
        self.assertIsNone(self.node.jobs.get(job_id))

    def test_new_policy_on_a_long_queue(self) -> None:
        """A queue that is far too long is shortened in parts, so that other clients are served
        meanwhile."""
        for _ in range(1_200):
            self.add(b"long")
        self.limit(b"long", 1)
        self.add(b"long")
        self.assertEqual(701, self.length(b"long"))
        self.pass_ms(1)
        self.pass_ms(1)
        self.assertEqual(1, self.length(b"long"))
        self.assertEqual(1_200, self.node.totals.overflowed)
        self.assertFalse(self.node.state.slices.busy())

    def test_flushed_meanwhile(self) -> None:
        """DEBUG FLUSHALL while a queue is being shortened leaves nothing to do."""
        for _ in range(1_200):
            self.add(b"long")
        self.limit(b"long", 1)
        self.add(b"long")
        self.node.flush_all()
        self.pass_ms(1)
        self.add(b"long")
        self.add(b"long")
        self.assertEqual(1, self.length(b"long"))


class CopiesTests(PeerCase):
    """Jobs with copies."""

    peers = (B,)

    def test_copies_end(self) -> None:
        """The other holder gets to know that the job is done: it would come back otherwise."""
        self.node.policies.set(b"q", b"overflow", b"drop-oldest")
        self.node.policies.set(b"q", b"max-length", b"1")
        first = self.replicated(B)
        client = self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        self.clear_sent()
        self.receive_signal(B, GOTJOB, wait.job.id)
        self.assertEqual(wait.job.id, self.status(client))
        self.assertEqual(["SETACK"], self.sent_names(B))
        self.assertEqual((ACKED, QUEUED), (first.state, wait.job.state))

    def test_waiting_client(self) -> None:
        """Whoever waits for the end of such a job learns that it was deleted, not that it is done,
        although the other holder still has to confirm that."""
        self.node.policies.set(b"q", b"overflow", b"drop-oldest")
        self.node.policies.set(b"q", b"max-length", b"1")
        first = self.replicated(B)
        client = self.connect()
        self.node.queue_queries.wait_for_job(client, first.id, 0)
        self.add(replicate=1)
        self.assertEqual([Status(b"DELETED")], self.replies(client))
        self.assertEqual(ACKED, first.state)
