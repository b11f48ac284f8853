"""What goes wrong in a run, and when: a plan drawn from the seed.

Every fault of a plan has a time, a length and chance of its own, so leaving some of them out
(``skip``) changes nothing about the others: that is how the trace of a failing run is made smaller.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Final

import attrs

from disque_tx.sim.faults.kinds import EFFECTS, FAULTS, NAMED_FAULTS, Fault
from disque_tx.sim.faults.targets import REPAIR_US, Targets
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.world.network import End, Network
from disque_tx.sim.world.world import World

__all__ = ["EFFECTS", "FAULTS", "Fault", "FaultPlan", "Planned"]

_ALL: Final = FAULTS | NAMED_FAULTS
_RESTART_US: Final = (500_000, 4_000_000)


@attrs.frozen
class Planned:
    """One fault of a plan: when, which one, for how long, and the seed of its own chance."""

    at_us: int
    name: str
    length_us: int
    seed: int


class FaultPlan(Targets):
    """``intensity``: faults per second of simulated time, on average.

    ``allow``: names of the faults that may be drawn, at first all. ``planned``: what was drawn.
    ``skip``: indexes of those of them that do not happen.
    """

    def __init__(
        self, world: World, network: Network, machines: list[Machine], intensity: float
    ) -> None:
        super().__init__(world, network, machines)
        self.intensity = intensity
        self.allow: set[str] = set(FAULTS)
        self.planned: list[Planned] = []
        self.skip: set[int] = set()
        self._random = world.random("faults")
        #: When the last fault ended.
        self.quiet_us = 0
        self._ends: dict[int, End] = {}
        self._healed = False
        for machine in machines:
            machine.on_death.append(self._died)

    @property
    def is_quiet(self) -> bool:
        """Whether no fault is under way."""
        return not self._ends

    def active(self) -> set[str]:
        """The names of the faults that are under way."""
        return {self.planned[index].name for index in self._ends}

    # -- the plan ----------------------------------------------------------------------------

    def schedule(self, start_us: int, end_us: int, first: str = "") -> None:
        """Draw the faults between these times, and let them happen; nothing when none may.

        ``first``: the one that comes first, and in the first half of the time, if it may at all.
        """
        random = self._random
        names = sorted(self.allow)
        at_us = start_us + self._gap_us()
        if first in self.allow:
            at_us = min(at_us, (start_us + end_us) // 2)
        while names and at_us < end_us:
            name = random.choice(names)
            if not self.planned and first in self.allow:
                name = first
            length_us = random.randint(*_ALL[name].length_us)
            planned = Planned(at_us, name, length_us, random.getrandbits(64))
            index = len(self.planned)
            self.planned.append(planned)
            self.world.at(max(0, at_us - self.world.now_us), partial(self._begin, index, planned))
            at_us += self._gap_us()

    def _gap_us(self) -> int:
        return 1 + int(self._random.expovariate(max(self.intensity, 1e-9)) * 1_000_000)

    def _begin(self, index: int, planned: Planned) -> None:
        if index in self.skip or self._healed:
            return
        end = _ALL[planned.name].begin(self, Random(planned.seed))
        if end is not None:
            self._ends[index] = end
            self.world.at(planned.length_us, lambda: self._end(index))

    def _end(self, index: int) -> None:
        end = self._ends.pop(index, None)
        if end is not None:
            end()
            self.quiet_us = self.world.now_us

    def heal(self) -> None:
        """End all faults, for good: everything runs, is connected, and has room."""
        self._healed = True
        while self._ends:
            self._ends.pop(next(iter(self._ends)))()
        self.network.heal()
        for machine in self.machines:
            machine.resume()
            disk = machine.disk
            disk.full = disk.sync_fails = disk.short_writes = False
            machine.start()
            machine.memory_pressure(0)
        self.quiet_us = self.world.now_us
        self.world.trace("healed")
        self.repair.run()
        self.world.at(REPAIR_US, self.repair.run)

    def _died(self, machine: Machine) -> None:
        self.world.at(self._random.randint(*_RESTART_US), lambda: self.bring_back(machine))
