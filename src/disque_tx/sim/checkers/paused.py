"""A paused queue stands still.

What is promised, under any fault: once a node has answered PAUSE q out (or all), it delivers no job
of that queue, and once it has answered PAUSE q in (or all), it accepts none, until it is asked for
something else. With BCAST the same holds on every other node from the time on at which the message
has arrived there; that is judged in runs without faults, where it does arrive.

Excused: a node that was restarted since, for the flags are not stored; and whatever happens after
another PAUSE of that queue may have been heard by the node, be it its own or one that another node
broadcasts. One whose answer was lost may be heard at any later time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.sim.checker import Checker
from disque_tx.sim.history import Paused

if TYPE_CHECKING:
    from disque_tx.sim.run import Run

_IN: Final = 1
_OUT: Final = 2
_TURNS_US: Final = 20_000


class PauseHeeded(Checker):
    """Deliveries from paused queues, and jobs that were added to them."""

    def judge(self, run: Run) -> list[str]:
        """What moved although it should not."""
        breaches: list[str] = []
        for delivery in run.history.delivered:
            paused = _in_force(run, delivery.queue, delivery.node, delivery.sent_us, _OUT)
            if paused is not None:
                breaches.append(
                    f"{delivery.job_id.decode('latin-1')}: delivered by {delivery.node.decode()} at"
                    f" {delivery.sent_us / 1e6:.3f} s, {_reason(paused)}"
                )
        for added in run.history.accepted():
            paused = _in_force(run, added.queue, added.node, added.asked_us, _IN)
            if paused is not None:
                breaches.append(
                    f"{added.job_id.decode('latin-1')}: accepted by {added.node.decode()} after"
                    f" {added.asked_us / 1e6:.3f} s, {_reason(paused)}"
                )
        return breaches


def _reason(paused: Paused) -> str:
    how = ", for all nodes" if paused.everywhere else ""
    return (
        f"its queue paused at {paused.said_us / 1e6:.3f} s by {paused.node.decode()}{how}"
        f" (flags {paused.flags})"
    )


def _in_force(run: Run, queue: bytes, node: bytes, at_us: int, flag: int) -> Paused | None:
    """The PAUSE that certainly holds on the node at that time, if it stops this."""
    heard_us = 2 * run.world.longest_transit_us + _TURNS_US
    last: Paused | None = None
    since_us = doubt_us = before_us = -1
    for paused in run.history.pauses:
        here = paused.node in (node, b"")
        if paused.queue != queue or paused.asked_us > at_us or not (here or paused.everywhere):
            continue
        if paused.said_us < 0:
            return None  # who knows when it is heard, if ever
        last, since_us, before_us = paused, paused.said_us, doubt_us
        if not here:
            since_us += heard_us
            doubt_us = max(doubt_us, since_us)
            if run.plan.history:
                last = None
    started_us = next(machine.started_us for machine in run.machines if machine.ip == node)
    if last is None or last.said_us < started_us or not last.flags & flag:
        return None
    return last if before_us < last.asked_us and since_us < at_us else None
