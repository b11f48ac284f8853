"""Where jobs come from, so that a consumer can go there.

A job ID tells the node that made it. When most of the jobs of late were made by one other node, it
is cheaper to fetch them there than to have the nodes pass them on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from disque_tx.client.values import Job

#: So many jobs are looked at before a decision.
_WINDOW_JOBS: Final = 100
_PREFIX: Final = slice(2, 10)


class Origins:
    """Counts jobs by their makers."""

    def __init__(self) -> None:
        self._jobs: Counter[str] = Counter()
        self._total = 0

    def saw(self, jobs: Iterable[Job]) -> str | None:
        """Count delivered jobs. At the end of a window: the first 8 characters of the ID of the
        node that made more than half of them."""
        for job in jobs:
            self._jobs[job.id[_PREFIX]] += 1
            self._total += 1
        if self._total < _WINDOW_JOBS:
            return None
        maker, number = self._jobs.most_common(1)[0]
        decided = maker if number * 2 > self._total else None
        self._jobs.clear()
        self._total = 0
        return decided
