"""One node, compared with a simple model, under all that clients, time and restarts can do to it.

The model knows where every job must be: in its queue, delivered to a worker, or gone. Its only
input from the node are job IDs and replies. Jitter is zero and all times lie on the grid of the
schedule, so that every time is exact.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.context import Server
from disque_tx.commands.base.values import Error, Status, Value, ValueReplies
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.commands.server.memory import MemoryControl
from disque_tx.commands.table import standard_registry
from disque_tx.core.base.client import NOT_BLOCKED, Client
from disque_tx.core.node import Node
from disque_tx.core.recovery import load
from tests import profiles  # noqa: F401
from tests.core.bench import MemoryLog, NumberedIds, new_membership

QUEUES = (b"a", b"b", b"c")
queues = st.sampled_from(QUEUES)
#: Steps of the wall clock, in seconds.
steps_s = st.sampled_from([-3_600, -40, -2, 2, 40, 3_600])
#: The times of the schedule; every step differs by one, so that no time occurs twice.
SLOT_US = 20_000


class JobModel:
    """What must be true of one job.

    ``ctime_ms``: its creation time in the record; with ``number`` its place in its queue.
    ``queued``: it is in its queue. ``due_ms``: when it is queued by a timer, 0 for never.
    ``not_before_ms``: the earliest delivery. ``counted``: the next queueing counts as an additional
    delivery. ``record``: what a restart finds: whether the delay is all that happened, ``counted``,
    and both counters. ``etime_s``: its expiry in the record, by the wall clock. ``life_ms``: its
    TTL, as far as the node knows.
    """

    def __init__(
        self, number: int, queue: bytes, ttl_s: int, retry_s: int, delay_s: int, added_ms: int
    ) -> None:
        self.number = number
        self.queue = queue
        self.ttl_s = ttl_s
        self.retry_s = retry_s
        self.delay_s = delay_s
        self.not_before_ms = self.delay_end_ms = added_ms + delay_s * 1000
        self.due_ms = self.delay_end_ms if delay_s else 0
        self.life_ms = ttl_s * 1000
        self.end_ms = added_ms + self.life_ms
        self.ctime_ms = 0
        self.etime_s = 0
        self.queued = False
        self.counted = delay_s == 0
        self.delivered = False
        self.held_back = False
        self.nacks = 0
        self.deliveries = 0
        self.write_record(delay_s > 0)

    def write_record(self, only_delayed: bool) -> None:
        """The log gets a record of the job's current state."""
        self.record = (only_delayed, self.counted, self.nacks, self.deliveries)

    def put(self, now_ms: int) -> None:
        """The job enters its queue, and its retry timer starts."""
        self.queued = True
        self.held_back = False
        self.due_ms = now_ms + self.retry_s * 1000 if self.retry_s else 0

    def requeue(self, nack: bool, now_ms: int) -> None:
        """The job enters its queue again, which is counted."""
        first = not self.counted
        if self.held_back:
            pass  # that was counted when it was given back
        elif nack:
            self.nacks += 1
        elif self.counted:
            self.deliveries += 1
        else:
            self.counted = True
        self.put(now_ms)
        if self.delay_s and first:
            self.write_record(False)

    def hold_back(self, delay_ms: int, now_ms: int) -> None:
        """The job is given back, and waits."""
        first = not self.counted
        self.nacks += 1
        self.counted = True
        self.held_back = True
        self.due_ms = now_ms + delay_ms
        if self.delay_s and first:
            self.write_record(False)

    def restart(self, now_ms: int, wall_ms: int) -> None:
        """Only the record's contents survive."""
        self.held_back = False
        only_delayed, self.counted, self.nacks, self.deliveries = self.record
        self.queued = False
        minutes = self.ttl_s // 60
        shortest_s, longest_s = 60 * (minutes & ~1), 60 * ((minutes | 1) + 1)
        told_s = self.etime_s - self.ctime_ms // 1000
        self.life_ms = max(shortest_s, min(told_s, longest_s)) * 1000
        left_ms = min(self.etime_s * 1000 - wall_ms, longest_s * 1000)
        self.end_ms = now_ms + left_ms
        self.not_before_ms = 0
        passed_ms = wall_ms - self.ctime_ms
        if self.retry_s == 0 and only_delayed and not 0 <= passed_ms < self.delay_s * 1000:
            only_delayed = False  # the job may have been delivered
        if only_delayed:
            # Nothing happened, though after an earlier start, with another clock, it was possible.
            self.delivered = False
            self._delay_again(now_ms, left_ms)
        elif self.retry_s:
            self.due_ms = now_ms + self.retry_s * 1000
        else:
            self.due_ms = 0
            self.delivered = True  # as far as the node can tell

    def _delay_again(self, now_ms: int, left_ms: int) -> None:
        """Never early, whatever the clock shows, unless by the clock the TTL is nearly over; and
        never later than DELAY from now."""
        delay_ms = self.delay_s * 1000
        life_ms = min(self.life_ms, self.etime_s * 1000 - self.ctime_ms)
        reserve_ms = max(0, min(delay_ms, (life_ms - delay_ms) // 2))
        self.due_ms = now_ms + max(0, min(delay_ms, left_ms - reserve_ms))
        self.not_before_ms = min(self.due_ms, self.delay_end_ms)
        if left_ms >= reserve_ms + delay_ms:
            assert self.due_ms >= self.delay_end_ms


class NodeMachine(RuleBasedStateMachine):
    """The real node with its commands, and the model."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_000_000
        self.wall_us = 1_795_176_084_000_000
        self.steps = 0
        self.job_ids = NumberedIds()
        self.log = MemoryLog()
        self.jobs: dict[bytes, JobModel] = {}
        self.paused: dict[bytes, bytes] = {}
        self.waiting: list[tuple[Client, list[bytes], int]] = []
        self.handed: dict[bytes, int] = {}
        self.ctime_ms = 0
        self.start()

    def start(self) -> None:
        """A process starts: only the log and the clocks existed before."""
        self.node = Node(new_membership(), self.job_ids, lambda: 0.5)
        self.node.begin(self.now_ms, self.wall_us)
        for record in list(self.log.records.values()):
            if not load(self.node, record, False):
                self.log.delete_job(record.id)
        self.node.outbox.log = self.log
        server = Server(self.node, MemoryControl({}), standard_registry())
        self.dispatcher = Dispatcher(server, server.registry, lambda: 0)
        self.client = self.connect()

    def connect(self) -> Client:
        return Client(1, ValueReplies(), b"127.0.0.1:5001", self.now_ms)

    def replies(self, client: Client) -> list[Value]:
        collected = client.replies
        assert isinstance(collected, ValueReplies)
        values = collected.values
        collected.clear()
        return values

    def do(self, *words: bytes) -> Value:
        """The reply to a command, after all clients that it unblocked were served."""
        self.dispatcher.run(self.client, list(words))
        (answer,) = self.replies(self.client)
        self.serve()
        return answer

    # -- the model ---------------------------------------------------------------------------

    def queue_of(self, name: bytes) -> list[bytes]:
        """The IDs that must be in a queue, oldest first."""
        here = [i for i, job in self.jobs.items() if job.queued and job.queue == name]
        return sorted(here, key=self.place)

    def place(self, job_id: bytes) -> tuple[int, int]:
        job = self.jobs[job_id]
        return job.ctime_ms, job.number

    def open(self, name: bytes) -> bool:
        return self.paused.get(name, b"none") not in (b"out", b"all")

    def take(self, job_id: bytes) -> list[Value]:
        """The job must be delivered now; the expected reply."""
        job = self.jobs[job_id]
        assert not (job.delivered and job.retry_s == 0), "RETRY 0 twice"
        assert self.now_ms < job.end_ms, "after its TTL"
        assert self.now_ms >= job.not_before_ms, "before its DELAY"
        job.queued = False
        job.delivered = True
        self.handed[job_id] = self.handed.get(job_id, 0) + 1
        return [job.queue, job_id, b"body of " + job_id[11:35]]

    def serve(self) -> None:
        """Waiting clients must have got the oldest jobs, and nothing else."""
        left = []
        for client, names, end_ms in self.waiting:
            ready = [name for name in names if self.open(name) and self.queue_of(name)]
            answers = self.replies(client)
            if not ready:
                assert answers == []
                left.append((client, names, end_ms))
                continue
            ((item,),) = answers  # type: ignore[misc]
            assert isinstance(item, list)
            assert item[0] in ready
            first = self.queue_of(item[0])[0]  # type: ignore[arg-type]
            assert item == self.take(first)
            assert client.blocked == NOT_BLOCKED
        self.waiting = left

    # -- clients -----------------------------------------------------------------------------

    @rule(
        target=ids,
        queue=queues,
        retry_s=st.sampled_from([0, 0, 1, 7, 100]),
        ttl_s=st.sampled_from([5, 60, 10_000]),
        delay_s=st.sampled_from([0, 0, 0, 3, 50]),
        maxlen=st.sampled_from([0, 0, 2]),
    )
    def addjob(self, queue: bytes, retry_s: int, ttl_s: int, delay_s: int, maxlen: int) -> object:
        """A job is accepted, or refused for the reason that the model expects."""
        body = b"body of %024d" % (self.job_ids.made + 1)
        words = b"TTL %d RETRY %d DELAY %d" % (ttl_s, retry_s, delay_s)
        words += b" MAXLEN %d" % maxlen if maxlen else b""
        length = len(self.queue_of(queue))
        self.dispatcher.run(self.client, [b"ADDJOB", queue, body, b"0", *words.split()])
        (answer,) = self.replies(self.client)
        refused = b""
        if delay_s >= ttl_s:
            refused = b"ERR"
        elif maxlen and length >= maxlen:
            refused = b"MAXLEN"
        elif self.paused.get(queue) in (b"in", b"all"):
            refused = b"PAUSED"
        if refused:
            assert isinstance(answer, Error) and answer.line.startswith(refused + b" "), answer
            return multiple()
        assert isinstance(answer, Status), answer
        job = JobModel(self.job_ids.made, queue, ttl_s, retry_s, delay_s, self.now_ms)
        job.ctime_ms = self.ctime_ms = max(self.ctime_ms, self.wall_us // 1000)
        job.etime_s = self.wall_us // 1_000_000 + ttl_s
        self.jobs[answer.text] = job
        if not delay_s:
            job.put(self.now_ms)
        self.serve()
        return answer.text

    @rule(names=st.lists(queues, min_size=1, max_size=3), count=st.integers(1, 4))
    def getjob(self, names: list[bytes], count: int) -> None:
        """Jobs are delivered one per queue and pass, oldest first."""
        expected: list[list[Value]] = []
        took = True
        while took and len(expected) < count:
            took = False
            for name in names:
                if len(expected) < count and self.open(name) and self.queue_of(name):
                    expected.append(self.take(self.queue_of(name)[0]))
                    took = True
        answer = self.do(b"GETJOB", b"NOHANG", b"COUNT", b"%d" % count, b"FROM", *names)
        assert answer == (expected or None), (answer, expected)

    @rule(names=st.lists(queues, min_size=1, max_size=3), timeout_ms=st.sampled_from([0, 60, 5000]))
    def wait(self, names: list[bytes], timeout_ms: int) -> None:
        """A client requests jobs and waits if there are none."""
        client = self.connect()
        words = [b"GETJOB", b"TIMEOUT", b"%d" % timeout_ms, b"FROM", *names]
        self.dispatcher.run(client, words)
        end_ms = self.now_ms + timeout_ms if timeout_ms else 0
        ready = [name for name in names if self.open(name) and self.queue_of(name)]
        if ready:
            assert self.replies(client) == [[self.take(self.queue_of(ready[0])[0])]]
        else:
            self.waiting.append((client, names, end_ms))

    @rule(place=st.integers(0, 5))
    def disconnect(self, place: int) -> None:
        """A waiting client disconnects."""
        if place < len(self.waiting):
            client, _, _ = self.waiting.pop(place)
            self.node.client_gone(client)

    @rule(job_id=consumes(ids), name=st.sampled_from([b"ACKJOB", b"FASTACK", b"DELJOB"]))
    def acknowledge(self, job_id: bytes, name: bytes) -> None:
        """A job ends, whatever its state, and is counted once."""
        expected = 1 if self.jobs.pop(job_id, None) else 0
        assert self.do(name, job_id, job_id) == expected

    @rule(job_id=ids, nack=st.booleans())
    def enqueue(self, job_id: bytes, nack: bool) -> None:
        """A job is queued again, unless it may not be delivered again."""
        job = self.jobs.get(job_id)
        expected = 0
        given_back = job is not None and job.held_back and nack
        if job and not given_back and not job.queued and (job.retry_s or not job.delivered):
            expected = 1
            job.requeue(nack, self.now_ms)
            job.not_before_ms = 0
        self.dispatcher.run(self.client, [b"NACK" if nack else b"ENQUEUE", job_id])
        assert self.replies(self.client) == [expected]
        self.serve()

    @rule(job_id=ids, slots=st.sampled_from([1, 60, 400]))
    def nack_later(self, job_id: bytes, slots: int) -> None:
        """A job is given back, to be delivered later, and not before."""
        job = self.jobs.get(job_id)
        expected = 0
        if job and not job.queued and not job.held_back and (job.retry_s or not job.delivered):
            expected = 1
            job.not_before_ms = 0
            if job.retry_s:
                job.hold_back(slots * 20, self.now_ms)
                job.not_before_ms = job.due_ms
            else:
                job.requeue(True, self.now_ms)
        words = [b"NACK", b"DELAY", b"%d.%03d" % divmod(slots * 20, 1000), job_id]
        self.dispatcher.run(self.client, words)
        assert self.replies(self.client) == [expected]
        self.serve()

    @rule(job_id=ids)
    def dequeue(self, job_id: bytes) -> None:
        """A job leaves its queue; its retry timer continues."""
        job = self.jobs.get(job_id)
        expected = 1 if job and job.queued else 0
        if job:
            job.queued = False
        assert self.do(b"DEQUEUE", job_id) == expected

    @rule(job_id=ids)
    def working(self, job_id: bytes) -> None:
        """A worker asks for more time."""
        job = self.jobs.get(job_id)
        answer = self.do(b"WORKING", job_id)
        if job is None:
            assert isinstance(answer, Error) and answer.line.startswith(b"NOJOB "), answer
        elif self.late(job):
            assert isinstance(answer, Error) and answer.line.startswith(b"TOOLATE "), answer
        else:
            assert answer == job.retry_s
            if job.retry_s:
                job.queued = False
                again_ms = self.now_ms + job.retry_s * 1000
                job.due_ms = max(job.due_ms, again_ms) if job.held_back else again_ms
                job.not_before_ms = job.due_ms if job.held_back else 0

    def late(self, job: JobModel) -> bool:
        return 2 * (job.end_ms - self.now_ms) < job.life_ms

    @rule(queue=queues, word=st.sampled_from([b"in", b"out", b"all", b"none", b"none"]))
    def pause(self, queue: bytes, word: bytes) -> None:
        """A queue is paused or resumed."""
        self.paused[queue] = word
        assert self.do(b"PAUSE", queue, word) == Status(word)

    # -- time --------------------------------------------------------------------------------

    @rule(slots=st.sampled_from([1, 3, 50, 150, 500, 5_000]))
    def pass_time(self, slots: int) -> None:
        """Time passes; the node runs every 20 ms or when something is due."""
        until_ms = self.now_ms + slots * 20
        while self.now_ms < until_ms:
            due = [job.due_ms for job in self.jobs.values() if job.due_ms]
            due += [job.end_ms for job in self.jobs.values()]
            due += [end_ms for _, _, end_ms in self.waiting if end_ms]
            self.turn(min([until_ms, *[ms for ms in due if ms > self.now_ms]]))

    def turn(self, now_ms: int) -> None:
        """One turn of the node at a time when something is due."""
        self.wall_us += (now_ms - self.now_ms) * 1000
        self.now_ms = now_ms
        self.node.begin(self.now_ms, self.wall_us)
        self.node.run_due()
        for job_id, job in list(self.jobs.items()):
            if job.end_ms <= now_ms:
                del self.jobs[job_id]
            elif job.due_ms and job.due_ms <= now_ms:
                self.come_back(job)
        for client, names, end_ms in list(self.waiting):
            if end_ms and end_ms <= now_ms:
                self.waiting.remove((client, names, end_ms))
                assert self.replies(client) == [None]
        self.serve()

    def come_back(self, job: JobModel) -> None:
        """The retry timer of a job fires."""
        if job.queued or (job.retry_s and self.paused.get(job.queue) in (b"in", b"all")):
            job.due_ms = self.now_ms + job.retry_s * 1000
        else:
            job.requeue(False, self.now_ms)

    @rule(by_s=steps_s)
    def set_clock(self, by_s: int) -> None:
        """The wall clock is set, which does not affect the running node."""
        self.steps += 1
        self.wall_us += by_s * 1_000_000 + self.steps * SLOT_US
        self.node.begin(self.now_ms, self.wall_us)

    @rule(down_ms=st.sampled_from([20, 4_000, 60_000]), by_s=st.just(0) | steps_s)
    def restart(self, down_ms: int, by_s: int) -> None:
        """The process is killed and restarted, perhaps with another wall clock time; only the log
        is left."""
        self.set_clock(by_s)
        self.now_ms += down_ms
        self.wall_us += down_ms * 1000
        self.waiting = []
        self.paused = {}
        self.ctime_ms = 0
        for job in self.jobs.values():
            job.restart(self.now_ms, self.wall_us // 1000)
        self.jobs = {i: job for i, job in self.jobs.items() if job.end_ms > self.now_ms}
        self.start()
        assert len(self.jobs) == len(self.node.jobs)
        self.turn(self.now_ms)

    # -- what must always hold ---------------------------------------------------------------

    @invariant()
    def queues_agree(self) -> None:
        """Every queue contains exactly the expected jobs, in order."""
        for name in QUEUES:
            expected = self.queue_of(name)
            assert self.do(b"QLEN", name) == len(expected)
            queue = self.node.queues.get(name)
            assert [job.id for job in (queue.jobs if queue else [])] == expected

    @invariant()
    def nothing_is_lost(self) -> None:
        """The node and its log hold all jobs that have not ended."""
        assert sorted(self.jobs) == sorted(job.id for job in self.node.jobs.table.values())
        assert set(self.jobs) <= set(self.log.records)

    @invariant()
    def counters_agree(self) -> None:
        """Nacks and additional deliveries match what happened since the record was written."""
        for job_id, model in self.jobs.items():
            job = self.node.jobs.get(job_id)
            assert job is not None
            assert (model.nacks, model.deliveries) == (job.nacks, job.deliveries), job_id

    @invariant()
    def totals_agree(self) -> None:
        """What INFO counts as queued and delivered matches the model."""
        totals = self.node.totals
        assert totals.queued == sum(queue.jobs.size for queue in self.node.queues.table.values())
        assert totals.in_flight == sum(job.in_flight for job in self.node.jobs.table.values())

    @invariant()
    def blocked_clients_agree(self) -> None:
        """Exactly the clients that wait are registered as blocked."""
        assert len(self.waiting) == self.node.blocked_clients
        for client, _, _ in self.waiting:
            assert client.blocked != NOT_BLOCKED

    def teardown(self) -> None:
        """At the end nothing is left: no memory, no timer, no record."""
        for client, _, _ in self.waiting:
            self.node.client_gone(client)
        self.waiting = []
        if self.jobs:
            assert self.do(b"ACKJOB", *self.jobs) == len(self.jobs)
        self.jobs.clear()
        for name in QUEUES:
            self.do(b"PAUSE", name, b"none")
        self.node.begin(self.now_ms + 10**9, self.wall_us + 10**12)
        self.node.run_due()
        self.node.queues.sweep(self.node.now_ms, 1000)
        assert self.node.used_memory() == 0
        assert len(self.node.queues) == 0
        assert self.log.records == {}
        assert self.node.next_due_ms() == -1


class NodeTests(SynchronousTestCase):
    """The state machine."""

    def test_node_like_the_model(self) -> None:
        """No job is lost, early, late, out of order, or delivered twice when it must not be."""
        count = 4 * settings().max_examples
        try:
            run_state_machine_as_test(
                NodeMachine, settings=settings(max_examples=count, stateful_step_count=40)
            )
        except AssertionError as error:
            # The steps are in its notes, which trial does not print.
            steps = "\n".join(getattr(error, "__notes__", []))
            raise AssertionError(f"{error}\n{steps}") from None
