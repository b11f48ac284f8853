"""Copies on several hosts (cluster protocol, section 10.6)."""

from __future__ import annotations

from disque_tx.messages.bustypes import GOTJOB
from disque_tx.messages.records import QUEUED
from tests.core.bench import ME
from tests.core.peerbench import B, C, D, PeerCase

HERE = b"10.0.0.1"
THERE = b"10.0.0.2"
ELSEWHERE = b"10.0.0.3"


class SpreadCase(PeerCase):
    """``ips``: the address of each peer; this node is at ``own``."""

    peers = (B, C, D)
    own = HERE
    ips: tuple[bytes, ...] = (HERE, HERE, THERE)

    def setUp(self) -> None:
        super().setUp()
        self.node.membership.myself.ip = self.own
        for peer, ip in zip(self.peers, self.ips, strict=True):
            self.node.membership.nodes[peer].ip = ip
        self.node.membership.refresh()

    def holders(self, replicate: int) -> list[tuple[bytes, ...]]:
        """The nodes that get the copies of 30 jobs, one tuple a job."""
        clients = [self.begin_add(replicate) for _ in range(30)]
        waits = self.node.waiters.copies.values()
        self.assertEqual(clients, [wait.client for wait in waits])
        return [wait.job.nodes for wait in waits]

    def placed(self) -> tuple[bytes, ...]:
        """The nodes that get the copies of one more job."""
        client = self.begin_add(2)
        (wait,) = [w for w in self.node.waiters.copies.values() if w.client is client]
        return wait.job.nodes


class OtherHostTests(SpreadCase):
    """Two nodes on this node's host, one on another."""

    def test_preferred(self) -> None:
        """The failure of a host takes all its nodes with it, so the copy goes to another host."""
        self.assertEqual([(ME, D)] * 30, self.holders(2))

    def test_not_known_there(self) -> None:
        """A node that was met a moment ago, and has made no link to this one, drops copies, as it
        does not know this node yet; it gets its share as soon as it has."""
        entry = self.node.membership.nodes[D]
        entry.newest_link = 0
        self.assertNotIn(D, {node for nodes in self.holders(2) for node in nodes})
        entry.newest_link = 1
        self.assertEqual((ME, D), self.placed())
        entry.newest_link = 0
        entry.numbers = False  # an original does not show its links
        self.assertEqual((ME, D), self.placed())

    def test_asynchronous(self) -> None:
        """The same holds for jobs whose client does not wait."""
        for _ in range(30):
            self.begin_add(2, asynchronous=True)
        made = [job.nodes for job in self.node.jobs.table.values()]
        self.assertEqual([(ME, D)] * 30, made)

    def test_not_enough(self) -> None:
        """While another host can be reached, a copy on this one alone is not the promised
        protection: the client waits for the one on the other host."""
        client = self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        job = wait.job
        self.pass_ms(60)
        near = job.nodes[2]
        self.assertIn(near, (B, C))
        self.receive_signal(near, GOTJOB, job.id)
        self.pass_ms(200)
        self.assertEqual([], self.replies(client))
        self.receive_signal(D, GOTJOB, job.id)
        self.assertEqual(job.id, self.status(client))

    def test_about_to_be_known(self) -> None:
        """A node on the other host that does not know this one yet is waited for."""
        entry = self.node.membership.nodes[D]
        entry.newest_link = 0
        client = self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        job = wait.job
        for near in (B, C):
            self.receive_signal(near, GOTJOB, job.id)
        self.pass_ms(200)
        self.assertEqual([], self.replies(client))
        entry.newest_link = 1
        self.pass_ms(200)
        self.assertIn(D, job.nodes)
        self.receive_signal(D, GOTJOB, job.id)
        self.assertEqual(job.id, self.status(client))

    def test_no_more_on_the_same_host(self) -> None:
        """When only the other host is missing, the job is not sent to all nodes of this one."""
        self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        self.pass_ms(60)
        self.receive_signal(wait.job.nodes[2], GOTJOB, wait.job.id)
        self.pass_ms(500)
        self.assertEqual(3, len(wait.job.nodes))

    def test_neighbours_fail(self) -> None:
        """A node of this host that confirmed its copy, and fails, does not make that copy one on
        another host."""
        client = self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        self.pass_ms(60)
        self.receive_signal(wait.job.nodes[2], GOTJOB, wait.job.id)
        for peer in (B, C):
            self.node.membership.nodes[peer].flags |= 2
        self.node.membership.refresh()
        self.pass_ms(200)
        self.assertEqual([], self.replies(client))

    def test_other_host_fails(self) -> None:
        """When the other host is gone, copies on this one are better than none."""
        client = self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        job = wait.job
        self.pass_ms(60)
        self.receive_signal(job.nodes[2], GOTJOB, job.id)
        self.node.membership.nodes[D].flags |= 2
        self.node.membership.refresh()
        self.pass_ms(60)
        self.assertEqual(job.id, self.status(client))

    def test_asynchronous_goes_on(self) -> None:
        """An ASYNC job that was confirmed on this host only is still sent to the other one."""
        self.unlink(D)
        self.begin_add(2, asynchronous=True)
        (job,) = self.node.jobs.table.values()
        near = job.nodes[1]
        self.link(D)
        self.receive_signal(near, GOTJOB, job.id)
        self.assertIn(job.id, self.node.replication.asynchronous)
        self.pass_ms(1_000)
        self.assertEqual({ME, near, D}, set(job.nodes))
        self.receive_signal(D, GOTJOB, job.id)
        self.assertEqual({}, self.node.replication.asynchronous)
        self.assertEqual(QUEUED, job.state)

    def test_asynchronous_gives_up(self) -> None:
        """When the other host fails meanwhile, an ASYNC job ends its search."""
        self.unlink(D)
        self.begin_add(2, asynchronous=True)
        (job,) = self.node.jobs.table.values()
        self.link(D)
        self.receive_signal(job.nodes[1], GOTJOB, job.id)
        self.node.membership.nodes[D].flags |= 2
        self.node.membership.refresh()
        self.pass_ms(1_000)
        self.assertEqual({}, self.node.replication.asynchronous)


