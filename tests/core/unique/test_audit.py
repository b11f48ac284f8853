"""Keys whose end was missed, and keys of jobs that may never have been made."""

from __future__ import annotations

from disque_tx.core.keys.reservation import left
from disque_tx.core.unique.existence import ExistenceQuestion
from disque_tx.messages.bustypes import GOTJOB, KEY_ANSWER, KEY_COPY
from disque_tx.messages.keys import GRANTED, HELD, TAKEN
from disque_tx.messages.records import WAIT_REPL
from tests.core.unique.keybench import A, B, C, KeyCase


class AuditTests(KeyCase):
    """Three nodes, which ask each other whether jobs exist."""

    def test_twice_in_a_row(self) -> None:
        """A key is not freed because its job was not found twice in its life: in between it was
        found, or not all nodes could be asked."""
        first, _ = self.keepers()
        job_id, _ = self.add(first, replicate=2, retry_s=60)
        keys, now_ms = self.cluster.up[first].keys, self.cluster.now_ms
        entry = left(keys.reservations.by_key[b"k"], now_ms)
        missed, there, unknown = (
            ExistenceQuestion(keys._audit, number, [entry], complete)
            for number, complete in enumerate((True, True, False))
        )
        there.record(self.keepers()[1], job_id, HELD)
        for question in (missed, there, missed, unknown, missed):
            keys._audit.answered(question)
            self.assertIn(b"k", keys.reservations.by_key)
        keys._audit.answered(missed)
        self.assertNotIn(b"k", keys.reservations.by_key)

    def test_maker_alone(self) -> None:
        """The node that made a job adds no second one while the first lives, also when those that
        look after the key cannot be asked."""
        first, _ = self.keepers()
        job_id, _ = self.add(first, replicate=2, retry_s=60)
        node = self.cluster.up[first]
        self.assertEqual((TAKEN, job_id), node.keys._keeper.known_here(b"k", b"other"))
        node.delete([job_id])
        self.cluster.run(1_000)
        self.assertEqual((GRANTED, b"other"), node.keys._keeper.known_here(b"k", b"other"))

    def test_maker_forgot_the_job(self) -> None:
        """A node that made a job, and forgot it with a restart, does not free its key: others hold
        the job."""
        first, second = self.keepers()
        job_id, _ = self.add(first, replicate=2, retry_s=60)
        self.cluster.kill(first)
        self.cluster.run(100)
        self.cluster.start(first)
        self.cluster.run(10_000)
        for node_id in (second, first):
            self.assertEqual((job_id, 0), self.add(node_id, replicate=1))
        self.cluster.kill(second)
        self.cluster.run(100)
        self.assertEqual((job_id, 0), self.add(first, replicate=1))

    def test_maker_dies_before_the_job(self) -> None:
        """A key reserved by a node that died is not taken for a job that was never made, not even
        with FOR: the producer, which had no answer, gets its job from another node."""
        for key, for_s in ((b"k1", 0), (b"k2", 3_600)):
            first, second = self.keepers(key)
            asker = next(n for n in (A, B, C) if n not in (first, second))
            self.begin_add(asker, key, for_s)
            self.cluster.lost = {KEY_ANSWER}
            self.cluster.settle()
            self.cluster.lost = set()
            self.cluster.kill(asker)
            client = self.begin_add(second, key, for_s)
            self.cluster.run(5_000)
            self.assertEqual([], client.replies.values)  # type: ignore[attr-defined]
            self.cluster.start(asker)
            self.cluster.run(10_000)
            self.assertEqual(1, self.reply(client)[1], for_s)  # type: ignore

    def test_ended_before_the_keepers_knew(self) -> None:
        """With FOR a key is kept, too, if the keepers missed that its job was made and is done."""
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        self.cluster.lost = {KEY_COPY}
        job_id, _ = self.add(asker, for_s=3_600, replicate=1)
        self.cluster.up[asker].acknowledge([job_id])
        self.cluster.run(100)
        self.cluster.lost = set()
        self.cluster.run(10_000)
        for node_id in (A, B, C):
            self.assertEqual((job_id, 0), self.add(node_id))

    def test_lost_end(self) -> None:
        """A key whose end was missed is free after a while."""
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        job_id, _ = self.add(asker, replicate=1)
        self.cluster.lost = {KEY_COPY}
        self.cluster.up[asker].acknowledge([job_id])
        self.cluster.up[asker].serve()
        self.cluster.run(100)
        self.cluster.lost = set()
        self.cluster.run(40_000)
        self.assertEqual(1, self.add(asker)[1])

    def test_moved_job(self) -> None:
        """A job with RETRY 0 that moved to another node keeps its key until it is done there."""
        job_id, _ = self.add(A, replicate=1, retry_s=0)
        node = self.cluster.up[B]
        client = self.begin_get(B)
        self.cluster.run(1_000)
        self.assertNotEqual([], client.replies.values)  # type: ignore[attr-defined]
        self.assertIsNone(self.cluster.up[A].jobs.get(job_id))
        self.cluster.run(20_000)
        self.assertEqual((job_id, 0), self.add(C))
        node.acknowledge([job_id])
        self.cluster.run(700_000)
        self.assertEqual(1, self.add(C)[1])

    def test_withdrawn(self) -> None:
        """A producer does not get the ID of a job that others hold already, but whose maker, too
        busy to answer, may still give up and take back."""
        first, second = self.keepers()
        asker = next(n for n in (A, B, C) if n not in (first, second))
        self.cluster.lost = {GOTJOB}
        slow = self.begin_add(asker, replicate=3, retry_s=60, timeout_ms=3_000)
        self.cluster.settle()
        self.cluster.silent = {asker}
        other = self.begin_add(second, timeout_ms=20_000)
        self.cluster.run(2_500)
        self.assertEqual([], other.replies.values)  # type: ignore[attr-defined]
        self.cluster.silent = set()
        self.cluster.lost = set()
        self.cluster.up[asker].client_gone(slow)
        self.cluster.run(10_000)
        self.assertEqual(1, self.reply(other)[1])  # type: ignore

    def test_queued_before_it_had_its_copies(self) -> None:
        """A job that others have queued is not taken back when the time of its producer is over:
        somebody may have it by now, and who repeats the request must not make another one."""
        first, second = self.keepers()
        asker = next(n for n in (A, B, C) if n not in (first, second))
        self.cluster.lost = {GOTJOB}
        client = self.begin_add(asker, replicate=3, retry_s=1, timeout_ms=5_000)
        self.cluster.run(5_100)
        self.assertTrue(self.error(client).startswith(b"NOREPL Timeout"))
        holder = self.cluster.up[first]
        (job,) = holder.jobs.table.values()
        self.cluster.lost = set()
        for node_id in (A, B, C):
            self.assertEqual((job.id, 0), self.add(node_id, replicate=3, retry_s=1))
        self.cluster.run(5_000)
        kept = self.cluster.up[asker].jobs.get(job.id)
        assert kept is not None
        self.assertNotEqual(WAIT_REPL, kept.state)
        holder.acknowledge([job.id])
        self.cluster.run(1_000)
        self.assertEqual([0, 0, 0], [len(node.keys) for node in self.cluster.up.values()])
