"""Jobs go to the nodes that can use them, at once (cluster protocol, section 21.8)."""

from __future__ import annotations

from disque_tx.core.getting.demanding import LINGER_MS
from disque_tx.core.getting.supplying import JOBS_PER_TURN, QUEUES_MAX, SILENT_MS
from disque_tx.core.queues.queues import PAUSE_NONE, PAUSE_OUT
from disque_tx.core.queues.standing import CREDIT_MS, WINDOW_MAX
from disque_tx.messages.bus import JobsMessage
from disque_tx.messages.demands import DemandEntry, DemandMessage
from tests.core.flowbench import FlowTestCase


class WaitingTests(FlowTestCase):
    """Clients that wait at one node, and jobs that are added at another."""

    def test_at_once(self) -> None:
        """A client that waits anywhere gets a job without any time passing, however long it has
        waited."""
        client = self.wait(1)
        self.flow.run(10_000)
        self.add(0)
        self.assertEqual([True], self.served(client))

    def test_already_queued(self) -> None:
        """A job that was queued before goes to a client that begins to wait elsewhere."""
        self.add(0)
        self.assertEqual([True], self.served(self.wait(1)))

    def test_own_clients_first(self) -> None:
        """A node serves its own clients before those of other nodes."""
        other, own = self.wait(1), self.wait(0)
        self.add(0)
        self.assertEqual([False, True], self.served(other, own))

    def test_longest_waiting(self) -> None:
        """Among other nodes, the one whose client has waited for longest comes first."""
        late_told = self.client()
        self.flow.run(1_000)
        first = self.wait(1)
        self.flow.run(1_000)
        second = self.wait(2)
        self.add(0)
        self.assertEqual([True, False], self.served(first, second))
        self.add(0)
        self.assertEqual([True, True], self.served(first, second))
        self.assertEqual([], self.replies(late_told))

    def test_one_job_one_client(self) -> None:
        """A job goes to one node, although clients wait at two."""
        clients = [self.wait(1), self.wait(2)]
        self.add(0)
        self.assertEqual(1, sum(self.served(*clients)))
        self.assertEqual([0, 0, 0], [self.length(at) for at in range(3)])

    def test_one_message(self) -> None:
        """Jobs of one turn that go to one node leave in one message."""
        for _ in range(4):
            self.wait(1)
        self.flow.sent.clear()
        self.add(0, count=4)
        messages = [m for s, r, m in self.flow.sent if (s, r) == (0, 1)]
        self.assertEqual([4], [len(m.jobs) for m in messages if isinstance(m, JobsMessage)])

    def test_never_twice(self) -> None:
        """A job with RETRY 0 that goes to another node leaves this one."""
        client = self.wait(1)
        self.add(0, retry_s=0)
        self.assertEqual([True], self.served(client))
        self.assertEqual(0, len(self.flow.nodes[0].jobs))

    def test_paused_here(self) -> None:
        """A queue that is paused where its jobs lie gives none until the pause ends."""
        client = self.wait(1)
        self.flow.nodes[0].pause(b"q", PAUSE_OUT)
        self.add(0)
        self.assertEqual([False], self.served(client))
        self.flow.nodes[0].pause(b"q", PAUSE_NONE)
        self.flow.settle()
        self.assertEqual([True], self.served(client))

    def test_old_demand(self) -> None:
        """What a node does not tell again for a long time is void, as if it had taken it back."""
        message = DemandMessage([DemandEntry([b"=q"], 1, 1, 0)])
        message.sender = self.flow.ids[1]
        self.flow.nodes[0].receive(self.flow.links[(1, 0)], message)
        self.flow.run(CREDIT_MS + 20)
        self.add(0)
        self.assertEqual(1, self.length(0))

    def test_silent(self) -> None:
        """A node that does not answer PING gets no jobs, which would wait there for their RETRY;
        when it answers again, its clients get them."""
        client = self.wait(1)
        entry = self.flow.entry(0, 1)
        entry.ping_sent_ms = self.flow.now_ms
        self.flow.run(SILENT_MS + 20)
        self.add(0)
        self.assertEqual([False], self.served(client))
        other = self.wait(2)
        self.assertEqual([True], self.served(other))
        self.add(0)
        entry.ping_sent_ms = 0
        self.flow.tick()
        self.assertEqual([True], self.served(client))

    def test_come_back(self) -> None:
        """A job that comes back because its RETRY is over goes to a client at another node."""
        self.add(0, retry_s=5)
        self.assertEqual(1, self.take(0, 1))
        client = self.wait(1)
        self.flow.run(6_000)
        self.assertEqual([True], self.served(client))


