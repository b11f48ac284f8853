"""Jobs of queues that match come from other nodes."""

from __future__ import annotations

from disque_tx.core.getting.patterndemand import NEW_AT_ONCE, WAITING_MAX
from disque_tx.core.queues.index import GLOBS_MAX
from disque_tx.core.queues.queues import IDLE_MS, PAUSE_OUT
from disque_tx.messages.bus import Gossip, JobsMessage, QueryMessage, QueueSignal
from disque_tx.messages.bustypes import CAN_MATCH, NEEDJOBS, NEEDMATCH, PONG, YOURJOBS
from disque_tx.messages.nodes import LEAVING
from tests.core.bench import ME
from tests.core.peerbench import B, C, PeerCase, peer_job
from tests.core.queues.matchbench import MatchCase


class AskingCase(MatchCase, PeerCase):
    """B knows patterns; C is an original."""

    peers = (B, C)

    def setUp(self) -> None:
        super().setUp()
        message = Gossip(PONG, [])
        message.sender, message.port = B, 7711
        message.features, message.epoch = CAN_MATCH, 7
        link = self.node.membership.nodes[B].link
        assert link is not None
        self.node.receive(link, message)

    def asked(self, peer: bytes) -> list[tuple[int, list[bytes]]]:
        """The requests by pattern that a node was sent."""
        sent = [m for m in self.sent_to(peer) if isinstance(m, QueryMessage)]
        return [(m.number, m.words) for m in sent if m.type == NEEDMATCH]

    def asked_by_name(self, peer: bytes) -> list[bytes]:
        """The queues for which a node was asked."""
        sent = [m for m in self.sent_to(peer) if isinstance(m, QueueSignal)]
        return sorted(m.queue for m in sent if m.type == NEEDJOBS)

    def ask(self, number: int, *words: bytes, peer: bytes = B) -> list[bytes]:
        """Another node asks; queue after queue of the jobs that it gets."""
        self.sent_to(peer)
        self.receive(peer, QueryMessage(NEEDMATCH, number, list(words)))
        sent = [m for m in self.sent_to(peer) if isinstance(m, JobsMessage)]
        self.assertLessEqual({m.type for m in sent}, {YOURJOBS})
        return [job.queue for m in sent for job in m.jobs]


