"""Jobs that are added with keys."""

from __future__ import annotations

from disque_tx.sim.checkers.delivery import AtMostOnce
from disque_tx.sim.checkers.jobs import NothingLost
from disque_tx.sim.checkers.tables.keys import (
    FREE_US,
    AnsweredExist,
    KeysFreed,
    OneJobPerKey,
    OneLivingJobPerKey,
)
from disque_tx.sim.stage.history import Added, JobRequest, NamedJob, RecordedDelivery, SeenLetter
from disque_tx.sim.stage.workloads import workload_called
from tests.sim.checkers.bench import HERE, THERE, CheckerCase, S

KEY = b"key"


class KeyCase(CheckerCase):
    """A producer adds jobs with one key, which is their body."""

    def setUp(self) -> None:
        super().setUp()
        self.run_.workload = workload_called("keys")

    def answer(self, *ids: bytes, replicate: int = 2, retry_s: int = 1) -> None:
        """ADDJOBs are answered with these IDs."""
        self.history.added[KEY] = Added(KEY, b"q", HERE, S, replicate, retry_s, 60, 0, False)
        self.history.keys[KEY] = set(ids)

    def take(self, job_id: bytes) -> None:
        """A client gets a job with the key."""
        self.history.delivered.append(RecordedDelivery(KEY, job_id, b"q", HERE, S, S, 0, 0))


class AtMostOnceTests(KeyCase):
    """Jobs with RETRY 0."""

    def test_twice(self) -> None:
        """Two jobs of one key are delivered once each; without keys, a body that comes twice is one
        job under two IDs."""
        self.answer(b"D-1", b"D-2", retry_s=0)
        self.take(b"D-1")
        self.take(b"D-2")
        self.assertEqual(0, self.found(AtMostOnce()))
        self.take(b"D-2")
        self.assertEqual(1, self.found(AtMostOnce()))
        self.history.delivered.pop()
        self.run_.workload = workload_called("ttl-and-delay")
        self.assertEqual(1, self.found(AtMostOnce()))


class OneJobTests(KeyCase):
    """No key has two jobs."""

    def test_answered(self) -> None:
        """Two IDs for one key break the promise, even if one node was down."""
        self.answer(b"D-1")
        self.assertEqual(0, self.found(OneJobPerKey()))
        self.answer(b"D-1", b"D-2")
        self.assertEqual(1, self.found(OneJobPerKey()))
        self.fault("one_down")
        self.assertEqual(1, self.found(OneJobPerKey()))

    def test_delivered(self) -> None:
        """So does a second job that no producer knows of; the same one again does not."""
        self.answer(b"D-1")
        self.take(b"D-1")
        self.take(b"D-1")
        self.assertEqual(0, self.found(OneJobPerKey()))
        self.take(b"D-2")
        self.assertEqual(1, self.found(OneJobPerKey()))

    def test_without_keys(self) -> None:
        """Where jobs have no keys, their bodies mean nothing."""
        self.run_.workload = workload_called("moves")
        self.take(b"D-1")
        self.take(b"D-2")
        self.assertEqual(0, self.found(OneJobPerKey()))

    def test_partition(self) -> None:
        """In a partition each side may have a job, if a node counts it afterwards."""
        self.answer(b"D-1", b"D-2")
        self.fault("partition")
        self.run_.machines[0].start()
        ((_, node),) = self.run_.nodes()
        self.assertEqual(1, self.found(OneJobPerKey()))
        node.totals.keys_dropped = 1
        self.assertEqual(0, self.found(OneJobPerKey()))
        self.take(b"D-3")  # it was withdrawn, and nobody has got its ID
        self.assertEqual(0, self.found(OneJobPerKey()))
        self.answer(b"D-1", b"D-2", b"D-3")
        self.assertEqual(1, self.found(OneJobPerKey()))
        node.totals.keys_doubled = 1
        self.assertEqual(0, self.found(OneJobPerKey()))

    def test_other_faults(self) -> None:
        """Lost messages can look like a partition, and a restart forgets the counters: nothing is
        checked then."""
        self.answer(b"D-1", b"D-2")
        self.fault("one_down")
        self.fault("message_loss")
        self.assertEqual(0, self.found(OneJobPerKey()))