class BacklogTests(FlowTestCase):
    """Many jobs at one node, and clients at another."""

    def drain(self, at: int, count: int, rounds: int) -> int:
        """GETJOB COUNT again and again, waiting where there is nothing; how many jobs came."""
        taken = sum(self.served(self.wait(at)))
        for _ in range(rounds):
            jobs = self.take(at, count)
            if jobs == 0:
                jobs = sum(self.served(self.wait(at)))
            taken += jobs
        return taken

    def test_window_grows(self) -> None:
        """A node that takes jobs as fast as they come soon has many of them on their way: a backlog
        of a thousand jobs takes a few dozen requests, not a thousand."""
        self.add(0, count=1_000)
        self.assertEqual(1_000, self.drain(1, 100, 30))

    def test_window_is_bounded(self) -> None:
        """No more than the largest window lies at the node that takes them."""
        self.add(0, count=6_000)
        self.drain(1, 400, 9)
        self.assertLessEqual(self.length(1), WINDOW_MAX + JOBS_PER_TURN)

    def test_shared_with_own_clients(self) -> None:
        """While clients of the node take jobs as well, others get only those that they wait for, so
        that jobs do not go to and fro."""
        self.add(0, count=100)
        for _ in range(5):
            self.assertEqual(1, self.take(0, 1))
            self.assertEqual([True], self.served(self.wait(1)))
        self.assertEqual(0, self.length(1))

    def test_given_back(self) -> None:
        """Jobs that nobody takes where they went return a moment later, and are counted."""
        self.add(0, count=1_000)
        self.drain(1, 100, 5)
        lying = self.length(1)
        self.assertGreater(lying, 0)
        self.flow.run(4 * LINGER_MS)
        self.assertEqual(0, self.length(1))
        self.assertEqual(lying, self.flow.nodes[1].totals.returned)
        self.assertEqual(1_000, self.length(0) + self.taken(1))

    def test_given_back_at_once(self) -> None:
        """A node that gives jobs back demands none, whatever happens in the same turn."""
        self.add(0, count=1_000)
        self.drain(1, 100, 5)
        node = self.flow.nodes[1]
        queue = node.queues.obtain(b"q", self.flow.now_ms)
        self.flow.now_ms += 2 * LINGER_MS
        self.flow.begin()
        node.demanding.run_due()
        self.assertEqual([queue], node.demanding.returns)
        assert queue.standing is not None
        queue.standing.window = 4 * self.length(1)
        node.waiters.note_demand(queue)
        self.flow.settle()
        self.flow.run(4 * LINGER_MS)
        self.assertEqual({}, self.wanted(0))

    def taken(self, at: int) -> int:
        """How many jobs clients of a node have received."""
        return int(self.flow.nodes[at].totals.delivered)

    def test_client_gone_meanwhile(self) -> None:
        """A job whose client is gone when it arrives goes to another client of that node, or back,
        and does not lie there."""
        client = self.wait(1)
        self.flow.nodes[1].client_gone(client)
        self.add(0)
        self.flow.run(4 * LINGER_MS)
        self.assertEqual([1, 0, 0], [self.length(at) for at in range(3)])

    def test_two_nodes_that_consume(self) -> None:
        """Two nodes that take from a third empty it together, and no job is lost or doubled."""
        self.add(0, count=500)
        taken = 0
        for _ in range(40):
            taken += self.drain(1, 20, 1) + self.drain(2, 20, 1)
        self.assertEqual(500, taken)


