"""After an answered WORKING nobody gets the job before RETRY: the other holders heed it.

Judged where nothing keeps the holders from hearing it: no fault but those of clocks. A NACK or an
ENQUEUE, by another consumer that has the job too or by the operator, ends the wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.history import Deed, Delivered
    from disque_tx.sim.run import Run

_HARMLESS: Final = frozenset(("clock_step", "clock_drift"))
#: Half of the jitter, a step of the schedule, and what clocks drift meanwhile.
_EARLY_US: Final = 280_000


class Heeded(Checker):
    """Deliveries within RETRY of a WORKING."""

    def judge(self, run: Run) -> list[str]:
        """Jobs that came although somebody said that he works on them."""
        if any(name not in _HARMLESS for _, name, _ in run.plan.history):
            return []
        heard_us = run.world.longest_transit_us
        deliveries: dict[bytes, list[Delivered]] = {}
        for delivery in run.history.delivered:
            deliveries.setdefault(delivery.job_id, []).append(delivery)
        given_back = run.history.asked(b"NACK", b"ENQUEUE")
        return [
            f"{worked.job_id.decode('latin-1')}: WORKING at {worked.said_us / 1e6:.3f} s, RETRY"
            f" {worked.reply}, delivered by {delivery.node.decode()} at"
            f" {delivery.sent_us / 1e6:.3f} s"
            for worked in run.history.deeds
            if worked.word == b"WORKING" and worked.reply > 0
            for delivery in deliveries.get(worked.job_id, ())
            if worked.said_us + heard_us < delivery.sent_us
            and delivery.sent_us < worked.asked_us + worked.reply * 1_000_000 - _EARLY_US
            and not _given_back(run, worked, delivery, given_back.get(worked.job_id, []))
        ]


def _given_back(run: Run, worked: Deed, delivery: Delivered, deeds: list[Deed]) -> bool:
    """Whether somebody said so, which may have come after WORKING, and before the delivery."""
    since_us = worked.asked_us - 2 * run.world.longest_transit_us
    return any(since_us <= deed.asked_us <= delivery.sent_us for deed in deeds)
