"""What clients without a password get, and how much nodes send to each other."""

from __future__ import annotations

from disque_tx.sim.checkers.cluster import WAIT_BYTES, PasswordRequired, WithinBudget
from disque_tx.sim.stage.history import Added
from tests.sim.checkers.bench import HERE, CheckerCase, S


class StrangerTests(CheckerCase):
    """Unauthenticated clients."""

    def test_stranger(self) -> None:
        """An unauthenticated client must get nothing but errors."""
        self.assertEqual(0, self.found(PasswordRequired()))
        self.history.admitted.append("INFO: ...")
        self.assertEqual(1, self.found(PasswordRequired()))


class BudgetTests(CheckerCase):
    """What is sent on the bus."""

    def added(self, retry_s: int) -> None:
        """A job that was added in the first second."""
        added = Added(b"body", b"q", HERE, 0, 1, retry_s, 10_000, 0, False, S, S, b"D")
        self.history.added[b"body"] = added

    def test_long_wait(self) -> None:
        """Each RETRY of a job that waits costs a question and an answer: that is no storm, but more
        is, and jobs without RETRY ask for nothing."""
        self.added(retry_s=1)
        others = len(self.run_.machines) - 1
        self.run_.world.counters["bus.bytes"] = 1_000 * others * WAIT_BYTES
        self.assertEqual(1, self.found(WithinBudget()))
        self.deliver(1_001)
        self.assertEqual(0, self.found(WithinBudget()))
        self.run_.world.counters["bus.bytes"] *= 2
        self.assertEqual(1, self.found(WithinBudget()))
        self.run_.world.counters["bus.bytes"] //= 2
        self.added(retry_s=0)
        self.assertEqual(1, self.found(WithinBudget()))