class AskTests(AskingCase):
    """What this node asks for."""

    def test_nodes_of_ours(self) -> None:
        """Whoever waits by pattern makes the node ask others with it, whether it waits or not."""
        self.match(b"mail:*", excepts=(b"*:x",))
        self.assertEqual([(1, [b"+mail:*", b"-*:x"])], self.asked(B))
        self.block(b"sms:*")
        self.assertEqual([(1, [b"+sms:*"])], self.asked(B))

    def test_again_and_again(self) -> None:
        """While a client waits, requests go out at the intervals of NEEDJOBS, and then no more."""
        client = self.block(b"*")
        times = []
        for second in range(70):
            if self.asked(B):
                times.append(second)
            self.pass_ms(1_000)
        self.assertEqual([0, 5, 14, 31, 62], times)
        self.node.client_gone(client)
        for _ in range(40):
            self.pass_ms(1_000)
        self.assertEqual([], self.asked(B))

    def test_originals_by_name(self) -> None:
        """An original is asked for the queues that are known here, and never with a pattern."""
        for name in (b"mail:a", b"mail:b", b"sms"):
            self.add(name, replicate=1)
            self.get(name)
        self.sent_to(C)
        self.block(b"mail:*")
        self.pass_ms(1)
        messages = self.sent_to(C)
        names = sorted(m.queue for m in messages if isinstance(m, QueueSignal))
        self.assertEqual([b"mail:a", b"mail:b"], names)
        self.assertEqual([], [m for m in messages if isinstance(m, QueryMessage)])

    def test_originals_not_for_what_is_here(self) -> None:
        """An original is not asked for jobs of a queue that has one here, which its limit holds
        back, nor for those of a paused one: clients would not get them."""
        self.node.policies.set(b"mail:a", b"concurrency", b"1")
        for name in (b"mail:a", b"mail:a", b"mail:b", b"mail:c"):
            self.add(name, replicate=1)
        for name in (b"mail:a", b"mail:b", b"mail:c"):
            self.get(name)
        self.assertEqual(1, self.length(b"mail:a"))
        self.node.pause(b"mail:b", PAUSE_OUT)
        self.sent_to(C)
        self.block(b"mail:*")
        self.pass_ms(1)
        self.assertEqual([b"mail:c"], self.asked_by_name(C))

    def test_originals_for_many_queues(self) -> None:
        """An original is asked for very many queues some at a time, for a job of each, and for no
        more than ten thousand in one round."""
        for number in range(11_000):
            self.node.queues.obtain(b"%05d" % number, self.now_ms)
        self.block(b"*")
        found: list[bytes] = []
        for _ in range(100):
            self.pass_ms(1)
            sent = [m for m in self.sent_to(C) if isinstance(m, QueueSignal)]
            self.assertLess(len(sent), 1_000)
            self.assertLessEqual({(m.type, m.aux) for m in sent}, {(NEEDJOBS, 1)})
            found += [m.queue for m in sent]
        self.assertEqual(len(found), len(set(found)))
        self.assertTrue(10_000 <= len(found) < 10_500, len(found))

    def test_givers_are_asked_more(self) -> None:
        """A node that gave is asked again soon, for more at a time."""
        self.block(b"*")
        self.asked(B)
        job = peer_job(1, (B, ME))
        self.receive_jobs(B, YOURJOBS, job)
        self.block(b"*")
        self.assertEqual([20], [number for number, _ in self.asked(B)])

    def test_delivered(self) -> None:
        """What comes goes to the client that waits."""
        client = self.block(b"*")
        self.receive_jobs(B, YOURJOBS, peer_job(1, (B, ME)))
        self.assertEqual(b"q", self.queue_of(client))

    def test_above_95_percent(self) -> None:
        """A node without memory asks for nothing."""
        memory = self.node.memory
        memory.limit, memory.used = 1_000_000, 960_000
        self.wait(b"m*")
        for peer in self.peers:
            self.assertEqual([], self.sent_to(peer))

    def test_leaving(self) -> None:
        """A node that leaves asks for nothing."""
        client = self.block(b"*")
        self.asked(B)
        self.node.membership.myself.flags |= LEAVING
        self.pass_ms(10_000)
        self.assertEqual([], self.asked(B))
        self.node.client_gone(client)


