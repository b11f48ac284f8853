"""GETJOB MATCH on one node: which jobs, in which order, and who waits."""

from __future__ import annotations

from disque_tx.commands.base.values import Error
from disque_tx.core.base.client import NOT_BLOCKED, REPLY_OFF
from disque_tx.core.getting.getting import GetRequest
from disque_tx.core.queues.filling import QUEUES_PER_PART
from disque_tx.core.queues.index import GLOBS_MAX, IDLE_MAX, IDLE_MS, SELECTORS_MAX
from disque_tx.core.queues.queues import PAUSE_NONE, PAUSE_OUT
from disque_tx.errors import CommandError
from disque_tx.messages.nodes import LEAVING
from disque_tx.messages.tables import PATTERN_BYTES_MAX
from tests.core.queues.matchbench import MatchCase

#: More queues than a request looks at on its own.
MANY = 5 * QUEUES_PER_PART


class ChoiceTests(MatchCase):
    """Which queue a job comes from."""

    def test_only_what_matches(self) -> None:
        """A consumer of some queues never gets a job of others."""
        for name in (b"mail:a", b"sms:a", b"mail:test"):
            self.add(name)
        jobs = self.match(b"mail:*", count=9, excepts=(b"*:test",))
        self.assertEqual([b"mail:a"], jobs)
        self.assertEqual((1, 1), (self.length(b"sms:a"), self.length(b"mail:test")))

    def test_quiet_queue_first(self) -> None:
        """The job of a quiet tenant does not wait behind the thousands of a busy one."""
        for _ in range(50):
            self.add(b"mail:a")
        self.match(b"mail:*", count=10)
        self.add(b"mail:b")
        self.assertEqual([b"mail:b"], self.match(b"mail:*"))

    def test_several_queues_in_one_reply(self) -> None:
        """COUNT takes each job from the queue whose turn it is."""
        self.match(b"*")
        for name in (b"a", b"a", b"a", b"b", b"b", b"c"):
            self.add(name)
        self.assertEqual([b"a", b"b", b"c", b"a", b"b", b"a"], self.match(b"*", count=9))

    def test_fewest_in_flight(self) -> None:
        """A queue whose jobs take long gets no more consumers than the others."""
        slow = [self.add(b"slow") for _ in range(4)]
        self.match(b"slow", count=3)
        for _ in range(6):
            self.add(b"quick")
        self.assertEqual([b"quick"] * 3, self.match(b"*", count=3))
        self.node.acknowledge(slow[:3])
        self.assertEqual([b"slow"], self.match(b"*"))

    def test_served_longest_ago(self) -> None:
        """Queues with equally many jobs in flight take turns."""
        self.match(b"*")
        for name in (b"a", b"b", b"a", b"b", b"a"):
            self.add(name)
        order = []
        for _ in range(4):
            order += self.match(b"*")
            self.node.acknowledge(
                [job.id for job in self.node.jobs.table.values() if job.in_flight]
            )
        self.assertEqual([b"a", b"b", b"a", b"b"], order)

    def test_names_first(self) -> None:
        """Queues that are named come first, in their order, whatever else matches."""
        for name in (b"z", b"urgent", b"a"):
            self.add(name)
        jobs = self.match(b"*", names=(b"urgent", b"empty"), count=3)
        self.assertEqual(b"urgent", jobs[0])
        self.assertEqual({b"a", b"z"}, set(jobs[1:]))

    def test_paused(self) -> None:
        """A paused queue is passed over, and comes back when the pause ends."""
        self.add(b"a")
        self.node.pause(b"a", PAUSE_OUT)
        self.assertEqual([], self.match(b"*"))
        self.node.pause(b"a", PAUSE_NONE)
        self.assertEqual([b"a"], self.match(b"*"))

    def test_expired(self) -> None:
        """A job that nobody may get any more is not delivered, and the next queue is taken."""
        self.add(b"a", ttl_s=1)
        self.begin(self.now_ms + 2_000, self.wall_us + 2_000_000)
        self.add(b"b")
        self.assertEqual([b"b"], self.match(b"*", count=5))

    def test_emptied_by_others(self) -> None:
        """Jobs that went by name, or were taken out, leave no trace in the order."""
        self.match(b"*")
        self.add(b"a")
        gone = self.add(b"b")
        self.get(b"a")
        self.node.delete([gone])
        self.assertEqual([], self.match(b"*"))

    def test_queue_forgotten_and_made_again(self) -> None:
        """A queue that was removed because it was idle is found again when it has jobs."""
        self.add(b"a")
        self.match(b"*")
        self.begin(self.now_ms + 400_000, self.wall_us)
        self.assertEqual(1, self.node.queues.sweep(self.now_ms, 10))
        self.add(b"a")
        self.assertEqual([b"a"], self.match(b"*"))

    def test_flushed(self) -> None:
        """After a flush there is nothing, and what comes then is found."""
        self.add(b"a")
        self.match(b"*")
        self.add(b"a")
        client = self.block(b"x*")
        self.node.flush_all()
        self.assertEqual([None], self.replies(client))
        self.assertEqual([], self.match(b"*"))
        self.add(b"a")
        self.assertEqual([b"a"], self.match(b"*"))


