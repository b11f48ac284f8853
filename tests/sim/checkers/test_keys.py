"""Jobs that are added with keys."""

from __future__ import annotations

from disque_tx.sim.checkers.delivery import AtMostOnce
from disque_tx.sim.checkers.keys import AnsweredExist, OneJobPerKey
from disque_tx.sim.history import Added, Delivered
from disque_tx.sim.workloads import workload_called
from tests.sim.checkers.bench import HERE, CheckerCase, S

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
        self.history.delivered.append(Delivered(KEY, job_id, b"q", HERE, S, S, 0, 0))


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
        self.take(b"D-3")
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
