"""Jobs that come back: NACK with DELAY and REASON, and the backoff of a policy."""

from __future__ import annotations

from disque_tx.core.delivery.backoff import wait_ms
from disque_tx.core.policies.settings import QueuePolicy
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.core.recovery import load
from tests.core.bench import MemoryLog, NodeCase, copied
from tests.core.recordedevents import RecordedEvents


class WaitTests(NodeCase):
    """How long a backoff is."""

    def policy(self) -> QueuePolicy:
        policy = QueuePolicy(b"q")
        policy.retry_delay_ms, policy.retry_delay_max_ms = 1_000, 60_000
        return policy

    def test_grows_to_a_limit(self) -> None:
        """Each retry waits longer, so that what is broken gets time, but never forever."""
        waits = [wait_ms(self.policy(), n, 0.0) for n in (1, 2, 3, 6, 7, 8, 131_070)]
        self.assertEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000, 60_000], waits)

    def test_jitter(self) -> None:
        """Jobs that failed together do not come back together."""
        self.assertEqual(1_800, wait_ms(self.policy(), 2, 0.5))

    def test_constant(self) -> None:
        """With factor 1 every wait is the same."""
        policy = self.policy()
        policy.retry_factor_milli = 1_000
        self.assertEqual(1_000, wait_ms(policy, 60_000, 0.0))

    def test_largest_values(self) -> None:
        """The largest settings that are allowed do not overflow."""
        policy = self.policy()
        policy.retry_delay_ms = policy.retry_delay_max_ms = 4_294_967_295_000
        policy.retry_factor_milli = 1_000_000
        self.assertEqual(4_294_967_295_000, wait_ms(policy, 131_070, 0.0))