class WaitTests(MatchCase):
    """Clients that wait."""

    def test_new_queue(self) -> None:
        """A job of a queue that did not exist goes to the client that waits for such."""
        client, other = self.block(b"mail:*"), self.block(b"sms:*")
        self.add(b"mail:new")
        self.assertEqual(b"mail:new", self.queue_of(client))
        self.assertEqual(b"", self.queue_of(other))
        self.assertEqual(NOT_BLOCKED, client.blocked)

    def test_longest_waiting(self) -> None:
        """Clients with the same patterns are served in the order in which they came."""
        first, second = self.block(b"*"), self.block(b"*")
        self.add(b"a")
        self.assertEqual((b"a", b""), (self.queue_of(first), self.queue_of(second)))
        self.add(b"b")
        self.assertEqual(b"b", self.queue_of(second))

    def test_named_first(self) -> None:
        """A client that named the queue gets its job before one that waits by pattern."""
        by_pattern, by_name = self.block(b"*"), self.wait(b"a")
        self.add(b"a")
        self.assertEqual((b"", b"a"), (self.queue_of(by_pattern), self.queue_of(by_name)))
        self.add(b"a")
        self.assertEqual(b"a", self.queue_of(by_pattern))

    def test_names_and_patterns(self) -> None:
        """Whoever waits for both leaves both lists with the first job."""
        client = self.block(b"mail:*", names=(b"a",))
        self.add(b"a")
        self.assertEqual(b"a", self.queue_of(client))
        self.add(b"mail:x")
        self.assertEqual([], self.replies(client))
        self.assertEqual(1, self.length(b"mail:x"))

    def test_excepted(self) -> None:
        """A job of a queue that is excepted wakes nobody."""
        client = self.block(b"*", excepts=(b"dead:*",))
        self.add(b"dead:a")
        self.assertEqual(b"", self.queue_of(client))

    def test_pause_ends(self) -> None:
        """Jobs that came during a pause go to the clients that wait when it ends."""
        self.node.pause(b"a", PAUSE_OUT)
        self.add(b"a")
        client = self.block(b"*")
        self.node.pause(b"a", PAUSE_NONE)
        self.node.serve()
        self.assertEqual(b"a", self.queue_of(client))

    def test_requeued(self) -> None:
        """A job that comes back goes to whoever waits."""
        self.add(b"a", retry_s=10)
        self.match(b"*")
        client = self.block(b"*")
        self.pass_ms(11_000)
        self.assertEqual(b"a", self.queue_of(client))

    def test_time_over(self) -> None:
        """A client whose time is over gets the empty answer, and no job afterwards."""
        client = self.block(b"*", timeout_ms=500)
        self.pass_ms(520)
        self.assertEqual([None], self.replies(client))
        self.add(b"a")
        self.assertEqual([], self.replies(client))
        self.assertEqual(1, self.length(b"a"))

    def test_gone(self) -> None:
        """The job of a client that disconnected goes to the next one."""
        first, second = self.block(b"*"), self.block(b"*")
        self.node.client_gone(first)
        self.add(b"a")
        self.assertEqual(b"a", self.queue_of(second))
        self.assertEqual([], self.replies(first))

    def test_doomed(self) -> None:
        """A client whose connection is about to be closed gets no job that would be lost."""
        first, second = self.block(b"*"), self.block(b"*")
        first.abort_now = True
        self.add(b"a")
        self.assertEqual((b"", b"a"), (self.queue_of(first), self.queue_of(second)))

    def test_counters(self) -> None:
        """WITHCOUNTERS also applies to a job that arrives later."""
        client = self.connect()
        request = self.request(b"*")
        request.counters = True
        self.node.get_matching(client, request)
        job_id = self.add(b"a")
        expected = [b"a", job_id, b"body", b"nacks", 0, b"additional-deliveries", 0]
        self.assertEqual([[expected]], self.replies(client))

    def test_silent_client(self) -> None:
        """CLIENT REPLY OFF takes the job without an answer, as by name."""
        client = self.block(b"*")
        client.reply_mode = REPLY_OFF
        self.add(b"a")
        self.assertEqual([], self.replies(client))
        self.assertEqual(0, self.length(b"a"))

    def test_leaving(self) -> None:
        """A node that leaves sends its clients elsewhere."""
        client = self.block(b"*")
        self.node.membership.myself.flags |= LEAVING
        self.node.release_leaving()
        (error,) = self.replies(client)
        assert isinstance(error, Error)
        self.assertIn(b"LEAVING", error.line)
        with self.assertRaises(CommandError):
            self.node.get_matching(self.connect(), self.request(b"*"))

    def test_dismissed(self) -> None:
        """Clients that wait by pattern are released with the others when the node stops."""
        client = self.block(b"*")
        self.assertEqual([client], self.node.dismiss(CommandError("ERR", "over")))


