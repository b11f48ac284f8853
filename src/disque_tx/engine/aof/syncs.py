"""What is counted about the syncs of the log."""

from __future__ import annotations

import attrs


@attrs.define
class Syncs:
    """``count``: syncs that are done. ``seconds``: how long they took in all. ``delayed``: writes
    that did not wait for a slow one any longer."""

    count: int = 0
    seconds: float = 0.0
    delayed: int = 0

    def add(self, seconds: float) -> None:
        """Count one sync."""
        self.count += 1
        self.seconds += seconds

    def reset(self) -> None:
        """Begin to count anew."""
        self.count = self.delayed = 0
        self.seconds = 0.0
