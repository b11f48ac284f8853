"""Clients that wait for jobs (client protocol, section 20)."""

from __future__ import annotations

from disque_tx.commands.base.values import Error
from disque_tx.core.base.client import BLOCKED_ADDJOB, NOT_BLOCKED, REPLY_OFF
from disque_tx.core.queues.queues import PAUSE_IN, PAUSE_NONE, PAUSE_OUT
from disque_tx.messages.nodes import LEAVING
from tests.core.bench import NodeCase
from tests.core.peerbench import PeerCase

DAY_MS = 86_400_000


class FairnessTests(NodeCase):
    """Which client gets which job."""

    def test_first_come_first_served(self) -> None:
        """The client that has waited longest gets the next job, one each, whatever its COUNT."""
        first, second = self.wait(b"q", count=10), self.wait(b"q")
        one, two, three = self.add(), self.add(), self.add()
        self.assertEqual([[[b"q", one, b"body"]]], self.replies(first))
        self.assertEqual([[[b"q", two, b"body"]]], self.replies(second))
        self.assertEqual([three], self.get(b"q"))

    def test_answered_at_once(self) -> None:
        """The reply to a client that waited leaves with the turn in which it got a job."""
        waiting = self.wait(b"q")
        self.node.outbox.touched.clear()
        waiting.touched = False
        self.add()
        self.assertIn(waiting, self.node.outbox.touched)

    def test_wait_lists_of_several_queues(self) -> None:
        """A client in several wait lists keeps its place in each, and leaves all when it is
        served."""
        both, only_b = self.wait(b"a", b"b"), self.wait(b"b")
        job_b = self.add(b"b")
        self.assertEqual([[[b"b", job_b, b"body"]]], self.replies(both))
        self.add(b"a")
        self.assertEqual([], self.replies(both))
        self.assertEqual(1, self.length(b"a"))
        next_b = self.add(b"b")
        self.assertEqual([[[b"b", next_b, b"body"]]], self.replies(only_b))

    def test_named_twice(self) -> None:
        """A queue named twice means one place in its wait list and one job."""
        client = self.wait(b"q", b"q")
        queue = self.node.queues.get(b"q")
        assert queue is not None
        self.assertEqual(1, queue.blocked())
        self.add()
        self.assertEqual(1, len(self.replies(client)))
        self.assertEqual(0, queue.blocked())
        self.add()
        self.assertEqual(1, self.length())

    def test_oldest_job(self) -> None:
        """When several jobs arrive at once, the oldest goes to the client that has waited
        longest."""
        old, new = self.add(), self.add()
        self.get(b"q", count=2)
        first, second = self.wait(b"q"), self.wait(b"q")
        self.node.enqueue([new, old], False)
        self.node.serve()
        self.assertEqual([[[b"q", old, b"body"]]], self.replies(first))
        self.assertEqual([[[b"q", new, b"body"]]], self.replies(second))

    def test_counters(self) -> None:
        """WITHCOUNTERS also applies to a job that arrives later."""
        client = self.connect()
        self.node.get_jobs(client, [b"q"], 1, 0, False, True)
        job_id = self.add()
        expected = [b"q", job_id, b"body", b"nacks", 0, b"additional-deliveries", 0]
        self.assertEqual([[expected]], self.replies(client))

    def test_requeued_by_the_timer(self) -> None:
        """A job that is queued again by the timer serves a waiting client like a new one."""
        job_id = self.add(retry_s=10)
        self.get(b"q")
        client = self.wait(b"q")
        self.pass_ms(10_000)
        self.assertEqual([[[b"q", job_id, b"body"]]], self.replies(client))


