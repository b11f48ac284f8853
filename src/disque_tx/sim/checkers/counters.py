"""The counters of a job, in GETJOB WITHCOUNTERS and in SHOW, are what happened to it.

What is promised:

1. ``nacks`` is at most the number of NACKs that were asked for before, wherever; and on a node that
   answered NACK with 1, at least the number of those.
2. ``nacks`` and ``additional-deliveries`` together are at least the number of times that the same
   node delivered the job again, beyond the first time: it came back for a reason, and every reason
   counts but being given by another node, which says what it counted.
3. What a node says of a job never becomes less.

The first half of 1 is judged unless bus messages were doubled, since the message that counts then
counts twice. All else is judged in runs without faults other than those of clocks: a node that was
restarted, or cannot hear others, knows less. ADDJOB's first queueing counts nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from disque_tx.sim.checker import Checker
from disque_tx.sim.history import Deed, Delivered, Shown

if TYPE_CHECKING:
    from disque_tx.sim.run import Run

_HARMLESS: Final = frozenset(("clock_step", "clock_drift"))


class CountersFit(Checker):
    """What the nodes said, in the order in which they said it."""

    def judge(self, run: Run) -> list[str]:
        """Counters that do not fit the history."""
        names = {name for _, name, _ in run.plan.history}
        nacked = run.history.asked(b"NACK")
        said: list[Delivered | Shown] = [*run.history.delivered, *run.history.shown]
        said.sort(key=_when)
        breaches: list[str] = []
        known: dict[tuple[bytes, bytes], tuple[int, int]] = {}
        delivered: Counter[tuple[bytes, bytes]] = Counter()
        for one in said:
            place = one.job_id, one.node
            at_us = _when(one)
            asked = nacked.get(one.job_id, [])
            wrong: list[str] = []
            if "message_loss" not in names and one.nacks > _asked(asked, at_us):
                wrong.append(f"NACK was asked for {_asked(asked, at_us)} times")
            if names <= _HARMLESS:
                if one.nacks < _answered(asked, one.node, at_us):
                    wrong.append(f"it answered {_answered(asked, one.node, at_us)} NACKs")
                again = delivered[place] - isinstance(one, Shown)
                if one.nacks + one.deliveries < again:
                    wrong.append(f"it delivered it again {again} times")
                nacks, deliveries = known.get(place, (0, 0))
                if one.nacks < nacks or one.deliveries < deliveries:
                    wrong.append(f"it said {nacks} and {deliveries} before")
                known[place] = one.nacks, one.deliveries
            if isinstance(one, Delivered):
                delivered[place] += 1
            breaches += [
                f"{one.job_id.decode('latin-1')}: {one.nacks} nacks and {one.deliveries} additional"
                f" deliveries, says {one.node.decode()} at {at_us / 1e6:.3f} s; {reason}"
                for reason in wrong
            ]
        return breaches


def _when(one: Delivered | Shown) -> int:
    """When the node said it."""
    return one.sent_us if isinstance(one, Delivered) else one.said_us


def _asked(deeds: list[Deed], at_us: int) -> int:
    """How many of them were asked for by then."""
    return sum(deed.asked_us <= at_us for deed in deeds)


def _answered(deeds: list[Deed], node: bytes, at_us: int) -> int:
    """How many of them the node said to have heeded by then."""
    return sum(
        deed.reply == 1 and deed.node == node and 0 <= deed.said_us < at_us for deed in deeds
    )