class NackTests(NodeCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.events = RecordedEvents()
        self.node.outbox.events = self.events

    def set_policy(self, **values: str) -> None:
        """Settings for the queue of the tests."""
        for name, value in values.items():
            self.node.policies.set(b"q", name.replace("_", "-").encode(), value.encode())

    def taken(self, **options: int) -> bytes:
        """A job in the hands of a consumer."""
        job_id = self.add(**{"retry_s": 60, **options})  # type: ignore[arg-type]
        self.assertEqual([job_id], self.get(b"q"))
        self.events.take()
        return job_id

    def nack(self, job_id: bytes, delay_ms: int = -1, reason: bytes = b"") -> int:
        return self.node.enqueue([job_id], True, delay_ms, reason)

    def test_delay(self) -> None:
        """A job is delivered when the delay of its NACK is over, and not earlier."""
        job_id = self.taken()
        self.assertEqual(1, self.nack(job_id, 1_500))
        self.assertEqual((0, 1), (self.node.totals.in_flight, self.node.totals.in_backoff))
        self.pass_ms(1_480)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual((1, 0), (self.job(job_id).nacks, self.job(job_id).deliveries))
        self.assertEqual((1, 0), (self.node.totals.nacked, self.node.totals.in_backoff))

    def test_longer_than_retry(self) -> None:
        """The delay holds even if RETRY is shorter."""
        job_id = self.taken(retry_s=1)
        self.nack(job_id, 60_000)
        for _ in range(59):
            self.pass_ms(1_000)
        self.assertEqual(0, self.length())
        self.pass_ms(1_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_policy(self) -> None:
        """Each failure of a job waits longer than the one before."""
        self.set_policy(retry_delay="2", retry_jitter="0")
        job_id = self.taken()
        for wait in (2_000, 4_000, 8_000):
            self.assertEqual(1, self.nack(job_id))
            self.pass_ms(wait - 20)
            self.assertEqual([], self.get(b"q"))
            self.pass_ms(20)
            self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual((3, 0), (self.job(job_id).nacks, self.job(job_id).deliveries))
        self.assertEqual(3, self.node.totals.backoffs)

    def test_at_once(self) -> None:
        """DELAY 0 overrules the policy, as a consumer that just stops wants it."""
        self.set_policy(retry_delay="60")
        job_id = self.taken()
        self.assertEqual(1, self.nack(job_id, 0))
        self.assertEqual([job_id], self.get(b"q"))

    def test_no_policy(self) -> None:
        """Without policy and delay a NACK is what it always was."""
        job_id = self.taken()
        self.assertEqual(1, self.nack(job_id))
        self.assertEqual([("nacked", "", 0, 0), ("requeued", "nack", 0, -1)], self.events.take())
        self.assertEqual([job_id], self.get(b"q"))

    def test_at_most_once(self) -> None:
        """RETRY 0 is never delivered twice, whatever a NACK asks for."""
        self.set_policy(retry_delay="1", max_deliveries="1")
        job_id = self.taken(retry_s=0, replicate=1)
        self.assertEqual((0, 0), (self.nack(job_id, 500, b"x"), self.nack(job_id)))
        self.pass_ms(3_600_000)
        self.assertEqual([], self.get(b"q"))

    def test_twice(self) -> None:
        """A repeated NACK, of a client that missed the first reply, changes and counts nothing."""
        job_id = self.taken()
        self.nack(job_id, 5_000)
        self.assertEqual((0, 0), (self.nack(job_id), self.nack(job_id, 0)))
        self.assertEqual((1, 0), (self.job(job_id).nacks, self.length()))

    def test_retry_on_timeout(self) -> None:
        """If the operator wants it, a job whose consumer was silent waits, too."""
        self.set_policy(retry_delay="20", retry_jitter="0", retry_on_timeout="yes")
        job_id = self.taken(retry_s=10)
        self.pass_ms(10_000)
        self.assertEqual(("delayed", "retry", 20_000, -1), self.events.take()[-1])
        self.pass_ms(19_980)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual((0, 1), (self.job(job_id).nacks, self.job(job_id).deliveries))

    def test_timeout_by_default(self) -> None:
        """A consumer that died gives its job to the next one at once."""
        self.set_policy(retry_delay="20")
        job_id = self.taken(retry_s=10)
        self.pass_ms(10_000)
        self.assertEqual([("requeued", "retry", 0, -1)], self.events.take())
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual(1, self.node.totals.requeued)

    def test_events(self) -> None:
        """The event log has how long a job waits, and why."""
        job_id = self.taken()
        self.nack(job_id, 1_000, b"no\nroute")
        self.pass_ms(1_000)
        expected = [
            ("nacked", "", 0, 0, b"no route"),
            ("delayed", "nack", 1_000, -1, b"no route"),
            ("requeued", "backoff", 0, -1),
        ]
        self.assertEqual(expected, self.events.take())

    def test_enqueue_ends_it(self) -> None:
        """An operator can end a backoff; that is no delivery more than there was."""
        job_id = self.taken()
        self.nack(job_id, 60_000)
        self.assertEqual((0, 1), (self.node.dequeue([job_id]), self.node.enqueue([job_id], False)))
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual((1, 0), (self.job(job_id).nacks, self.job(job_id).deliveries))
        self.assertEqual(0, self.node.totals.in_backoff)

    def test_ends(self) -> None:
        """A job that is done, deleted or too old does not come back after its backoff."""
        ends = (self.node.acknowledge, self.node.fast_acknowledge, self.node.delete)
        for end in ends:
            job_id = self.taken()
            self.nack(job_id, 5_000, b"text")
            self.assertEqual(1, end([job_id]))
        job_id = self.taken(ttl_s=3)
        self.nack(job_id, 5_000, b"text")
        self.pass_ms(10_000)
        self.assertEqual([], self.get(b"q"))
        self.assertEqual((0, 0, False), self.left())

    def left(self) -> tuple[int, int, bool]:
        """What is left of jobs that were held back."""
        node = self.node
        return len(node.jobs), node.totals.in_backoff, node.state.reasons.kept

    def test_flush(self) -> None:
        """After FLUSHALL nothing is counted any more."""
        self.nack(self.taken(), 5_000, b"text")
        self.node.flush_all()
        self.assertEqual((0, 0, False), self.left())

    def test_paused(self) -> None:
        """Nothing enters a queue that is paused for input, not even at the end of a backoff."""
        job_id = self.taken(retry_s=10)
        self.nack(job_id, 1_000)
        self.node.pause(b"q", PAUSE_IN)
        self.pass_ms(1_000)
        self.assertEqual(0, self.length())
        self.node.pause(b"q", 0)
        self.pass_ms(10_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_working(self) -> None:
        """A late heartbeat postpones the end of a backoff, and never brings it forward."""
        job_id = self.taken(retry_s=10)
        self.nack(job_id, 60_000)
        self.assertEqual(10, self.node.working(job_id))
        self.assertEqual(self.now_ms + 60_000, self.job(job_id).qtime_ms)
        self.pass_ms(55_000)
        self.node.working(job_id)
        self.pass_ms(5_000)
        self.assertEqual(0, self.length())
        self.pass_ms(5_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_delayed_job(self) -> None:
        """A job that is still delayed can be given back, too, and a restart knows of it."""
        job_id = self.add(delay_s=100, retry_s=10)
        self.nack(job_id, 2_000)
        self.pass_ms(2_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_restart(self) -> None:
        """The log knows of no backoff: after a restart the job comes back when RETRY is over."""
        job_id = self.taken(retry_s=10)
        self.nack(job_id, 3_600_000)
        records = list(self.log.records.values())
        records.append(copied(self.job(job_id)))  # as a rewrite of the log writes it
        for record in records:
            self.node = self.new_node()
            self.begin(self.now_ms, self.wall_us)
            load(self.node, record, False)
            self.node.outbox.log = MemoryLog()
            self.pass_ms(9_980)
            self.assertEqual(0, self.length())
            self.pass_ms(20)
            self.assertEqual([job_id], self.get(b"q"))

    def test_memory(self) -> None:
        """A job that waits counts like a delayed one."""
        job_id = self.taken()
        before = self.node.used_memory()
        self.nack(job_id, 60_000)
        self.assertEqual(before, self.node.used_memory())
