"""How often jobs came back, in the log of a node."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.job import Job
from disque_tx.services.machine.memoryfiles import MemoryFiles
from tests.engine.aof.bench import PATH, Bench, loaded, settings


class CountersTests(SynchronousTestCase):
    """A job that came back is known to have done so after a restart."""

    def setUp(self) -> None:
        self.files = MemoryFiles()
        self.bench = Bench(self.files, settings())
        self.bench.start()
        self.set_policy(b"max-deliveries", b"9")
        self.bench.turn(self.bench.add)

    def set_policy(self, name: bytes, value: bytes) -> None:
        """All queues have this setting."""
        node = self.bench.node
        table = node.policy_table
        table.apply(table.plan_set(b"*", [(name, value)], node.id), 1)

    def come_back(self) -> None:
        """The job is delivered and returned, and delivered again after its RETRY."""
        self.bench.turn(self.bench.get)
        (job_id,) = self.bench.ids()
        self.bench.turn(lambda: self.bench.node.enqueue([job_id], True))
        self.bench.turn(self.bench.get)
        self.bench.now_ms += 61_000
        self.bench.turn(self.bench.node.run_due)

    def content(self) -> bytes:
        """The log."""
        return self.files.content(PATH)

    def counted(self, content: bytes) -> tuple[int, int]:
        """The counters of the one job in a log."""
        (job,) = loaded(content).node.jobs.table.values()
        assert isinstance(job, Job)
        return int(job.nacks), int(job.deliveries)

    def test_kept(self) -> None:
        """Both counters are in the log a second later, also under ``always``."""
        self.come_back()
        self.bench.pass_ms(1_200)
        self.assertEqual((1, 1), self.counted(self.content()))

    def test_without_policies(self) -> None:
        """Where no policy counts, the log of jobs that came back stays one that originals load."""
        table = self.bench.node.policy_table
        table.apply(table.plan_del(b"*", [], self.bench.node.id, 2), 2)
        self.come_back()
        self.bench.pass_ms(1_200)
        self.bench.aof.flush_and_sync()
        self.assertNotIn(b"COUNTJOB", self.content())

    def test_not_by_itself(self) -> None:
        """A NACK by itself costs no write and no sync; what is recorded next takes it along."""
        before, syncs = self.content(), self.files.syncs
        self.come_back()
        self.assertEqual((before, syncs), (self.content(), self.files.syncs))
        (job_id,) = self.bench.ids()
        self.bench.turn(self.bench.add)
        again = loaded(self.content()).node.jobs.get(job_id)
        assert again is not None
        self.assertEqual((1, 1, syncs + 1), (again.nacks, again.deliveries, self.files.syncs))

    def test_clean_stop(self) -> None:
        """A clean stop writes what is not written yet."""
        self.come_back()
        self.bench.aof.flush_and_sync()
        self.assertEqual((1, 1), self.counted(self.content()))

    def test_rewritten(self) -> None:
        """A rewrite keeps the counters, and needs no records for them: originals can load it."""
        self.come_back()
        self.bench.pass_ms(1_200)
        self.assertIn(b"COUNTJOB", self.content())
        self.bench.aof.rewrite_now()
        self.assertNotIn(b"COUNTJOB", self.content())
        self.assertEqual((1, 1), self.counted(self.content()))

    def test_gone(self) -> None:
        """Nothing is written about a job that is done."""
        self.come_back()
        self.bench.remove(self.bench.ids())
        self.bench.pass_ms(1_200)
        self.assertNotIn(b"COUNTJOB", self.content())
