"""ADDJOB and GETJOB on the node, and its deadlines (client protocol, sections 14 and 15)."""

from __future__ import annotations

from disque_tx.commands.base.values import Error
from disque_tx.core.node import DUE_PER_TURN
from disque_tx.core.queues.queues import PAUSE_ALL, PAUSE_IN, PAUSE_OUT
from disque_tx.errors import CommandError
from disque_tx.messages.events import EventSink
from disque_tx.messages.nodes import FAIL, LEAVING, NodeEntry
from disque_tx.messages.records import ACTIVE, QUEUED, JobRecord
from tests.core.bench import ME, NodeCase, add_request
from tests.core.peerbench import B, C, PeerCase

UNREACHABLE = "Not enough reachable nodes for the requested replication level"
BECAUSE = (
    UNREACHABLE + ", since I'm unable to hold a copy of the message for the following reason: "
)
ONCE = "With RETRY set to 0 please explicitly set  REPLICATE to 1 (at-most-once delivery)"
NEVER = "The specified DELAY is greater than TTL. Job refused since would never be delivered"


class FailingEvents(EventSink):
    """Raises on the events of one job."""

    def __init__(self, job_id: bytes) -> None:
        super().__init__()
        self._job_id = job_id

    def job(self, kind: int, job: JobRecord, reason: int, number: int, elapsed_ms: int) -> None:
        if job.id == self._job_id:
            raise RuntimeError("a fault")


