"""What consumers report of the jobs that they work on."""

from __future__ import annotations

from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.progress import NOTE_BYTES_MAX, REPORTS_MAX
from tests.core.bench import NodeCase

_ENTRY_BYTES = 300


class ProgressTests(NodeCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.reports = self.node.state.progress

    def fetched(self, queue: bytes = b"q", retry_s: int = 60) -> Job:
        """A job that a client works on."""
        job = self.job(self.add(queue, b"body", retry_s=retry_s))
        self.get(queue)
        return job

    def told(self, job: Job) -> tuple[int, bytes] | None:
        """What is told of a job."""
        found = self.reports.of(job)
        return None if found is None else (int(found.milli), found.note)

    def test_last(self) -> None:
        """The last report counts, and its age is known."""
        job = self.fetched()
        self.assertIsNone(self.told(job))
        self.reports.put(job, 100, b"first")
        self.begin(self.now_ms + 70, self.wall_us)
        self.reports.put(job, 900, b"second")
        self.assertEqual((900, b"second"), self.told(job))
        self.begin(self.now_ms + 30, self.wall_us)
        found = self.reports.of(job)
        assert found is not None
        self.assertEqual(30, self.reports.age_ms(found))
        self.assertIsNone(self.told(self.fetched(b"r")))

    def test_late(self) -> None:
        """A consumer that reports nothing for longer than RETRY may be gone; without RETRY it is
        believed."""
        job, once = self.fetched(retry_s=60), self.fetched(b"r", retry_s=0)
        for one in (job, once):
            self.reports.put(one, 1, b"")
        self.begin(self.now_ms + 60_000, self.wall_us)
        self.assertEqual(((1, b""), (1, b"")), (self.told(job), self.told(once)))
        self.begin(self.now_ms + 1, self.wall_us)
        self.assertEqual((None, (1, b"")), (self.told(job), self.told(once)))
        self.assertEqual([once.id], list(self.reports.newest()))

    def test_delivery(self) -> None:
        """A report ends with the delivery that it belongs to, and a job that nobody can work on has
        none."""
        job = self.fetched()
        self.reports.put(job, 1, b"")
        self.begin(self.now_ms + 10, self.wall_us + 10_000)
        self.node.enqueue([job.id], False)
        self.assertIsNone(self.told(job))
        self.reports.put(job, 2, b"")
        self.assertIsNone(self.told(job))
        self.begin(self.now_ms + 10, self.wall_us + 10_000)
        self.get(b"q")
        self.assertIsNone(self.told(job))
        self.reports.put(job, 3, b"")
        self.assertEqual((3, b""), self.told(job))
        delayed = self.job(self.add(b"d", b"body", delay_s=9))
        self.reports.put(delayed, 1, b"")
        self.assertIsNone(self.told(delayed))

    def test_ends(self) -> None:
        """With the end of a job its report ends, whichever end that is, and its memory is free."""
        for end in (self.node.acknowledge, self.node.delete):
            job = self.fetched()
            used = int(self.node.memory.used)
            self.reports.put(job, 1, b"note")
            self.assertEqual(_ENTRY_BYTES + 4, self.node.memory.used - used)
            self.reports.put(job, 1, b"n")
            self.assertEqual(_ENTRY_BYTES + 1, self.reports.used)
            end([job.id])
            self.assertEqual((0, []), (self.reports.used, list(self.reports.newest())))

    def test_forgotten(self) -> None:
        """When all jobs are forgotten, so is what was reported of them, and its memory is free."""
        self.reports.put(self.fetched(), 1, b"note")
        self.node.flush_all()
        self.assertEqual((0, []), (self.reports.used, list(self.reports.newest())))
        self.assertEqual(0, self.node.memory.used)

    def test_bounded(self) -> None:
        """Ten thousand reports are kept; for one more, that of the job which reported longest ago
        is forgotten."""
        self.assertEqual((10_000, 256), (REPORTS_MAX, NOTE_BYTES_MAX))
        self.reports.limit = 2
        jobs = [self.fetched(b"%d" % number) for number in range(3)]
        for job in (jobs[0], jobs[1], jobs[0], jobs[2]):
            self.reports.put(job, 1, b"")
        self.assertEqual([jobs[2].id, jobs[0].id], list(self.reports.newest()))
        self.assertEqual(2 * _ENTRY_BYTES, self.reports.used)
