"""After an answered ACKJOB the job is not delivered any more.

What is promised: once a node has answered ACKJOB with 1 for a job, it does not deliver that job
again, and no other node does, as soon as messages sent then have gone from there to a holder and
from one holder to the next.

Excused: deliveries before that time; and on other nodes whatever happens in a run with faults other
than those of clocks, since a holder that cannot hear of it delivers again. The node itself is
excused only where jobs or acknowledgements can come back from the dead: when its memory was broken,
when memory was short (acknowledgements are evicted), or when some disk or memory was lost, an old
disk returned, or bus messages were lost or late. A holder that forgot everything is waited for by
nobody, and may get the job from one who never heard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.history import Deed, Delivered
    from disque_tx.sim.run import Run

_HARMLESS: Final = frozenset(("clock_step", "clock_drift"))
#: Faults that separate nodes or stop them, and take nothing away.
_SEPARATING: Final = frozenset(
    (
        *("partition", "partition_one_way", "stall", "reset", "half_open", "slow_link", "pause"),
        *("short_writes", "disk_full"),
    )
)
_HOPS: Final = 3
_TURNS_US: Final = 20_000


class NotAfterAck(Checker):
    """Deliveries after an acknowledgement."""

    def judge(self, run: Run) -> list[str]:
        """Jobs that came although somebody was told that they are done."""
        names = {name for _, name, _ in run.plan.history}
        if names - _HARMLESS - _SEPARATING:
            return []
        everywhere = names <= _HARMLESS
        heard_us = _HOPS * run.world.longest_transit_us + _TURNS_US
        acked = run.history.asked(b"ACKJOB")
        return [
            f"{delivery.job_id.decode('latin-1')}: ACKJOB was answered by {deed.node.decode()} at"
            f" {deed.said_us / 1e6:.3f} s, delivered by {delivery.node.decode()} at"
            f" {delivery.sent_us / 1e6:.3f} s"
            for delivery in run.history.delivered
            for deed in acked.get(delivery.job_id, ())
            if deed.reply == 1
            and (
                _by_itself(run, deed, delivery)
                or (everywhere and deed.said_us + heard_us < delivery.sent_us)
            )
        ]


def _by_itself(run: Run, deed: Deed, delivery: Delivered) -> bool:
    """Whether the node that heard ACKJOB delivered the job, its memory unbroken."""
    return (
        deed.node == delivery.node
        and deed.said_us < delivery.sent_us
        and run.plan.alive_since(deed.node) <= deed.asked_us
    )