class AnsweredTests(KeyCase):
    """What is answered exists."""

    def test_no_job(self) -> None:
        """An ID of which there is no job breaks the promise: the producer believes that all is
        well."""
        self.answer(b"D-1")
        self.fault("one_down")
        self.assertEqual(1, self.found(AnsweredExist()))
        self.take(b"D-2")
        self.assertEqual(1, self.found(AnsweredExist()))
        self.take(b"D-1")
        self.assertEqual(0, self.found(AnsweredExist()))

    def test_excuses(self) -> None:
        """A job may be lost with all its copies, if it may be delivered once at the most, and when
        memory was short; in a partition the later of two jobs ends."""
        self.answer(b"D-1")
        first, second = self.run_.machines[:2]
        first._since_us = 2 * S
        self.assertEqual(1, self.found(AnsweredExist()))
        second._since_us = 2 * S
        self.assertEqual(0, self.found(AnsweredExist()))
        second._since_us = 0
        self.answer(b"D-1", replicate=1, retry_s=0)
        self.assertEqual(0, self.found(AnsweredExist()))
        self.answer(b"D-1", replicate=2)
        for fault in ("partition", "memory_95"):
            self.run_.plan.history.clear()
            self.assertEqual(1, self.found(AnsweredExist()))
            self.fault(fault)
            self.assertEqual(0, self.found(AnsweredExist()), fault)


class ReusedKeyCase(CheckerCase):
    """Jobs are added with a key that was used before."""

    def setUp(self) -> None:
        super().setUp()
        self.run_.workload = workload_called("keys-reused")
        self.run_.world.now_us = 100 * S

    def add(self, body: bytes, at_s: int) -> None:
        """A job is accepted as new."""
        added = Added(body, b"q", HERE, at_s * S, 2, 1, 7_200, 0, False, key=KEY)
        added.answered_us = added.accepted_us = at_s * S + 1
        added.job_id = b"D-" + body
        added.holders = frozenset([HERE])
        self.history.added[body] = added

    def take(self, body: bytes, at_s: int = 1) -> None:
        """The job is delivered."""
        at_us = at_s * S
        delivery = RecordedDelivery(body, b"D-" + body, b"q", HERE, at_us, at_us, 0, 0)
        self.history.delivered.append(delivery)

    def acknowledge(self, body: bytes, at_s: int) -> None:
        """The job is acknowledged."""
        at_us = at_s * S
        request = JobRequest(b"ACKJOB", b"D-" + body, HERE, at_us, at_us + 1, 1)
        self.history.job_requests.append(request)


class EndedByKeyTests(ReusedKeyCase):
    """Jobs that were accepted and never delivered."""

    def test_after_the_end_of_the_first(self) -> None:
        """A job is lost if the earlier one with its key was acknowledged before it was added."""
        self.add(b"1", 10)
        self.take(b"1")
        self.acknowledge(b"1", 20)
        self.add(b"2", 30)
        self.assertEqual(1, self.found(NothingLost()))
        self.take(b"2")
        self.assertEqual(0, self.found(NothingLost()))

    def test_both_lived(self) -> None:
        """It may end if the earlier one lived then, or if who acknowledged it forgot that."""
        self.add(b"1", 10)
        self.take(b"1")
        self.add(b"2", 30)
        self.assertEqual(0, self.found(NothingLost()))
        self.acknowledge(b"1", 20)
        self.assertEqual(1, self.found(NothingLost()))
        self.history.job_requests[0].reply = 0
        self.assertEqual(0, self.found(NothingLost()))

    def test_delivered_again(self) -> None:
        """So it may if the earlier one came once more: no log holds acknowledgements."""
        self.add(b"1", 10)
        self.take(b"1")
        self.acknowledge(b"1", 20)
        self.add(b"2", 30)
        self.take(b"1", 40)
        self.assertEqual(0, self.found(NothingLost()))


