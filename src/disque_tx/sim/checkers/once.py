"""A job with RETRY 0 is never delivered twice: under no fault whatsoever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run


class AtMostOnce(Checker):
    """No body of a RETRY 0 job arrives a second time."""

    def judge(self, run: Run) -> list[str]:
        """Jobs that came twice."""
        return [
            f"{first.job_id.decode()}: RETRY 0, delivered {len(deliveries)} times, by"
            f" {' '.join(f'{d.node.decode()} at {d.at_us / 1e6:.3f} s' for d in deliveries)}"
            for body, deliveries in run.history.by_body().items()
            if len(deliveries) > 1
            and (added := run.history.added.get(body)) is not None
            and added.retry_s == 0
            for first in deliveries[:1]
        ]
