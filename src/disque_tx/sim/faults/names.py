"""Faults of nodes that find each other by a name: it lies, or none of their addresses stays."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from disque_tx.sim.faults.targets import Targets
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.world.network import End

#: How long after its end a node is started at its new address.
_AWAY_US: Final = (200_000, 3_000_000)


def name_lies(lie: str) -> Callable[[Targets, Random], End | None]:
    """The fault: the name is answered in this wrong way (see :mod:`disque_tx.sim.machines.names`)
    for a while."""

    def begin(targets: Targets, random: Random) -> End | None:
        names = targets.names
        if names is None:
            return None
        targets.record(f"name_{lie}")
        names.begin(lie)
        return lambda: names.end(lie)

    return begin


def readdressed(targets: Targets, random: Random) -> End | None:
    """All nodes are started again, some of them in an orderly way, and none has its address any
    more. By chance they have those of each other; nodes of another cluster may have them as
    well."""
    names = targets.names
    if names is None or not targets.all_up():
        return None
    targets.record("readdressed")
    moving = [*targets.machines, *names.others]
    hosts = [machine.host for machine in moving]
    for machine in moving:
        machine.stop() if random.random() < 0.5 else machine.kill()
        machine.leave_address()
    if random.random() < 0.5:
        turn = random.randint(1, len(hosts) - 1)
        hosts = hosts[turn:] + hosts[:turn]
    else:
        number = random.randint(0, 199)
        hosts = [b"10.3.%d.%d" % (number, place) for place, _ in enumerate(hosts, 1)]
    for machine, host in zip(moving, hosts, strict=True):
        machine.move(host)
        targets.world.at(random.randint(*_AWAY_US), machine.start)
    return lambda: _all_start(moving)


def _all_start(machines: list[Machine]) -> None:
    for machine in machines:
        machine.start()