class ThreeHostTests(SpreadCase):
    """This host has another node; two other hosts have one each."""

    ips = (HERE, THERE, ELSEWHERE)

    def test_each_host_once(self) -> None:
        """Three copies are on three hosts."""
        self.assertEqual([{ME, C, D}] * 30, [set(nodes) for nodes in self.holders(3)])


class LoopbackTests(SpreadCase):
    """A node on this host is known by a loopback address."""

    ips = (b"127.0.0.1", THERE, THERE)

    def test_loopback_is_here(self) -> None:
        """A neighbour that was met at 127.0.0.1 is on this host, too."""
        made = self.holders(2)
        self.assertEqual({2}, {len(nodes) for nodes in made})
        self.assertNotIn(B, set().union(*made))


class OneHostTests(SpreadCase):
    """All nodes are on one host."""

    own = b"127.0.0.1"
    ips = (b"127.0.0.1", b"127.0.0.1", b"127.0.0.1")

    def test_any(self) -> None:
        """Copies are made on the nodes that there are."""
        client = self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        self.receive_signal(wait.job.nodes[1], GOTJOB, wait.job.id)
        self.assertEqual(wait.job.id, self.status(client))


class HandOffTests(SpreadCase):
    """This node may not keep jobs."""

    ips = (HERE, THERE, THERE)

    def test_copies_elsewhere(self) -> None:
        """Copies that all lie on one other host are not enough either, while a node on this host
        can take one."""
        self.node.membership.set_leaving(True)
        client = self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        job = wait.job
        self.pass_ms(200)
        self.assertEqual({B, C, D}, set(job.nodes))
        for peer in (C, D):
            self.receive_signal(peer, GOTJOB, job.id)
        self.assertEqual([], self.replies(client))
        self.receive_signal(B, GOTJOB, job.id)
        self.assertEqual(job.id, self.status(client))