class EndOfWaitTests(NodeCase):
    """The ways in which waiting ends."""

    def assert_free(self, *clients_names: bytes) -> None:
        """No client is in any wait list, and no timeout is pending."""
        self.assertEqual(0, self.node.blocked_clients)
        for name in clients_names:
            queue = self.node.queues.get(name)
            self.assertEqual(0, 0 if queue is None else queue.blocked())

    def test_time_out(self) -> None:
        """A nil array is sent, no earlier than requested and at most 20 ms later."""
        client = self.wait(b"a", b"b", timeout_ms=1)
        self.assertEqual([], self.replies(client))
        self.pass_ms(20)
        self.assertEqual([None], self.replies(client))
        self.assertEqual(NOT_BLOCKED, client.blocked)
        self.assertIn(client, self.node.outbox.resumed)
        self.assertIn(client, self.node.outbox.touched)
        self.assert_free(b"a", b"b")

    def test_not_early(self) -> None:
        """A timeout never fires early."""
        client = self.wait(b"q", timeout_ms=1001)
        self.pass_ms(1000)
        self.assertEqual([], self.replies(client))
        self.pass_ms(20)
        self.assertEqual([None], self.replies(client))

    def test_no_time_out(self) -> None:
        """Zero waits indefinitely, and so does any absurdly long timeout."""
        for timeout_ms in (0, 1 << 60, (1 << 63) - 1):
            client = self.wait(b"q", timeout_ms=timeout_ms)
            self.pass_ms(400 * DAY_MS)
            self.assertEqual([], self.replies(client))
            self.node.client_gone(client)

    def test_served_client_does_not_time_out(self) -> None:
        """A client that got a job gets no nil array afterwards."""
        client = self.wait(b"q", timeout_ms=1000)
        self.add()
        self.assertEqual(1, len(self.replies(client)))
        self.pass_ms(2000)
        self.assertEqual([], self.replies(client))

    def test_disconnect(self) -> None:
        """A client that disconnects loses no job, at whatever moment it does."""
        client = self.wait(b"a", b"b", timeout_ms=1000)
        self.node.client_gone(client)
        self.node.client_gone(client)
        self.add(b"a")
        self.assertEqual(1, self.length(b"a"))
        self.assert_free(b"a", b"b")
        self.pass_ms(2000)
        self.assertEqual([], self.replies(client))

    def test_disconnect_between_job_and_service(self) -> None:
        """The client disconnects after the job arrived and before it is served: the next client
        gets it."""
        job_id = self.add()
        self.get(b"q")
        first, second = self.wait(b"q"), self.wait(b"q")
        self.node.enqueue([job_id], False)
        self.node.client_gone(first)
        self.node.serve()
        self.assertEqual([], self.replies(first))
        self.assertEqual(1, len(self.replies(second)))

    def test_last_one_disconnects_between(self) -> None:
        """The same without another waiting client: the job stays queued, and the queue keeps
        working."""
        job_id = self.add()
        self.get(b"q")
        only = self.wait(b"q")
        self.node.enqueue([job_id], False)
        self.node.client_gone(only)
        self.node.serve()
        self.assertEqual(1, self.length())
        self.get(b"q")
        later = self.wait(b"q")
        self.add()
        self.assertEqual(1, len(self.replies(later)))

    def test_doomed(self) -> None:
        """A client whose connection is being closed gets no job (CLIENT KILL)."""
        doomed, alive = self.wait(b"q"), self.wait(b"q")
        doomed.abort_now = True
        self.add()
        self.assertEqual([], self.replies(doomed))
        self.assertEqual(1, len(self.replies(alive)))

    def test_flush(self) -> None:
        """DEBUG FLUSHALL sends a nil array to all waiting clients, and queues start afresh."""
        clients = [self.wait(b"q"), self.wait(b"r", timeout_ms=100)]
        self.node.flush_all()
        self.assertEqual([[None], [None]], [self.replies(client) for client in clients])
        self.assertEqual(0, self.node.used_memory())
        self.pass_ms(1000)
        self.assertEqual([[], []], [self.replies(client) for client in clients])
        waiting = self.wait(b"q")
        self.add()
        self.assertEqual(1, len(self.replies(waiting)))

    def test_node_leaves(self) -> None:
        """A leaving node sends its waiting clients an error, and removes them from all wait
        lists."""
        client = self.wait(b"a", b"b")
        self.node.release_leaving()
        self.assertEqual([], self.replies(client))
        self.node.membership.myself.flags |= LEAVING
        self.node.release_leaving()
        (error,) = self.replies(client)
        assert isinstance(error, Error)
        self.assertEqual(
            b"LEAVING This node is leaving the cluster, please connect to a different one",
            error.line,
        )
        self.assert_free(b"a", b"b")

    def test_silenced(self) -> None:
        """With CLIENT REPLY OFF neither job nor timeout nor error is sent."""
        served, late, sent_away = (self.wait(name, timeout_ms=60) for name in (b"a", b"b", b"c"))
        for client in (served, late, sent_away):
            client.reply_mode = REPLY_OFF
        self.add(b"a")
        self.assertEqual(0, self.length(b"a"))
        self.node.client_gone(sent_away)
        self.pass_ms(100)
        sent_away = self.wait(b"c")
        sent_away.reply_mode = REPLY_OFF
        self.node.membership.myself.flags |= LEAVING
        self.node.release_leaving()
        self.assertEqual([], self.replies(served) + self.replies(late) + self.replies(sent_away))
        self.assert_free(b"a", b"b", b"c")


