"""Without the password nobody gets anything but errors, at any node and under any fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class Locked(Checker):
    """What a stranger was answered. Nothing is excused."""

    def judge(self, run: Run) -> list[str]:
        """Answers that were no errors."""
        return [f"answered without a password: {what}" for what in run.history.admitted]