class FreedTests(ReusedKeyCase):
    """Answers that name a job."""

    def test_long_done(self) -> None:
        """A job that was acknowledged long ago is not to be named any more."""
        self.add(b"1", 10)
        self.acknowledge(b"1", 20)
        late_us = 20 * S + FREE_US
        self.history.named.append(NamedJob(KEY, b"D-1", HERE, late_us))
        self.assertEqual(0, self.found(KeysFreed()))
        self.history.named.append(NamedJob(KEY, b"D-1", HERE, late_us + 10))
        self.assertEqual(1, self.found(KeysFreed()))

    def test_excuses(self) -> None:
        """A node that is cut off cannot know, nor can those in a partition."""
        self.add(b"1", 10)
        self.acknowledge(b"1", 20)
        self.history.named.append(NamedJob(KEY, b"D-1", HERE, 90 * S))
        for fault, excused in (("one_down", 1), ("one_cut", 0), ("partition", 0)):
            self.run_.plan.history.clear()
            self.run_.plan.history.append((S, fault, HERE.decode()))
            self.assertEqual(excused, self.found(KeysFreed()), fault)

    def test_acknowledged_there(self) -> None:
        """What a node does that is cut off, the others cannot know."""
        self.add(b"1", 10)
        self.acknowledge(b"1", 20)
        self.history.named.append(NamedJob(KEY, b"D-1", THERE, 90 * S))
        self.assertEqual(1, self.found(KeysFreed()))
        self.run_.plan.history.append((S, "one_cut", HERE.decode()))
        self.assertEqual(0, self.found(KeysFreed()))


class OneLivingTests(ReusedKeyCase):
    """A job is added while an earlier one with its key lives."""

    def test_found(self) -> None:
        """The second job must not be, unless somebody has asked to acknowledge the first."""
        self.add(b"1", 10)
        self.add(b"2", 30)
        self.assertEqual(1, self.found(OneLivingJobPerKey()))
        self.acknowledge(b"1", 20)
        self.assertEqual(0, self.found(OneLivingJobPerKey()))

    def test_two_leave(self) -> None:
        """While two nodes leave at once, keys may be passed on to nobody; at other times not."""
        self.add(b"1", 10)
        self.add(b"2", 30)
        checker = OneLivingJobPerKey()
        checker.two_away_us = [2 * S, 40 * S]
        self.assertEqual(1, self.found(checker))
        checker.two_away_us = [20 * S]
        self.assertEqual(0, self.found(checker))

    def test_one_leaves_and_one_is_down(self) -> None:
        """That is two at once, too."""
        checker = OneLivingJobPerKey()
        for machine in self.run_.machines:
            machine.start()
        nodes = [node for _, node in self.run_.nodes()]
        nodes[0].membership.set_leaving(True)
        checker.look(self.run_)
        self.assertEqual([], checker.two_away_us)
        self.run_.machines[1].kill()
        checker.look(self.run_)
        self.assertEqual([self.run_.world.now_us], checker.two_away_us)

    def test_ended(self) -> None:
        """A job whose life is over, that a client deleted, or of which there is a dead letter does
        not live."""
        self.add(b"1", 10)
        self.add(b"2", 30)
        first = self.history.added[b"1"]
        first.ttl_s, before = 5, first.ttl_s
        self.assertEqual(0, self.found(OneLivingJobPerKey()))
        first.ttl_s = before
        self.history.letters.append(SeenLetter(first.job_id, b"1", b"D-letter"))
        self.assertEqual(0, self.found(OneLivingJobPerKey()))
        self.history.letters.clear()
        self.history.job_requests.append(JobRequest(b"DELJOB", first.job_id, HERE, 20 * S))
        self.assertEqual(0, self.found(OneLivingJobPerKey()))
        self.history.job_requests.clear()
        self.assertEqual(1, self.found(OneLivingJobPerKey()))
