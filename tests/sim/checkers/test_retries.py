"""Dead letters."""

from __future__ import annotations

from disque_tx.sim.checkers.retries import OneLetter
from disque_tx.sim.stage.history import SeenLetter
from tests.sim.checkers.bench import CheckerCase


class LetterTests(CheckerCase):
    """Letters about one job."""

    def test_one(self) -> None:
        """Two letters about a job break the promise; one that a client returned, and which is
        delivered again, does not; nor do two after a fault."""
        for job_id, breaches in ((b"D-1", 0), (b"D-1", 0), (b"D-2", 1)):
            self.history.letters.append(SeenLetter(b"D", b"body", job_id))
            self.assertEqual(breaches, self.found(OneLetter()))
        self.fault("kill")
        self.assertEqual(0, self.found(OneLetter()))
