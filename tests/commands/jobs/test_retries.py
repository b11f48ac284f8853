"""NACK with its options, and QMOVE: what they take and refuse."""

from __future__ import annotations

from disque_tx.commands.jobs.retries import nack, qmove, retry_fields
from tests.commands.jobs.test_jobs import JobsCase

SYNTAX = b"ERR syntax error"
DELAY = b"ERR DELAY must be a number of seconds from 0 to 4294967295, with up to 3 decimals"
COUNT = b"ERR COUNT must be a number greater than zero"


class NackTests(JobsCase):
    """NACK [DELAY seconds] [REASON text] [id ...]"""

    def taken(self) -> bytes:
        """A job in the hands of a consumer."""
        job_id = self.add(b"q", b"body", b"0")
        self.node.get_jobs(self.connect(b"x:1"), [b"q"], 1, 0, True, False)
        return job_id

    def due_ms(self, job_id: bytes) -> int:
        """When the job comes back, in ms from now; -1 when it is queued."""
        job = self.node.jobs.get(job_id)
        assert job is not None
        return job.qtime_ms - self.node.now_ms if job.backoff else -1

    def test_delay(self) -> None:
        """Delays are seconds with up to three decimals, in any case of the word."""
        for word, ms in ((b"2", 2_000), (b"0.5", 500), (b"1.125", 1_125), (b"0", -1)):
            job_id = self.taken()
            self.assertEqual(1, self.call(nack, b"NACK", b"delay", word, job_id))
            self.assertEqual(ms, self.due_ms(job_id))

    def test_delay_refused(self) -> None:
        """A delay that means nothing leaves the job with its consumer."""
        job_id = self.taken()
        for word in (b"", b"-1", b"x", b"1.", b".5", b"1.0001", b"4294967296", b"1e3", b"9" * 50):
            self.assert_refused(DELAY, nack, b"NACK", b"DELAY", word, job_id)
        self.assertEqual(0, self.node.totals.nacked)

    def test_reason(self) -> None:
        """The reason is kept with the job, even if it looks like an option."""
        job_id = self.taken()
        self.assertEqual(1, self.call(nack, b"NACK", b"REASON", b"DELAY", job_id))
        self.assertEqual(b"DELAY", self.node.state.reasons.get(job_id))

    def test_who(self) -> None:
        """The trouble of a queue names the connection that gave a job back."""
        self.client.name = b"worker 7"
        self.assertEqual(1, self.call(nack, b"NACK", self.taken()))
        (trouble,) = self.node.state.troubles.recent(10)
        self.assertEqual(b"worker 7", trouble.client)

    def test_reason_too_long(self) -> None:
        """A text that is too long is refused, so that no client believes it was kept."""
        job_id = self.taken()
        line = b"ERR REASON is longer than 1024 bytes"
        self.assert_refused(line, nack, b"NACK", b"REASON", b"x" * 1_025, job_id)
        self.assertEqual(1, self.call(nack, b"NACK", b"REASON", b"x" * 1_024, job_id))

    def test_both(self) -> None:
        """Options stand before the IDs, in any order."""
        job_id = self.taken()
        words = [b"REASON", b"r", b"DELAY", b"3", job_id]
        self.assertEqual(1, self.call(nack, b"NACK", *words))
        self.assertEqual((3_000, b"r"), (self.due_ms(job_id), self.node.state.reasons.get(job_id)))

    def test_malformed(self) -> None:
        """Options without a value, and options behind an ID, are refused as a whole."""
        job_id = self.taken()
        self.assert_refused(SYNTAX, nack, b"NACK", b"DELAY")
        self.assert_refused(SYNTAX, nack, b"NACK", b"REASON")
        line = b"BADID Invalid Job ID format."
        self.assert_refused(line, nack, b"NACK", job_id, b"DELAY", b"1")
        self.assertEqual(0, self.call(nack, b"NACK", b"DELAY", b"1"))


class QmoveTests(JobsCase):
    """QMOVE from to [COUNT n] [ID id ...] [DEAD]"""

    def test_all(self) -> None:
        """Without options, all jobs of the queue are moved."""
        for _ in range(3):
            self.add(b"q", b"body", b"0")
        self.assertEqual(3, self.call(qmove, b"QMOVE", b"q", b"r"))
        self.assertEqual(0, self.call(qmove, b"QMOVE", b"q", b"r"))
        fields = dict(retry_fields(self.server))
        self.assertEqual("3", fields["total_jobs_moved"])

    def test_some(self) -> None:
        """COUNT and ID limit what is moved; unknown jobs count nothing."""
        first, _, third = (self.add(b"q", b"body", b"0") for _ in range(3))
        self.assertEqual(1, self.call(qmove, b"QMOVE", b"q", b"r", b"count", b"1"))
        words = [b"ID", first, third, b"COUNT", b"5"]
        self.assertEqual(1, self.call(qmove, b"QMOVE", b"q", b"r", *words))

    def test_refused(self) -> None:
        """Mistakes are named, and nothing is moved."""
        job_id = self.add(b"q", b"body", b"0")
        for words in ([b"COUNT"], [b"ID"], [b"x"], [b"ID", job_id, b"x"]):
            self.assert_refused(SYNTAX, qmove, b"QMOVE", b"q", b"r", *words)
        for word in (b"0", b"-1", b"x", b"9" * 30):
            self.assert_refused(COUNT, qmove, b"QMOVE", b"q", b"r", b"COUNT", word)
        line = b"BADID Invalid Job ID format."
        self.assert_refused(line, qmove, b"QMOVE", b"q", b"r", b"ID", b"x")
        line = b"ERR QMOVE needs two different queues"
        self.assert_refused(line, qmove, b"QMOVE", b"q", b"q")
        line = b"ERR QMOVE needs the name of a queue to move jobs to"
        self.assert_refused(line, qmove, b"QMOVE", b"q", b"")
