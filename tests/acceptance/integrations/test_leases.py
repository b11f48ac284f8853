"""Leases that a process keeps for a framework, with a real daemon."""

from __future__ import annotations

import os

from disque_tx.client.blocking import Disque
from disque_tx.integrations.leases import Leases
from tests.acceptance.daemon import DaemonTestCase, wait_for


class LeaseTests(DaemonTestCase):
    """Jobs with a RETRY of one second."""

    def setUp(self) -> None:
        self.client = Disque(f"127.0.0.1:{self.running().port}")
        self.addCleanup(self.client.close)
        self.leases = Leases(self.client.servers)
        self.addCleanup(self.leases.stop)

    def take(self, timeout_s: float = 0) -> list[str]:
        """The IDs of jobs that are delivered now."""
        return [job.id for job in self.client.take("q", count=100, timeout_s=timeout_s)]

    def hold(self, count: int) -> list[str]:
        """Jobs that were delivered here, and for which heartbeats are sent."""
        for _ in range(count):
            self.client.add_job("q", "b", retry_s=1, ttl_s=600)
        jobs = self.client.take("q", count=count, timeout_s=10)
        self.leases.keep([(job.id, job.address) for job in jobs])
        return [job.id for job in jobs]

    def test_kept(self) -> None:
        """A job that is held for several times its RETRY is not delivered to others."""
        held = self.hold(20)
        self.assertEqual([], self.take(4))
        self.assertTrue(all(self.leases.holds(job_id) for job_id in held))

    def test_released(self) -> None:
        """A job that is released is delivered again after its RETRY."""
        (held,) = self.hold(1)
        self.leases.release(held)
        self.assertEqual([held], self.take(30))

    def test_given_back(self) -> None:
        """A job that is given back while a heartbeat is sent for it can be fetched at once, and not
        only after its RETRY."""
        self.client.add_job("back", "b", retry_s=600, ttl_s=6000)
        for _ in range(100):
            (job,) = self.client.take("back", timeout_s=30)
            self.leases.keep([(job.id, job.address)])
            self.leases.withdraw(job.id)
            self.assertTrue(job.nack())
        self.assertEqual(1, len(self.client.take("back", timeout_s=30)))

    def test_stopped(self) -> None:
        """After the end of the leases, jobs come back; the leases can be used again."""
        (held,) = self.hold(1)
        self.leases.stop()
        self.assertEqual([held], self.take(30))
        self.client.ack_jobs(held)
        self.hold(1)
        self.assertEqual([], self.take(3))

    def test_acknowledged_elsewhere(self) -> None:
        """No heartbeats are sent for a job that somebody else has acknowledged."""
        (held,) = self.hold(1)
        self.client.ack_jobs(held)
        wait_for(lambda: not self.leases.holds(held), "the lease ends")

    def test_forked(self) -> None:
        """A child process does not hold the jobs of its parent, and both can go on."""
        (held,) = self.hold(1)
        child = os.fork()
        if child == 0:
            try:
                self.leases.release(held)
                self.leases.stop()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual([], self.take(3))
        self.assertTrue(self.leases.holds(held))
