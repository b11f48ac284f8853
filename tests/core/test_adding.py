"""ADDJOB in a cluster: where an accepted job goes, and what is refused (client protocol, 14;
cluster protocol, 10.6)."""

from __future__ import annotations

from disque_tx.busmessages import GOTJOB
from disque_tx.core.queues import PAUSE_IN
from disque_tx.errors import CommandError
from disque_tx.messages import ACTIVE, QUEUED
from disque_tx.nodetable import FAIL
from tests.core.bench import ME
from tests.core.peerbench import B, C, D, PeerCase
from tests.core.test_node import BECAUSE, UNREACHABLE


class CountTests(PeerCase):
    """How many copies, and where."""

    peers = (B, C, D)

    def holders(self, replicate: int) -> int:
        """How many nodes get the job at once, this one included."""
        client = self.ask(replicate)
        (wait,) = self.node.waiters.copies.values()
        self.node.client_gone(client)
        return len(wait.job.nodes)

    def test_replicate(self) -> None:
        """REPLICATE counts this node, and is three in a cluster unless said otherwise."""
        self.assertEqual([2, 3, 4, 3], [self.holders(count) for count in (2, 3, 4, -1)])

    def test_more_than_there_are(self) -> None:
        """More copies than reachable nodes are refused at once, and nobody hears of the job."""
        self.node.membership.nodes[D].flags |= FAIL
        self.node.membership.refresh()
        error = self.assertRaises(CommandError, self.ask, 4)
        self.assertEqual(("NOREPL", UNREACHABLE), (error.code, error.text))
        self.assertEqual([], self.sent(B) + self.sent(C) + self.sent(D))
        self.assert_nothing_left()

    def test_reachable_without_link(self) -> None:
        """A node whose link is down for the moment counts: the client waits."""
        for peer in self.peers:
            self.unlink(peer)
        client = self.ask(4)
        self.assertEqual([], self.said(client))

    def test_one_copy(self) -> None:
        """With REPLICATE 1 nobody else hears of the job, and nobody waits, ASYNC or not."""
        for asynchronous in (False, True):
            job_id = self.status(self.ask(1, asynchronous=asynchronous))
            self.assertEqual(((ME,), QUEUED), (self.job(job_id).nodes, self.job(job_id).state))
        self.assertEqual([], self.sent(B) + self.sent(C) + self.sent(D))
        self.assertEqual(({}, {}), self.pending())

    def pending(self) -> tuple[object, object]:
        """Jobs that still need copies."""
        return self.node.waiters.copies, self.node.replication.asynchronous

    def test_delayed_asynchronous(self) -> None:
        """A delayed ASYNC job gets its copies at once, which know its delay."""
        job = self.job(self.status(self.ask(2, delay_s=9, asynchronous=True)))
        copy = self.told_jobs(job.nodes[1]).jobs[0]
        self.assertEqual((ACTIVE, 9, job.nodes), (copy.state, copy.delay_s, copy.nodes))
        self.pass_ms(9_000)
        self.assertEqual([job.id], self.get(b"q"))

    def test_waiting_jobs_count(self) -> None:
        """Jobs that wait for copies are registered and take memory, but are in no queue."""
        self.ask(2)
        self.assertEqual((1, 0), (len(self.node.jobs), self.length()))
        self.assertTrue(self.node.used_memory() > 0)

    def test_refused_before_anybody_hears(self) -> None:
        """MAXLEN and a paused queue refuse the job before a copy leaves."""
        self.node.pause(b"q", PAUSE_IN)
        for asynchronous in (False, True):
            with self.assertRaises(CommandError):
                self.ask(2, asynchronous=asynchronous)
        self.assertEqual([], self.sent(B) + self.sent(C) + self.sent(D))


class OutsideTests(PeerCase):
    """A node that keeps nothing itself."""

    def setUp(self) -> None:
        super().setUp()
        self.leave()

    def test_all_copies_elsewhere(self) -> None:
        """All others together can be enough; when just one copy is missing the reason is told."""
        self.ask(2)
        error = self.assertRaises(CommandError, self.ask, 3)
        self.assertEqual(("NOREPL", BECAUSE + "I'm leaving the cluster"), (error.code, error.text))
        error = self.assertRaises(CommandError, self.ask, 4)
        self.assertEqual(UNREACHABLE, error.text)

    def test_at_most_once(self) -> None:
        """RETRY 0 may be given away, as a single copy."""
        client = self.ask(1, retry_s=0)
        self.assertEqual([], self.said(client))
        self.assertEqual(1, len(self.node.waiters.copies))

    def test_nobody_to_give_it_to(self) -> None:
        """An accepted ASYNC job is kept as long as no other node can be reached."""
        for peer in self.peers:
            self.unlink(peer)
        job_id = self.status(self.ask(1, asynchronous=True))
        self.pass_ms(5_000)
        self.assertEqual([], self.get(b"q"))
        self.link(B)
        self.pass_ms(60)
        self.assertEqual(["REPLJOB"], self.sent_names(B))
        self.receive_signal(B, GOTJOB, job_id)
        self.assertEqual(["ENQUEUE"], self.sent_names(B))
        self.assert_nothing_left()

    def test_begun_before(self) -> None:
        """A job whose client waited already when this node began to leave is still kept here."""
        self.node.membership.set_leaving(False)
        client = self.ask(2)
        (wait,) = self.node.waiters.copies.values()
        self.leave()
        self.node.release_leaving()
        self.assertEqual([], self.said(client))
        self.receive_signal(wait.job.nodes[1], GOTJOB, wait.job.id)
        self.assertEqual(wait.job.id, self.status(client))
        self.assertEqual([wait.job.id], self.get(b"q"))
