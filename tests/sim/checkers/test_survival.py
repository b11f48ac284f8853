"""Counters that survive a restart."""

from __future__ import annotations

import attrs

from disque_tx.sim.campaign import checked_run
from disque_tx.sim.checkers.survival import CountersSurvive, LimitKept
from tests.sim.checkers.bench import HERE, THERE, CheckerCase, S


class SurvivalTests(CheckerCase):
    """Jobs of queues with ``max-deliveries``."""

    def setUp(self) -> None:
        super().setUp()
        shape = attrs.evolve(checked_run(2).shape, workload="letters-logged", nodes=3)
        self.run_ = checked_run(2, shape)
        self.history = self.run_.history
        for machine in self.run_.machines:
            machine._since_us = 0

    def test_less(self) -> None:
        """A node that reports less than before breaks the promise; another one may know less."""
        self.deliver(1, nacks=2)
        self.deliver(4, THERE, nacks=1)
        self.assertEqual(0, self.found(CountersSurvive()))
        self.fault("kill")
        self.deliver(5, nacks=1)
        self.assertEqual(1, self.found(CountersSurvive()))

    def test_crash(self) -> None:
        """What was not a second old when the process ended may be lost, and is known afterwards
        again; what is older may not."""
        crashes_us = self.run_.machines[0].crashes_us
        self.deliver(1, nacks=2)
        self.deliver(5, nacks=1)
        crashes_us.append(int(1.5 * S))
        self.assertEqual(0, self.found(CountersSurvive()))
        crashes_us[0] = 3 * S
        self.assertEqual(1, self.found(CountersSurvive()))

    def test_broken_memory(self) -> None:
        """A node that lost its log, or was told to forget the job, is excused; so is a run in which
        old jobs come back."""
        self.deliver(1, nacks=2)
        self.deliver(5, nacks=1)
        self.run_.machines[0]._since_us = 2 * S
        self.assertEqual(0, self.found(CountersSurvive()))
        self.run_.machines[0]._since_us = 0
        self.assertEqual(1, self.found(CountersSurvive()))
        self.request(b"DELJOB", 2, HERE)
        self.assertEqual(0, self.found(CountersSurvive()))
        self.history.job_requests.clear()
        self.fault("stale_disk")
        self.assertEqual(0, self.found(CountersSurvive()))

    def test_acknowledged(self) -> None:
        """A job that was acknowledged and comes back has the counters that its holder knew."""
        self.deliver(1, nacks=2)
        self.request(b"ACKJOB", 6)
        self.deliver(5, nacks=1)
        self.assertEqual(1, self.found(CountersSurvive()))
        self.history.job_requests[0].asked_us = 4 * S
        self.assertEqual(0, self.found(CountersSurvive()))

    def test_limit(self) -> None:
        """A job that came back more often than the limit of five allows is not delivered again; two
        other holders may each allow one more."""
        self.deliver(1, nacks=6)
        self.assertEqual(0, self.found(LimitKept()))
        self.deliver(2, nacks=7)
        self.assertEqual(1, self.found(LimitKept()))

    def test_by_hand(self) -> None:
        """ENQUEUE by a person delivers a job once more, whatever the limit; it allows one delivery
        after it, none before it, and none where the node answered that nothing was queued."""
        self.request(b"ENQUEUE", 2, HERE)
        self.deliver(1, nacks=7)
        self.assertEqual(1, self.found(LimitKept()))
        self.deliver(3, nacks=7)
        self.assertEqual(1, self.found(LimitKept()))
        self.deliver(4, nacks=8)
        self.assertEqual(2, self.found(LimitKept()))
        self.history.job_requests[0].reply = 0
        self.assertEqual(3, self.found(LimitKept()))