class GiveTests(AskingCase):
    """What this node gives."""

    def test_in_turn(self) -> None:
        """Jobs of several queues go in one message, and each queue keeps half of its own."""
        self.match(b"*")
        for name, count in ((b"mail:a", 4), (b"mail:b", 2), (b"mail:c", 1), (b"sms", 3)):
            for _ in range(count):
                self.add(name, replicate=1)
        given = self.ask(9, b"+mail:*")
        self.assertEqual([b"mail:a", b"mail:a", b"mail:b", b"mail:c"], sorted(given))
        self.assertEqual(3, self.length(b"sms"))

    def test_many_patterns(self) -> None:
        """A member that asks with ever new patterns is answered some at a time, and what it asks
        beyond is not kept without end."""
        words = [b"+%04d*" % number for number in range(2 * WAITING_MAX)]
        for number in range(2 * WAITING_MAX):
            self.add(b"%04d" % number, replicate=1)
        given = [queue for word in words for queue in self.ask(1, word)]
        self.assertEqual(NEW_AT_ONCE, len(given))
        for _ in range(WAITING_MAX // NEW_AT_ONCE):
            self.pass_ms(1)
        sent = [m for m in self.sent_to(B) if isinstance(m, JobsMessage)]
        given += [job.queue for m in sent for job in m.jobs]
        self.assertEqual([word[1:5] for word in words[: NEW_AT_ONCE + WAITING_MAX]], given)
        self.pass_ms(1)
        self.assertEqual([b"0399"], self.ask(1, words[-1]))

    def test_gone_while_it_waits(self) -> None:
        """A member that is gone before its turn comes gets nothing, and jobs stay here."""
        for forgotten in (False, True):
            self.setUp()
            for number in range(NEW_AT_ONCE + 10):
                self.add(b"%04d" % number, replicate=1)
                self.ask(1, b"+%04d*" % number)
            left = [number for number in range(NEW_AT_ONCE + 10) if self.length(b"%04d" % number)]
            self.unlink(B)
            if forgotten:
                self.node.membership.remove(self.node.membership.nodes[B])
            self.pass_ms(1)
            self.pass_ms(1_000)
            here = [number for number in range(NEW_AT_ONCE + 10) if self.length(b"%04d" % number)]
            self.assertEqual((10, left), (len(left), here))

    def test_except(self) -> None:
        """A queue that is excepted keeps its jobs."""
        self.add(b"mail:a", replicate=1)
        self.assertEqual([], self.ask(9, b"+mail:*", b"-*a"))

    def test_once(self) -> None:
        """A job that may be delivered once moves, and is here no more."""
        job_id = self.add(b"a", replicate=1, retry_s=0)
        self.assertEqual([b"a"], self.ask(1, b"+*"))
        self.assertIsNone(self.node.jobs.get(job_id))

    def test_not_while_importing(self) -> None:
        """What just came from elsewhere does not go back."""
        for number in range(3):
            self.receive_jobs(B, YOURJOBS, peer_job(number, (B, ME)))
        self.assertEqual([], self.ask(5, b"+*"))
        self.assertEqual([b"q"], self.match(b"q"))

    def test_paused(self) -> None:
        """A paused queue gives nothing."""
        self.add(b"a", replicate=1)
        self.node.pause(b"a", PAUSE_OUT)
        self.assertEqual([], self.ask(5, b"+*"))

    def test_at_the_limit(self) -> None:
        """Jobs that no client of this node may get at present go to the one that asks."""
        self.node.policies.set(b"a", b"concurrency", b"1")
        for _ in range(3):
            self.add(b"a", replicate=1)
        self.assertEqual([b"a"], self.match(b"*", count=5))
        self.assertEqual([b"a"], self.ask(5, b"+*"))
        self.assertEqual([b"a"], self.ask(5, b"+*"))
        self.assertEqual([], self.ask(5, b"+*"))

    def test_limit_of_a_queue_that_is_gone(self) -> None:
        """A queue that was at its limit, and is gone since, costs the one that asks nothing."""
        self.node.policies.set(b"a", b"concurrency", b"1")
        jobs = [self.add(b"a", replicate=1) for _ in range(3)]
        self.assertEqual([b"a"], self.match(b"*", count=5))
        for emptied in (lambda: self.ask(5, b"+*"), lambda: self.node.delete(jobs)):
            emptied()
        self.node.queues.sweep(self.now_ms + IDLE_MS[0], 100)
        self.assertIsNone(self.node.queues.get(b"a"))
        self.add(b"b", replicate=1)
        self.assertEqual([b"b"], self.ask(5, b"+*"))

    def test_nonsense(self) -> None:
        """A request that makes no sense, or too much of it, is ignored."""
        self.add(b"a", replicate=1)
        for words in (
            [],
            [b"-x"],
            [b"*"],
            [b""],
            [b"+*", b"?"],
            [b"+" + b"x" * 5_000],
            [b"+*"] * (GLOBS_MAX + 1),
        ):
            self.assertEqual([], self.ask(5, *words), words)
        self.assertEqual([b"a"], self.ask(2**62, b"+*"))

    def test_not_without_the_feature(self) -> None:
        """A node that does not show that it knows patterns does not answer any."""
        self.node.membership.features = 0
        self.add(b"a", replicate=1)
        self.assertEqual([], self.ask(5, b"+*"))

    def test_takes_nothing_from_clients(self) -> None:
        """Queues that were passed over for another node are still there for clients of this one."""
        for number in range(2):
            self.receive_jobs(B, YOURJOBS, peer_job(number, (B, ME)))
        self.match(b"none")
        self.ask(5, b"+*")
        self.assertEqual([b"q", b"q"], self.match(b"*", count=5))