class PatternTests(FlowTestCase):
    """Clients that wait for queues that match."""

    def test_at_once(self) -> None:
        """A client that waits with MATCH gets a job of a queue that nobody knew before."""
        client = self.wait_matching(1, [b"mail:*"], [b"*:slow"])
        self.flow.run(10_000)
        self.add(0, b"other")
        self.add(0, b"mail:slow")
        self.assertEqual([False], self.served(client))
        self.add(0, b"mail:1")
        self.assertEqual([True], self.served(client))

    def test_already_queued(self) -> None:
        """Jobs that were queued before are found among the queues of the other node."""
        self.add(0, b"mail:1")
        self.assertEqual([True], self.served(self.wait_matching(1, [b"mail:*"], [])))

    def test_client_gone(self) -> None:
        """When no client waits any more, the other nodes forget the pattern, and keep no jobs back
        for it."""
        self.leave(1, self.wait_matching(1, [b"mail:*"], []))
        self.flow.run(4 * LINGER_MS)
        self.add(0, b"mail:1")
        self.assertEqual(1, self.length(0, b"mail:1"))

    def test_paused_there(self) -> None:
        """A queue that is paused where a client waits with MATCH is not emptied into that node, and
        other queues go on."""
        self.flow.nodes[1].pause(b"mail:1", PAUSE_OUT)
        client = self.wait_matching(1, [b"mail:*"], [])
        self.add(0, b"mail:1", count=20)
        self.flow.run(1_000)
        self.assertLessEqual(self.length(1, b"mail:1"), 2)
        self.add(0, b"mail:2")
        self.assertEqual([True], self.served(client))

    def test_paused_instead(self) -> None:
        """When one queue may deliver again and another one may not, all other nodes learn of both,
        though their number is the same."""
        node = self.flow.nodes[1]
        node.pause(b"mail:1", PAUSE_OUT)
        self.wait_matching(1, [b"mail:*"], [])
        self.add(0, b"mail:1")
        self.assertIn(b"!mail:1", self.told(1, 2)[-1][0])
        node.pause(b"mail:2", PAUSE_OUT)
        node.queues.obtain(b"mail:1", self.flow.now_ms).paused = PAUSE_NONE
        second = node.queues.obtain(b"mail:2", self.flow.now_ms)
        node.demanding.arrived(second, self.flow.ids[0], 1, False)
        self.flow.settle()
        self.assertEqual([b"+mail:* !mail:2"], [words for words, _, _ in self.told(1, 2)])

    def test_link_lost(self) -> None:
        """What a node wanted by pattern is forgotten with its link."""
        self.wait_matching(1, [b"mail:*"], [])
        self.flow.disconnect(1, 0)
        self.add(0, b"mail:1")
        self.assertEqual(1, self.length(0, b"mail:1"))


class HostileTests(FlowTestCase):
    """What a node of the cluster may send, and what of it is kept."""

    def receive(self, *entries: DemandEntry) -> None:
        """Node 0 receives DEMAND from node 1."""
        for start in range(0, len(entries), 1_000):
            message = DemandMessage(list(entries[start : start + 1_000]))
            message.sender = self.flow.ids[1]
            self.flow.nodes[0].receive(self.flow.links[(1, 0)], message)

    def test_too_many_queues(self) -> None:
        """A node is remembered with no more than so many queues."""
        names = [b"=q%d" % number for number in range(QUEUES_MAX + 10)]
        self.receive(*[DemandEntry([name], 1, 1, 0) for name in names])
        self.assertEqual(QUEUES_MAX, len(self.wanted(0)))

    def test_nonsense(self) -> None:
        """Entries without words, with several names, of names too long, or of unknown kinds are
        ignored."""
        words = [[], [b""], [b"=a", b"=b"], [b"=" + b"q" * 1_025], [b"?q"], [b"-only"], [b"!q"]]
        self.receive(*[DemandEntry(one, 1, 1, 0) for one in words])
        self.assertEqual({}, self.wanted(0))
        self.add(0)
        self.assertEqual(1, self.length(0))

    def test_more_waiting_than_credit(self) -> None:
        """No more jobs are sent than the credit, whatever number of clients is said to wait."""
        self.receive(DemandEntry([b"=q"], 2, 1_000_000, 0))
        self.add(0, count=5)
        self.assertEqual(3, self.length(0))

    def test_enormous_credit(self) -> None:
        """A message has a bounded number of jobs, whatever the credit; the rest follows in later
        turns."""
        self.add(0, count=JOBS_PER_TURN + 500)
        self.flow.sent.clear()
        self.receive(DemandEntry([b"=q"], (1 << 32) - 1, 0, (1 << 32) - 1))
        self.flow.settle()
        messages = [m for s, r, m in self.flow.sent if (s, r) == (0, 1)]
        sizes = [len(m.jobs) for m in messages if isinstance(m, JobsMessage)]
        self.assertEqual([JOBS_PER_TURN, 500], sizes)
