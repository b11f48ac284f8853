"""What checkers report and what they excuse is tested on histories written by hand."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.campaign import checked_run
from disque_tx.sim.stage.checker import Checker
from disque_tx.sim.stage.history import JobRequest, RecordedDelivery

#: Microseconds in a second.
S = 1_000_000
HERE, THERE = b"10.0.0.1", b"10.0.0.2"


class CheckerCase(SynchronousTestCase):
    """A simulation without a run, and the history that a run could have had."""

    def setUp(self) -> None:
        self.run_ = checked_run(2)
        self.assertGreater(len(self.run_.machines), 1)
        self.history = self.run_.history
        for machine in self.run_.machines:
            machine.started_us = 0
            machine._since_us = 0

    def deliver(
        self, at_s: float, node: bytes = HERE, job: bytes = b"D", nacks: int = 0, answer: int = 0
    ) -> None:
        """A delivery is received, a millisecond after the node sent it."""
        us = int(at_s * S)
        self.history.delivered.append(
            RecordedDelivery(job, job, b"q", node, us, us + 1_000, nacks, 0, answer)
        )

    def deliver_again(self, at_s: float, deliveries: int) -> None:
        """The same, of a job that was counted as delivered so many times besides."""
        self.deliver(at_s)
        delivered = self.history.delivered
        delivered[-1] = attrs.evolve(delivered[-1], deliveries=deliveries)

    def request(self, word: bytes, at_s: float, node: bytes = HERE, reply: int = 1) -> None:
        """A request about the job, whose reply comes a millisecond later."""
        us = int(at_s * S)
        self.history.job_requests.append(JobRequest(word, b"D", node, us, us + 1_000, reply))

    def fault(self, name: str) -> None:
        """A fault occurs."""
        self.run_.plan.history.append((0, name, ""))

    def found(self, checker: Checker) -> int:
        """The number of violations."""
        return len(checker.judge(self.run_))
