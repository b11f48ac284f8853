"""ADDJOB in a cluster: where an accepted job is stored, and what is refused (client protocol,
section 14; cluster protocol, section 10.6)."""

from __future__ import annotations

from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import GOTJOB
from disque_tx.messages.nodes import FAIL
from disque_tx.messages.records import ACTIVE, QUEUED
from tests.core.bench import ME
from tests.core.peerbench import B, C, D, PeerCase
from tests.core.test_node import BECAUSE, UNREACHABLE


class CountTests(PeerCase):
    """The number of copies, and which nodes hold them."""

    peers = (B, C, D)

    def holders(self, replicate: int) -> int:
        """The number of nodes that are sent the job at once, this one included."""
        client = self.begin_add(replicate)
        (wait,) = self.node.waiters.copies.values()
        self.node.client_gone(client)
        return len(wait.job.nodes)

    def test_replicate(self) -> None:
        """REPLICATE counts this node, and defaults to three in a cluster."""
        self.assertEqual([2, 3, 4, 3], [self.holders(count) for count in (2, 3, 4, -1)])

    def test_more_than_there_are(self) -> None:
        """More copies than reachable nodes are refused at once, and the job is sent to no node."""
        self.node.membership.nodes[D].flags |= FAIL
        self.node.membership.refresh()
        error = self.assertRaises(CommandError, self.begin_add, 4)
        self.assertEqual(("NOREPL", UNREACHABLE), (error.code, error.text))
        self.assertEqual([], self.sent_to(B) + self.sent_to(C) + self.sent_to(D))
        self.assert_nothing_left()

    def test_reachable_without_link(self) -> None:
        """A node whose link is temporarily down counts as reachable: the client waits."""
        for peer in self.peers:
            self.unlink(peer)
        client = self.begin_add(4)
        self.assertEqual([], self.replies(client))

    def test_one_copy(self) -> None:
        """With REPLICATE 1 the job is sent to no other node and no client waits, ASYNC or not."""
        for asynchronous in (False, True):
            job_id = self.status(self.begin_add(1, asynchronous=asynchronous))
            self.assertEqual(((ME,), QUEUED), (self.job(job_id).nodes, self.job(job_id).state))
        self.assertEqual([], self.sent_to(B) + self.sent_to(C) + self.sent_to(D))
        self.assertEqual(({}, {}), self.pending())

    def pending(self) -> tuple[object, object]:
        """Jobs that still need copies."""
        return self.node.waiters.copies, self.node.replication.asynchronous

    def test_delayed_asynchronous(self) -> None:
        """A delayed ASYNC job is copied at once, and the copies carry its delay."""
        job = self.job(self.status(self.begin_add(2, delay_s=9, asynchronous=True)))
        copy = self.sent_jobs(job.nodes[1]).jobs[0]
        self.assertEqual((ACTIVE, 9, job.nodes), (copy.state, copy.delay_s, copy.nodes))
        self.pass_ms(9_000)
        self.assertEqual([job.id], self.get(b"q"))

    def test_waiting_jobs_count(self) -> None:
        """Jobs that wait for copies are registered and use memory, but are in no queue."""
        self.begin_add(2)
        self.assertEqual((1, 0), (len(self.node.jobs), self.length()))
        self.assertTrue(self.node.used_memory() > 0)

    def test_refused_before_copies_are_sent(self) -> None:
        """MAXLEN and a paused queue refuse the job before any copy is sent."""
        self.node.pause(b"q", PAUSE_IN)
        for asynchronous in (False, True):
            with self.assertRaises(CommandError):
                self.begin_add(2, asynchronous=asynchronous)
        self.assertEqual([], self.sent_to(B) + self.sent_to(C) + self.sent_to(D))


class OutsideTests(PeerCase):
    """A node that stores no jobs itself because it is leaving."""

    def setUp(self) -> None:
        super().setUp()
        self.leave()

    def test_all_copies_elsewhere(self) -> None:
        """The other nodes can be enough; if exactly one copy is missing, the error says why."""
        self.begin_add(2)
        error = self.assertRaises(CommandError, self.begin_add, 3)
        self.assertEqual(("NOREPL", BECAUSE + "I'm leaving the cluster"), (error.code, error.text))
        error = self.assertRaises(CommandError, self.begin_add, 4)
        self.assertEqual(UNREACHABLE, error.text)

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 may be stored on another node, as a single copy."""
        client = self.begin_add(1, retry_s=0)
        self.assertEqual([], self.replies(client))
        self.assertEqual(1, len(self.node.waiters.copies))

    def test_no_reachable_node(self) -> None:
        """An accepted ASYNC job is kept as long as no other node can be reached."""
        for peer in self.peers:
            self.unlink(peer)
        job_id = self.status(self.begin_add(1, asynchronous=True))
        self.pass_ms(5_000)
        self.assertEqual([], self.get(b"q"))
        self.link(B)
        self.pass_ms(60)
        self.assertEqual(["REPLJOB"], self.sent_names(B))
        self.receive_signal(B, GOTJOB, job_id)
        self.assertEqual(["ENQUEUE"], self.sent_names(B))
        self.assert_nothing_left()

    def test_begun_before(self) -> None:
        """A job whose client was already waiting when this node began to leave is still stored
        here."""
        self.node.membership.set_leaving(False)
        client = self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        self.leave()
        self.node.release_leaving()
        self.assertEqual([], self.replies(client))
        self.receive_signal(wait.job.nodes[1], GOTJOB, wait.job.id)
        self.assertEqual(wait.job.id, self.status(client))
        self.assertEqual([wait.job.id], self.get(b"q"))
