"""The result of an audit."""

from __future__ import annotations

from typing import Final

import attrs

VIOLATED: Final = "violated"
UNKNOWN: Final = "unknown"


@attrs.frozen
class Suspect:
    """A job for which a guarantee was violated, or may have been."""

    check: str
    verdict: str
    job_id: str
    queue: str | None


@attrs.frozen
class Audit:
    """``counts``: check and verdict → jobs. ``suspects``: of each as many as were asked for."""

    jobs: int
    counts: dict[tuple[str, str], int]
    suspects: list[Suspect]

    @property
    def violated(self) -> bool:
        """Whether any guarantee was violated."""
        return any(count for (_, verdict), count in self.counts.items() if verdict == VIOLATED)