class PauseTests(NodeCase):
    """Queues with paused output."""

    def test_output(self) -> None:
        """Jobs collect during the pause, and when it ends waiting clients are served."""
        self.node.pause(b"q", PAUSE_OUT)
        client = self.wait(b"q")
        self.add()
        self.assertEqual([], self.replies(client))
        self.node.pause(b"q", PAUSE_IN)
        self.node.serve()
        self.assertEqual(1, len(self.replies(client)))

    def test_pause_before_service(self) -> None:
        """A pause that comes between the job's arrival and its delivery takes effect."""
        job_id = self.add()
        self.get(b"q")
        client = self.wait(b"q")
        self.node.enqueue([job_id], False)
        self.node.pause(b"q", PAUSE_OUT)
        self.node.serve()
        self.assertEqual([], self.replies(client))
        self.node.pause(b"q", PAUSE_NONE)
        self.node.serve()
        self.assertEqual(1, len(self.replies(client)))


class CopiesTests(PeerCase):
    """Clients that wait for copies."""

    def test_state(self) -> None:
        """Such a client is blocked like others, and is listed as blocked."""
        client = self.begin_add(2)
        self.assertEqual((BLOCKED_ADDJOB, 1), (client.blocked, self.node.blocked_clients))

    def test_no_timeout(self) -> None:
        """0 and absurdly long timeouts wait until the job expires."""
        clients = [self.begin_add(2, ttl_s=100, timeout_ms=ms) for ms in (0, (1 << 63) - 1)]
        self.pass_ms(99_000)
        self.assertEqual(2, self.node.blocked_clients)
        self.pass_ms(1_000)
        self.assertEqual([1, 1], [len(self.replies(client)) for client in clients])
        self.assert_nothing_left()

    def test_requests_go_on(self) -> None:
        """When its wait ends, the requests that the client sent meanwhile are processed."""
        late, refused, gone = self.begin_add(2, timeout_ms=60), self.begin_add(2), self.begin_add(2)
        self.pass_ms(60)
        self.node.delete([refused.blocked_job])
        self.node.client_gone(gone)
        self.assertEqual([late, refused, gone], self.node.outbox.resumed)
        self.assertEqual([late, refused], self.node.outbox.touched)

    def test_jobs_are_not_for_it(self) -> None:
        """It gets no job, not even its own."""
        client = self.begin_add(2)
        self.add(replicate=1)
        self.assertEqual(([], 1), (self.replies(client), self.length()))
