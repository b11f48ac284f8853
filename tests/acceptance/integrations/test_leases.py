"""Leases that a process keeps for a framework, with a real daemon."""

from __future__ import annotations

import os
import signal
import threading

from disque_tx.client.blocking import Disque
from disque_tx.integrations.leases import Leases
from tests.acceptance.daemon import DaemonTestCase, wait_for


class LeaseTests(DaemonTestCase):
    """Jobs with a RETRY of one second, or of some more where none may be late."""

    def setUp(self) -> None:
        self.node = self.running()
        self.client = Disque(f"127.0.0.1:{self.node.port}")
        self.addCleanup(self.client.close)
        self.leases = Leases(self.client.servers)
        self.addCleanup(self.leases.stop)

    def take(self, timeout_s: float = 0) -> list[str]:
        """The IDs of jobs that are delivered now."""
        return [job.id for job in self.client.take("q", count=100, timeout_s=timeout_s)]

    def hold(self, count: int, retry_s: int = 1) -> list[str]:
        """Jobs that were delivered here, and for which heartbeats are sent."""
        for _ in range(count):
            self.client.add_job("q", "b", retry_s=retry_s, ttl_s=600)
        jobs = self.client.take("q", count=count, timeout_s=10)
        self.leases.keep([(job.id, job.address) for job in jobs])
        return [job.id for job in jobs]

    def test_kept(self) -> None:
        """A job that is held for several times its RETRY is not delivered to others."""
        held = self.hold(20, retry_s=4)
        self.assertEqual([], self.take(10))
        self.assertTrue(all(self.leases.holds(job_id) for job_id in held))

    def test_released(self) -> None:
        """A job that is released is delivered again after its RETRY."""
        (held,) = self.hold(1)
        self.leases.release(held)
        self.assertEqual([held], self.take(30))

    def test_given_back(self) -> None:
        """A job is given back only when no heartbeat for it is under way: one that arrived later
        would take the job out of its queue again, until its RETRY is over."""
        self.client.add_job("q", "b", retry_s=600, ttl_s=6000)
        (job,) = self.client.take("q", timeout_s=30)
        os.kill(self.node.pid, signal.SIGSTOP)
        self.leases.keep([(job.id, job.address)])
        wait_for(lambda: job.id in self.leases._sending, "a heartbeat is under way")
        under_way: list[bool] = []

        def give_back() -> None:
            self.leases.withdraw(job.id)
            under_way.append(job.id in self.leases._sending)
            job.nack()

        giving_back = threading.Thread(target=give_back)
        giving_back.start()
        wait_for(lambda: not self.leases.holds(job.id), "the job is being given back")
        self.assertEqual([], under_way)
        os.kill(self.node.pid, signal.SIGCONT)
        giving_back.join()
        self.assertEqual([False], under_way)
        self.assertEqual([job.id], self.take(30))

    def test_stopped(self) -> None:
        """After the end of the leases, jobs come back; the leases can be used again."""
        (held,) = self.hold(1)
        self.leases.stop()
        self.assertEqual([held], self.take(30))
        self.client.ack_jobs(held)
        self.hold(1, retry_s=4)
        self.assertEqual([], self.take(6))

    def test_stopped_meanwhile(self) -> None:
        """A heartbeat that is under way at the end of the leases is not repeated when they are used
        again, and holds up none of the others."""
        (held,) = self.hold(1)
        wait_for(lambda: not self.leases._sending, "the first heartbeat is answered")
        os.kill(self.node.pid, signal.SIGSTOP)
        wait_for(lambda: held in self.leases._sending, "a heartbeat is under way")
        stopping = threading.Thread(target=self.leases.stop)
        stopping.start()
        wait_for(lambda: self.leases._stopping, "the leases end")
        os.kill(self.node.pid, signal.SIGCONT)
        stopping.join()
        self.assertEqual([held], self.take(30))
        self.client.ack_jobs(held)
        self.hold(1, retry_s=4)
        self.assertEqual([], self.take(6))

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
