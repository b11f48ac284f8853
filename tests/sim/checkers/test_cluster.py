"""What clients without a password get."""

from __future__ import annotations

from disque_tx.sim.checkers.cluster import PasswordRequired
from tests.sim.checkers.bench import CheckerCase


class StrangerTests(CheckerCase):
    """Unauthenticated clients."""

    def test_stranger(self) -> None:
        """An unauthenticated client must get nothing but errors."""
        self.assertEqual(0, self.found(PasswordRequired()))
        self.history.admitted.append("INFO: ...")
        self.assertEqual(1, self.found(PasswordRequired()))