class ManyQueuesTests(MatchCase):
    """More queues than one turn may look at."""

    def setUp(self) -> None:
        super().setUp()
        for number in range(MANY):
            self.node.queues.obtain(b"q%d" % number, self.now_ms)

    def finish(self) -> None:
        """Let the node look at all queues."""
        for _ in range(1_000):
            if not self.node.state.slices.busy():
                break
            self.pass_ms(1)
        self.assertFalse(self.node.state.slices.busy())

    def test_found_later(self) -> None:
        """A job in one of very many queues is found, if not at once then in one of the next turns,
        even with NOHANG."""
        for number in range(MANY):
            self.add(b"q%d" % number)
            self.get(b"q%d" % number)
        clients = []
        for number in range(0, MANY, 97):
            self.add(b"q%d" % number)
            client = self.connect()
            request = GetRequest([], [b"q%d" % number], [])
            request.no_hang = True
            self.node.get_matching(client, request)
            clients.append((number, client))
        self.finish()
        for number, client in clients:
            self.assertEqual(b"q%d" % number, self.queue_of(client))

    def test_nothing_found(self) -> None:
        """With NOHANG the answer is empty once all were looked at, and the client goes on."""
        client = self.connect()
        request = self.request(b"none*")
        request.no_hang = True
        self.node.get_matching(client, request)
        self.assertEqual([], self.replies(client))
        self.finish()
        self.assertEqual([None], self.replies(client))
        self.assertEqual(NOT_BLOCKED, client.blocked)
        self.assertEqual([], self.match(b"none*"))

    def test_disconnected_meanwhile(self) -> None:
        """A client that goes away meanwhile is forgotten."""
        client = self.connect()
        request = self.request(b"none*")
        request.no_hang = True
        self.node.get_matching(client, request)
        self.node.client_gone(client)
        self.finish()
        self.assertEqual([], self.replies(client))

    def test_job_meanwhile(self) -> None:
        """A job that comes while queues are still looked at is delivered at once."""
        client = self.block(b"new*")
        self.add(b"new")
        self.assertEqual(b"new", self.queue_of(client))


class SelectorsTests(MatchCase):
    """How many lists of patterns are kept."""

    def selectors(self) -> int:
        """How many there are."""
        return len(self.node.waiters.matching)

    def test_shared(self) -> None:
        """Clients with the same patterns share what is kept for them."""
        for _ in range(50):
            self.block(b"a*", b"b*")
        self.assertEqual(1, self.selectors())

    def test_idle_forgotten(self) -> None:
        """Without use nothing is kept, and nothing costs anything."""
        self.match(b"*")
        client = self.block(b"a*")
        self.pass_ms(IDLE_MS)
        self.assertEqual(1, self.selectors())
        self.node.client_gone(client)
        self.pass_ms(IDLE_MS)
        self.assertEqual(0, self.selectors())
        self.assertFalse(self.node.waiters.matching.active)
        self.assertEqual(-1, self.node.next_due_ms())

    def test_hostile(self) -> None:
        """A client that never repeats a pattern does not fill the memory."""
        for number in range(2 * IDLE_MAX):
            self.match(b"x%d*" % number)
        self.assertEqual(IDLE_MAX, self.selectors())

    def test_right_after_changes(self) -> None:
        """Queues follow when patterns come and go."""
        first = self.block(b"a*")
        self.add(b"b")
        second = self.block(b"*", excepts=(b"b",))
        self.node.client_gone(first)
        for number in range(2 * IDLE_MAX):
            self.match(b"x%d*" % number)
        self.add(b"a")
        self.assertEqual(b"a", self.queue_of(second))
        self.assertEqual([b"b"], self.match(b"b"))

    def test_bounds(self) -> None:
        """Patterns that are too long or too many are refused by name."""
        for patterns, excepts in (
            ([b"x" * (PATTERN_BYTES_MAX + 1)], []),
            ([b"*"], [b"x" * 1_000_000]),
            ([b"*"] * (GLOBS_MAX + 1), []),
            ([b"*"], [b"x"] * (GLOBS_MAX + 1)),
        ):
            with self.assertRaises(CommandError) as caught:
                self.node.get_matching(self.client, GetRequest([], patterns, excepts))
            self.assertIn("pattern", caught.exception.text.lower())
        self.assertEqual(0, self.selectors())

    def test_too_many_in_use(self) -> None:
        """There is a limit to different patterns with which clients wait; the others go on."""
        matching = self.node.waiters.matching
        for number in range(SELECTORS_MAX):
            matching.join(matching.obtain([b"x%d*" % number], []), self.connect())
        error = self.assertRaises(CommandError, matching.obtain, [b"y*"], [])
        self.assertIn("different lists of patterns", error.text)
        self.block(b"x1*")
