"""What a node tells others that it can use (cluster protocol, section 21.8)."""

from __future__ import annotations

from disque_tx.core.base.client import Client
from disque_tx.core.getting.demanding import _QUEUES_PER_SLICE, LINGER_MS, _NotingClients
from disque_tx.core.queues.queues import PAUSE_NONE, PAUSE_OUT
from disque_tx.messages.bus import QueueSignal
from disque_tx.messages.bustypes import NEEDJOBS
from disque_tx.messages.demands import ENTRIES_MAX, DemandMessage
from disque_tx.messages.nodes import NodeEntry
from tests.core.bench import add_request
from tests.core.flowbench import Flow, FlowTestCase


class TellTests(FlowTestCase):
    """When other nodes are told, and what."""

    def test_a_client_waits(self) -> None:
        """Every other node knows at the end of the turn that a client waits, and is told again now
        and then, less and less often."""
        self.wait(1)
        for other in (0, 2):
            self.assertEqual([(b"=q", 1, 1)], self.told(1, other))
        self.flow.run(1_000)
        self.assertEqual([], self.told(1, 0))
        self.flow.run(60_000)
        self.assertEqual(4, len(self.told(1, 0)))

    def test_link_of_the_other(self) -> None:
        """A node that is new here is told when its own link is up, on which its jobs come."""
        flow = self.flow
        flow.disconnect(1, 0)
        flow.disconnect(0, 1)
        known, membership = flow.entry(1, 0), flow.nodes[1].membership
        membership.remove(known)
        membership.add(NodeEntry(known.id, known.ip, known.port, 0, flow.now_ms))
        flow.connect(1, 0)
        flow.tick()
        self.wait(1)
        self.assertEqual([], self.told(1, 0))
        flow.connect(0, 1)
        flow.tick()
        self.assertEqual([(b"=q", 1, 1)], self.told(1, 0))

    def test_more_clients(self) -> None:
        """A node is told again when twice as many clients wait as it knows of."""
        for _ in range(4):
            self.wait(1)
        self.assertEqual([(b"=q", 1, 1), (b"=q", 2, 2), (b"=q", 4, 4)], self.told(1, 0))

    def test_client_gone(self) -> None:
        """When the client is gone, the demand ends soon after: a job that is added then stays where
        it is."""
        client = self.wait(1)
        self.leave(1, client)
        self.flow.run(2 * LINGER_MS)
        self.assertEqual((b"=q", 0, 0), self.told(1, 0)[-1])
        self.assertEqual({}, self.wanted(0))
        self.add(0)
        self.assertEqual(1, self.length(0))

    def test_used_up(self) -> None:
        """The demand ends, too, when all that was demanded came: a node that remembers every queue
        of which it ever gave a job takes no new ones in after the 20,000th."""
        client = self.wait(1)
        self.add(0)
        self.assertEqual([True], self.served(client))
        self.flow.run(4 * LINGER_MS)
        self.assertEqual({}, self.wanted(0))

    def test_pattern_used_up(self) -> None:
        """The same of a pattern."""
        client = self.wait_matching(1, [b"mail:*"], [])
        self.add(0, b"mail:1")
        self.assertEqual([True], self.served(client))
        self.flow.run(4 * LINGER_MS)
        self.assertEqual((b"+mail:*", 0, 0), self.told(1, 0)[-1])

    def test_job_under_way(self) -> None:
        """A job that was sent before more was demanded counts at one node only: the demand ends
        though the node that made it has received all of it, as it counts."""
        first = self.wait(1)
        giver, taker = self.flow.nodes[0], self.flow.nodes[1]
        giver.add_job(self.client(), add_request(b"q", b"body", replicate=1, ttl_s=3600))
        giver.serve()
        giver.finish()
        second = self.wait(1)
        self.assertEqual([True, False], self.served(first, second))
        self.add(0)
        self.assertEqual([True], self.served(second))
        self.assertEqual(0, taker.queues.obtain(b"q", self.flow.now_ms).blocked())
        self.flow.run(4 * LINGER_MS)
        self.assertEqual({}, self.wanted(0))

    def test_paused_while_renewed(self) -> None:
        """A demand that is about to be renewed is known elsewhere, and ends with a pause."""
        self.wait(1)
        node = self.flow.nodes[1]
        node.demanding.renew(node.queues.obtain(b"q", self.flow.now_ms))
        node.pause(b"q", PAUSE_OUT)
        self.flow.settle()
        self.assertEqual({}, self.wanted(0))

    def test_client_comes_again(self) -> None:
        """A client that comes again at once needs no message about the nodes that gave nothing."""
        client = self.wait(1)
        self.add(0)
        self.assertEqual([True], self.served(client))
        self.told(1, 0), self.told(1, 2)
        self.wait(1)
        self.assertEqual([(b"=q", 1, 1)], self.told(1, 0))
        self.assertEqual([], self.told(1, 2))

    def test_paused(self) -> None:
        """A queue that is paused where clients wait has no demand until the pause ends."""
        client = self.wait(1)
        self.flow.nodes[1].pause(b"q", PAUSE_OUT)
        self.flow.settle()
        self.assertEqual({}, self.wanted(0))
        self.add(0)
        self.assertEqual((1, [False]), (self.length(0), self.served(client)))
        self.flow.nodes[1].pause(b"q", PAUSE_NONE)
        self.flow.settle()
        self.assertEqual([True], self.served(client))

    def test_leaving(self) -> None:
        """A node that leaves the cluster gets no jobs any more."""
        self.wait(1)
        self.flow.nodes[1].membership.set_leaving(True)
        self.flow.tick()
        self.assertEqual({}, self.wanted(0))

    def test_full(self) -> None:
        """A node above 95 % of its memory demands nothing, and does again when it has room."""
        client = self.wait(1)
        memory = self.flow.nodes[1].memory
        memory.limit, memory.used = 1_000_000, 960_000
        self.flow.tick()
        self.assertEqual({}, self.wanted(0))
        self.add(0)
        self.assertEqual([False], self.served(client))
        memory.used = 0
        self.flow.tick()
        self.assertEqual([True], self.served(client))

    def test_concurrency(self) -> None:
        """No more is demanded than the policy of the queue lets clients of this node have."""
        self.flow.nodes[1].policies.set(b"q", b"concurrency", b"2")
        clients = [self.wait(1) for _ in range(4)]
        self.add(0, count=4)
        self.assertEqual(2, sum(self.served(*clients)))
        self.assertEqual(2, self.length(0))

    def refuse(self, **policy: bytes) -> Client:
        """A client that waits by pattern while the queue's policy allows no more deliveries: one
        job is here already, another one came and went back, and others wait where they were."""
        for name, value in policy.items():
            self.flow.nodes[1].policies.set(b"mail", name.replace("_", "-").encode(), value)
        first = self.wait(1, b"mail")
        self.add(0, b"mail", count=3)
        self.assertEqual([True], self.served(first))
        client = self.wait_matching(1, [b"m*"], [])
        self.flow.run(3 * LINGER_MS)
        self.assertEqual([False], self.served(client))
        return client

    def test_concurrency_and_pattern(self) -> None:
        """When a job is done, a client that waits by pattern gets the next one, though its queue is
        empty here: nobody waits until nodes are asked again."""
        client = self.refuse(concurrency=b"1")
        node = self.flow.nodes[1]
        (job,) = [job for job in node.jobs.table.values() if job.in_flight]
        node.acks.acknowledge([job.id])
        self.flow.run(LINGER_MS)
        self.assertEqual([True], self.served(client))

    def test_rate_and_pattern(self) -> None:
        """The same as soon as there is a token."""
        client = self.refuse(rate=b"2", rate_burst=b"1")
        self.flow.run(LINGER_MS + 500)
        self.assertEqual([True], self.served(client))

    def test_policy_and_pattern(self) -> None:
        """The same when the limit is lifted."""
        client = self.refuse(concurrency=b"1")
        self.flow.nodes[1].policies.set(b"mail", b"concurrency", b"2")
        self.flow.run(LINGER_MS)
        self.assertEqual([True], self.served(client))

    def test_only_nodes_that_know_it(self) -> None:
        """A node of the original is asked by NEEDJOBS, and never told; the others are told, and not
        asked."""
        self.flow = Flow(3, originals=(2,))
        self.wait(1)
        by_receiver: dict[int, set[int]] = {0: set(), 2: set()}
        for sender, receiver, message in self.flow.sent:
            if sender == 1 and isinstance(message, DemandMessage | QueueSignal):
                by_receiver[receiver].add(int(message.type))
        self.assertNotIn(NEEDJOBS, by_receiver[0])
        self.assertEqual({NEEDJOBS}, by_receiver[2])

    def test_many_queues(self) -> None:
        """A client that waits for very many queues costs one message of bounded size a turn and
        node, until all is told."""
        names = [b"q%d" % number for number in range(3 * ENTRIES_MAX)]
        self.wait(1, *names)
        messages = [m for s, r, m in self.flow.sent if (s, r) == (1, 0)]
        sizes = [len(m.entries) for m in messages if isinstance(m, DemandMessage)]
        self.assertLessEqual(max(sizes), ENTRIES_MAX)
        self.flow.run(200)
        self.assertEqual(len(names), len(self.wanted(0)))

    def test_many_clients(self) -> None:
        """Which queues clients wait for is looked up in parts: however many clients wait, a node
        that comes does not cost a long turn."""
        for _ in range(1_200):
            self.wait(1)
        node = self.flow.nodes[1]
        task = _NotingClients(node.queues, node.waiters)
        parts = 1
        while not task.step(self.flow.now_ms):
            parts += 1
        self.assertEqual(-(-2 * 1_200 // _QUEUES_PER_SLICE), parts)

    def test_idle(self) -> None:
        """Nodes whose clients never waited tell each other nothing, not even that they are new."""
        self.flow.tick()
        self.flow.run(10_000)
        self.assertEqual([], [m for m in self.flow.sent if isinstance(m[2], DemandMessage)])

    def test_nothing_wanted(self) -> None:
        """A node that was told nothing of a queue is not told that its jobs are no longer wanted:
        a job that came for a client with a pattern makes no demand by name."""
        client = self.wait_matching(1, [b"mail:*"], [])
        self.add(0, b"mail:1")
        self.assertEqual([True], self.served(client))
        self.flow.run(4 * LINGER_MS)
        words = {word for word, _, _ in self.told(1, 0) + self.told(1, 2)}
        self.assertEqual({b"+mail:*"}, words)

    def test_nothing_left(self) -> None:
        """What a node was told ends with a new link to this one, though nothing is demanded now."""
        client = self.wait(1)
        self.leave(1, client)
        self.flow.connect(0, 1)
        self.flow.tick()
        self.flow.run(4 * LINGER_MS)
        self.assertEqual({}, self.wanted(0))

    def test_alone(self) -> None:
        """A node without others notes nothing: waiting costs what it did."""
        self.flow = Flow(1)
        self.wait(0)
        self.assertFalse(self.flow.nodes[0].demanding.has_news())


class LinkTests(FlowTestCase):
    """What becomes of a demand when links break."""

    nodes = 2

    def test_own_link_breaks(self) -> None:
        """What was told on a link is forgotten with it, and told again on the next one."""
        client = self.wait(1)
        self.flow.disconnect(1, 0)
        self.assertEqual({}, self.wanted(0))
        self.flow.connect(1, 0)
        self.flow.tick()
        self.assertEqual({b"q": {self.flow.ids[1]: 1}}, self.wanted(0))
        self.add(0)
        self.assertEqual([True], self.served(client))

    def test_link_for_jobs_breaks(self) -> None:
        """Jobs that were lost with a link use up no credit for good: all is told once more when the
        other node has a new link."""
        client = self.wait(1)
        link = self.flow.entry(0, 1).link
        assert link is not None and hasattr(link.sink, "cut")
        link.sink.cut = True
        self.add(0)
        self.assertEqual([False], self.served(client))
        self.flow.disconnect(0, 1)
        self.flow.connect(0, 1)
        self.flow.tick()
        self.add(0)
        self.assertEqual([True], self.served(client))

    def test_before_any_link(self) -> None:
        """Clients that waited before a node could be told are served from it as soon as it can."""
        self.flow.disconnect(1, 0)
        self.flow.disconnect(0, 1)
        self.flow.tick()
        client = self.wait(1)
        self.add(0)
        self.flow.connect(1, 0)
        self.flow.connect(0, 1)
        self.flow.tick()
        self.assertEqual([True], self.served(client))

    def test_pattern_before_any_link(self) -> None:
        """The same holds for clients that wait with MATCH."""
        self.flow.disconnect(1, 0)
        self.flow.disconnect(0, 1)
        self.flow.tick()
        client = self.wait_matching(1, [b"mail:*"], [])
        self.add(0, b"mail:1")
        self.flow.connect(1, 0)
        self.flow.connect(0, 1)
        self.flow.tick()
        self.assertEqual([True], self.served(client))

    def test_late_message(self) -> None:
        """What arrives on a link that its node has replaced does not undo what it told since."""
        old = self.flow.links[(1, 0)]
        self.flow.connect(1, 0)
        self.flow.tick()
        self.wait(1)
        late = DemandMessage([])
        late.sender = self.flow.ids[1]
        self.flow.nodes[0].receive(old, late)
        self.assertEqual({b"q": {self.flow.ids[1]: 1}}, self.wanted(0))


class ShareTests(FlowTestCase):
    """More is demanded than clients wait for."""

    nodes = 4

    def test_givers(self) -> None:
        """The nodes that gave lately share what is demanded in advance, rounded up; of another one
        no more is demanded than clients wait for."""
        for givers, expected in (((0,), [101, 1, 1]), ((0, 2), [51, 51, 1])):
            self.setUp()
            for giver in givers:
                client = self.wait(1)
                self.add(giver)
                self.assertEqual([True], self.served(client))
            queue = self.flow.nodes[1].queues.obtain(b"q", self.flow.now_ms)
            assert queue.standing is not None
            queue.standing.window = 202  # it is halved, for it was not needed for a while
            self.wait(1)
            credits = [self.wanted(other)[b"q"][self.flow.ids[1]] for other in (0, 2, 3)]
            self.assertEqual(expected, credits)

    def test_new_link(self) -> None:
        """A node that gave lately learns anew what is demanded in advance when there is a new link
        to it, though no client waits in this moment."""
        client = self.wait(1)
        self.add(0)
        self.assertEqual([True], self.served(client))
        queue = self.flow.nodes[1].queues.obtain(b"q", self.flow.now_ms)
        assert queue.standing is not None
        queue.standing.window = 202
        self.flow.disconnect(1, 0)
        self.assertEqual({}, self.wanted(0))
        self.flow.connect(1, 0)
        self.flow.tick()
        self.assertEqual({b"q": {self.flow.ids[1]: 101}}, self.wanted(0))