class AddTests(NodeCase):
    """What is stored for a new job."""

    def test_record(self) -> None:
        """The job has the requested values, and the log has its record in its first state."""
        job_id = self.add(b"q", b"\0body", replicate=1, ttl_s=100, retry_s=7)
        record = self.log.records[job_id]
        self.assertEqual(
            (b"q", b"\0body", (ME,), 1, 7, 0, QUEUED),
            (
                record.queue,
                record.body,
                record.nodes,
                record.repl,
                record.retry_s,
                record.delay_s,
                record.state,
            ),
        )
        self.assertEqual(self.wall_us // 1_000_000 + 100, record.etime_s)
        delayed = self.add(delay_s=5)
        self.assertEqual(ACTIVE, self.log.records[delayed].state)

    def test_empty_names(self) -> None:
        """Queue and body may be empty, and binary."""
        for name in (b"", b"\0\r\n\xff"):
            job_id = self.add(name, b"")
            self.assertEqual([job_id], self.get(name))

    def test_default_retry(self) -> None:
        """A tenth of the TTL, between one second and five minutes."""
        for ttl_s, retry_s in ((1, 1), (19, 1), (20, 2), (3_000, 300), (86_400, 300)):
            self.assertEqual(retry_s, self.job(self.add(ttl_s=ttl_s)).retry_s)

    def test_creation_times_grow(self) -> None:
        """Jobs of the same millisecond, and after the clock was set back, keep the order they were
        added in."""
        ids = [self.add(), self.add()]
        self.begin(self.now_ms, self.wall_us - 10_000_000)
        ids += [self.add(), self.add()]
        self.begin(self.now_ms, self.wall_us + 60_000_000)
        ids.append(self.add())
        ctimes = [self.job(job_id).ctime for job_id in ids]
        self.assertEqual(sorted(set(ctimes)), ctimes)
        self.assertEqual(self.wall_us // 1000 * 1_000_000, ctimes[-1])
        self.assertEqual(ids, self.get(b"q", count=10))

    def test_longest_life(self) -> None:
        """An expiry time that the record cannot hold is refused, the largest one that it can is
        not."""
        last = 4_294_967_295 - self.wall_us // 1_000_000
        self.add(ttl_s=last)
        self.assertEqual(("ERR", "TTL must be a number > 0"), self.refusal(ttl_s=last + 1))


class RefusalTests(NodeCase):
    """Section 14.2: the checks, and which of two failed checks is reported."""

    def meet(self, count: int, flags: int = 0) -> None:
        """Add other nodes."""
        for number in range(count):
            node_id = b"%040x" % (100 + number)
            self.node.membership.add(NodeEntry(node_id, b"10.0.0.1", 7711 + number, flags, 0))

    def test_at_most_once(self) -> None:
        """RETRY 0 needs REPLICATE 1, which must be explicit as soon as there is a second node."""
        self.assertEqual(("ERR", ONCE), self.refusal(retry_s=0, replicate=2))
        self.add(retry_s=0)
        self.meet(1)
        self.assertEqual(("ERR", ONCE), self.refusal(retry_s=0))
        self.add(retry_s=0, replicate=1)

    def test_delay(self) -> None:
        """A delay that is as long as the TTL or longer is refused, since the job would never be
        delivered."""
        for delay_s in (10, 11):
            self.assertEqual(("ERR", NEVER), self.refusal(ttl_s=10, delay_s=delay_s))
        self.add(ttl_s=10, delay_s=9)

    def test_copies(self) -> None:
        """More copies than reachable nodes are refused; failed nodes only count for the default."""
        self.assertEqual(("NOREPL", UNREACHABLE), self.refusal(replicate=2))
        self.meet(2, FAIL)
        self.assertEqual(("NOREPL", UNREACHABLE), self.refusal())
        self.add(replicate=1)

    def test_copies_need_links(self) -> None:
        """A node that is only known from a file gets no copy: the client waits until its
        timeout."""
        self.meet(1)
        client = self.connect()
        self.node.add_job(client, add_request(replicate=2, retry_s=60, timeout_ms=100))
        self.assertEqual([], self.replies(client))
        self.pass_ms(100)
        (error,) = self.replies(client)
        assert isinstance(error, Error)
        self.assertTrue(error.line.startswith(b"NOREPL Timeout reached"), error.line)

    def test_short_of_memory(self) -> None:
        """Above 75 % this node stores nothing; the error says so if one more copy would have been
        enough."""
        self.node.memory.limit = 100_000
        self.node.memory.used = 80_000
        expected = ("NOREPL", BECAUSE + "I'm out of memory")
        self.assertEqual(expected, self.refusal(replicate=1))
        self.assertEqual(("NOREPL", UNREACHABLE), self.refusal(replicate=2))

    def test_leaving(self) -> None:
        """The same applies to a leaving node, and this reason is reported first."""
        self.node.memory.limit = 100_000
        self.node.memory.used = 80_000
        self.node.membership.myself.flags |= LEAVING
        expected = ("NOREPL", BECAUSE + "I'm leaving the cluster")
        self.assertEqual(expected, self.refusal(replicate=1))

    def test_maxlen(self) -> None:
        """MAXLEN counts queued jobs only, and a queue that does not exist has none."""
        self.add(maxlen=1)
        refused = ("MAXLEN", "Queue is already longer than the specified MAXLEN count")
        self.assertEqual(refused, self.refusal(maxlen=1))
        self.add(maxlen=2, delay_s=5)
        self.add(maxlen=2)
        self.assertEqual(refused, self.refusal(maxlen=2))
        self.get(b"q")
        self.add(maxlen=2)
        self.add(maxlen=(1 << 63) - 1)

    def test_paused(self) -> None:
        """A queue with paused input accepts no jobs, one with paused output does."""
        for flags in (PAUSE_IN, PAUSE_ALL):
            self.node.pause(b"q", flags)
            self.assertEqual(("PAUSED", "Queue paused in input, try later"), self.refusal())
        self.node.pause(b"q", PAUSE_OUT)
        self.add()

    def test_order(self) -> None:
        """Every check has precedence over those after it."""
        self.add()
        self.node.pause(b"q", PAUSE_IN)
        wrong = {"retry_s": 0, "replicate": 2, "ttl_s": 5, "delay_s": 5, "maxlen": 1}
        codes = []
        for repair in ({"retry_s": 1}, {"delay_s": 0}, {"replicate": 1}, {"maxlen": 5}, {}):
            codes.append(self.refusal(**wrong))
            wrong.update(repair)
        self.assertEqual(
            [("ERR", ONCE), ("ERR", NEVER), ("NOREPL", UNREACHABLE), "MAXLEN", "PAUSED"],
            codes[:3] + [code for code, _ in codes[3:]],
        )

    def test_nothing_is_left(self) -> None:
        """A refused job leaves no trace."""
        self.refusal(replicate=9)
        self.refusal(ttl_s=1, delay_s=1)
        self.refusal(ttl_s=4_294_967_295)
        self.assertEqual((0, 0), (len(self.node.jobs), self.node.used_memory()))
        self.assertEqual([], self.log.lines)
        self.assertEqual(-1, self.node.next_due_ms())


class GetTests(NodeCase):
    """Which jobs GETJOB delivers."""

    def test_one_per_queue_and_pass(self) -> None:
        """The jobs are a1, b1, a2, as in the example of section 15."""
        a1, a2, a3, b1 = self.add(b"a"), self.add(b"a"), self.add(b"a"), self.add(b"b")
        self.assertEqual([a1, b1, a2], self.get(b"a", b"b", count=3))
        self.assertEqual([a3], self.get(b"a", b"b", count=3))

    def test_named_twice(self) -> None:
        """A queue named twice contributes two jobs per pass."""
        a1, a2, a3, b1 = self.add(b"a"), self.add(b"a"), self.add(b"a"), self.add(b"b")
        self.assertEqual([a1, a2, b1, a3], self.get(b"a", b"a", b"b", count=9))

    def test_count(self) -> None:
        """Never more jobs than requested, and all there are when that is less."""
        ids = [self.add() for _ in range(5)]
        self.assertEqual(ids[:2], self.get(b"q", count=2))
        self.assertEqual(ids[2:], self.get(b"q", count=(1 << 63) - 1))

    def test_paused_out(self) -> None:
        """Queues with paused output are skipped."""
        self.add(b"a")
        b1 = self.add(b"b")
        self.node.pause(b"a", PAUSE_OUT)
        self.assertEqual([b1], self.get(b"a", b"b", count=5))

    def test_queue_is_made(self) -> None:
        """GETJOB creates the queue, even with NOHANG."""
        self.assertEqual([], self.get(b"new"))
        self.assertIsNotNone(self.node.queues.get(b"new"))

    def test_statistics(self) -> None:
        """Enqueues of any kind and deliveries are counted per queue."""
        job_id = self.add()
        self.get(b"q")
        self.node.enqueue([job_id], True)
        self.get(b"q")
        queue = self.node.queues.get(b"q")
        assert queue is not None
        self.assertEqual((2, 2), (queue.jobs_in, queue.jobs_out))

    def test_leaving(self) -> None:
        """A leaving node delivers what it has, and refuses clients that would have to wait."""
        job_id = self.add(replicate=1)
        self.node.membership.myself.flags |= LEAVING
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual([], self.get(b"q"))
        error = self.assertRaises(
            CommandError, self.node.get_jobs, self.client, [b"q"], 1, 0, False, False
        )
        self.assertEqual("LEAVING", error.code)

    def test_nothing_is_written(self) -> None:
        """Deliveries are not logged, so that they are as fast as memory."""
        self.add()
        before = list(self.log.lines)
        self.get(b"q")
        self.assertEqual(before, self.log.lines)


class TurnTests(NodeCase):
    """The work of one turn."""

    def test_bounded(self) -> None:
        """A turn handles a bounded number of jobs; the next one handles the rest."""
        for _ in range(DUE_PER_TURN + 10):
            self.add(delay_s=1)
        self.pass_ms(1_000)
        self.assertEqual(DUE_PER_TURN, self.length())
        self.assertLessEqual(self.node.next_due_ms(), self.now_ms)
        self.node.run_due()
        self.assertEqual(DUE_PER_TURN + 10, self.length())

    def test_fault(self) -> None:
        """An exception on one job does not hold up the jobs that are due with it, and does not
        recur in every turn."""
        ids = [self.add(delay_s=1) for _ in range(5)]
        self.node.outbox.events = FailingEvents(ids[2])
        with self.assertRaises(RuntimeError):
            self.pass_ms(1_000)
        self.pass_ms(20)
        self.assertEqual(set(ids) - {ids[2]}, set(self.get(b"q", count=9)))

    def test_next_due(self) -> None:
        """A driver that sleeps until then misses neither job nor timeout."""
        self.assertEqual(-1, self.node.next_due_ms())
        self.add(delay_s=5, ttl_s=100)
        self.assertEqual(self.now_ms + 5_000, self.node.next_due_ms())
        self.wait(b"x", timeout_ms=1_000)
        self.assertEqual(self.now_ms + 1_000, self.node.next_due_ms())

    def test_all_memory_comes_back(self) -> None:
        """When all jobs and queues are gone, no memory is counted."""
        ids = [self.add(b"q%d" % (number % 7), b"x" * number) for number in range(50)]
        self.get(*[b"q%d" % number for number in range(7)], count=20)
        self.node.delete(ids[::2])
        peak = self.node.peak_memory
        self.node.flush_all()
        self.assertEqual((0, 0, 0), (self.node.used_memory(), len(self.node.jobs), self.length()))
        self.assertEqual({}, self.log.records)
        self.assertEqual(peak, self.node.peak_memory)
        self.assertEqual(-1, self.node.next_due_ms())

    def test_hard_reset_changes_the_id(self) -> None:
        """Jobs that are added after the node got a new ID contain the new one."""
        self.node.membership.reset(True)
        job_id = self.add()
        self.assertNotEqual(ME, self.node.id)
        self.assertEqual((self.node.id,), self.job(job_id).nodes)
        self.assertEqual(self.node.id[:8], job_id[2:10])


class DismissTests(PeerCase):
    """A node that stops does not leave its clients and their requests hanging."""

    ERROR = CommandError("LEAVING", "stopping")

    def test_all_clients(self) -> None:
        """Waiting clients get an error with the reason, and copies of unaccepted jobs are
        deleted."""
        waiting = self.wait(b"q")
        adding = self.begin_add(2)
        self.clear_sent()
        self.assertEqual({waiting, adding}, set(self.node.dismiss(self.ERROR)))
        for client in (waiting, adding):
            (error,) = self.replies(client)
            self.assertEqual(b"LEAVING stopping", getattr(error, "line", b""))
        self.assertEqual(["DELJOB"], self.sent_names(B) + self.sent_names(C))
        self.assertEqual((0, 0), (len(self.node.jobs), self.node.blocked_clients))

    def test_accepted(self) -> None:
        """An ASYNC job whose client already has its ID is not deleted on its holders."""
        self.leave()
        self.begin_add(1, asynchronous=True)
        self.clear_sent()
        self.node.dismiss(self.ERROR)
        self.assertEqual([], self.sent_names(B) + self.sent_names(C))
