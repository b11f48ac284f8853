"""Heartbeats that fail."""

from __future__ import annotations

from twisted.logger import LogEvent, LogLevel, formatEvent

from disque_tx.worker.settling import leases
from tests.logged import observe, warnings
from tests.worker.memory import HangingPool, WorkerTestCase, lost


class FailingTests(WorkerTestCase):
    """A node that does not answer WORKING for a while."""

    def setUp(self) -> None:
        super().setUp()
        self.details: list[str] = []
        observe(self, self.note_detail)
        self.warnings = warnings(self)

    def note_detail(self, event: LogEvent) -> None:
        """Record a line of the log that ``-v`` shows."""
        if event["log_level"] is LogLevel.debug and event["log_namespace"] == leases.__name__:
            self.details.append(formatEvent(event))

    def test_logged(self) -> None:
        """Each failure can be found in a detailed log, with the job and the error, before the lease
        is over; one that is made good for in time warns nobody."""
        errors: list[Exception] = [lost("WORKING")]
        self.client.broken = lambda name: errors.pop() if name == "WORKING" and errors else None
        job_id = self.client.put("a", retry_s=10)
        worker = self.worker({"a": self.note}, HangingPool)
        self.pass_s(9)
        (line,) = self.details
        self.assertTrue(line.startswith(f"WORKING for {job_id} failed: "), line)
        self.assertIn("cut at WORKING", line)
        self.assertEqual([], self.warnings)
        self.assertEqual(0, self.client.jobs[job_id].job.additional_deliveries)
        self.pools[0].release()
        self.stop(worker)
