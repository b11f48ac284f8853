"""What the nodes say to each other stays within a budget, per job and when nothing happens.

The budget is generous: it is there to find storms, not to save bytes. Whoever waits for copies on
a stalled network sends a job again at growing intervals, an acknowledgement is repeated for as long
as a holder is away; everything else is a handful of messages per job and node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run

#: Bytes per node pair and second for being a cluster: pings with gossip, and their answers.
IDLE_BYTES_PER_S: Final = 6_000
#: Bytes per ADDJOB and other node.
JOB_BYTES: Final = 40_000
#: Bytes per GETJOB, ACKJOB and other request, and other node.
REQUEST_BYTES: Final = 3_000


class WithinBudget(Checker):
    """Bytes written on all bus connections of a run."""

    def judge(self, run: Run) -> list[str]:
        """A run that said too much."""
        others = len(run.machines) - 1
        pairs = len(run.machines) * others
        seconds = run.world.now_us / 1e6
        budget = pairs * seconds * IDLE_BYTES_PER_S
        budget += len(run.history.added) * others * JOB_BYTES
        budget += run.requests * others * REQUEST_BYTES
        said = run.world.counters["bus.bytes"]
        if said > budget:
            return [f"{said} bytes on the bus, {int(budget)} are the budget of such a run"]
        return []
