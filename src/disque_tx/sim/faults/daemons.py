"""Faults of daemons with several processes: one ends, the machine does, their number changes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from disque_tx.sim.faults.targets import REPAIR_US, Targets
from disque_tx.sim.world.network import End

#: A deletion in a shared table is forgotten before.
_WEEK_US: Final = 8 * 86_400 * 1_000_000
#: For so long tables are changed before.
_CHANGES_US: Final = 5_000_000


def process_dies(targets: Targets, random: Random) -> End | None:
    """One process ends at once, and is started again by its parent, if all have been up for a
    while."""
    if not targets.all_up():
        return None
    machine = random.choice(targets.machines)
    targets.record("process_dies", machine.ip)
    machine.kill(False)
    return lambda: targets.bring_back(machine)


def machine_down(targets: Targets, random: Random) -> End | None:
    """The power of one machine fails: all processes of its daemon end at once."""
    if not targets.daemons:
        return None
    members = random.choice(targets.daemons).members
    targets.record("machine_down", members[0].host)
    for machine in members:
        machine.kill(True)

    def end() -> None:
        for machine in members:
            targets.bring_back(machine)

    return end


def fewer_processes(name: str, for_a_week: bool) -> Callable[[Targets, Random], End | None]:
    """A daemon has fewer processes for a while, if all have been up for a while. ``for_a_week``:
    some time after the others have ended, the clocks of all machines are set to a time at which
    what was deleted meanwhile is forgotten."""

    def begin(targets: Targets, random: Random) -> End | None:
        daemons = [one for one in targets.daemons if len(one.members) > 1]
        if not daemons or not targets.all_up():
            return None
        daemon = random.choice(daemons)
        count = len(daemon.members)
        targets.record(name, daemon.members[0].host)
        daemon.set_count(random.randint(1, count - 1))

        def let_pass() -> None:
            if daemon.is_lowered:
                targets.record("a_week")
                for machine in targets.machines:
                    machine.clocks.step(_WEEK_US)

        def lowered() -> None:
            targets.world.counters["processes.lowered"] += 1
            if for_a_week:
                targets.world.at(_CHANGES_US, let_pass)

        daemon.on_lowered = lowered

        def end() -> None:
            daemon.set_count(count)
            targets.world.at(REPAIR_US, targets.repair.run)

        return end

    return begin
