"""What faults strike: the network, and the machines with their processes and disks."""

from __future__ import annotations

from random import Random
from typing import Final

from disque_tx.sim.machines.daemon import Daemon
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.machines.names import NameService
from disque_tx.sim.machines.repair import MembershipRepair
from disque_tx.sim.world.connection import SimConnection
from disque_tx.sim.world.network import Network
from disque_tx.sim.world.world import World

#: How long after a node is back its entry in the node tables is repaired.
REPAIR_US: Final = 300_000
#: After that time a node that was started is a full member again.
_SETTLED_US: Final = 6_000_000


class Targets:
    """``history``: time, name and place of every fault that happened. ``returned_us``: when a node
    that was away for a while is back. ``daemons``: those with several processes. ``names``: the
    name under which nodes find each other, if they do.
    ``copies_lost``: how many copies of jobs were on machines that were lost.
    ``left_to_originals``: IDs of the jobs that only originals held after a loss.
    ``held_when_empty``: jobs of nodes that said they were empty; ``not_emptied``: nodes that did
    not get rid of their jobs in time."""

    def __init__(self, world: World, network: Network, machines: list[Machine]) -> None:
        self.world = world
        self.network = network
        self.machines = machines
        self.history: list[tuple[int, str, str]] = []
        self.returned_us = 0
        self.daemons: list[Daemon] = []
        self.names: NameService | None = None
        self.copies_lost = 0
        self.left_to_originals: set[bytes] = set()
        self.held_when_empty: list[str] = []
        self.not_emptied: list[str] = []
        self.repair = MembershipRepair(machines)

    def alive_since(self, ip: bytes) -> int:
        """Since when the memory of the machine is unbroken, in true time; in the future while it is
        broken (see :attr:`Machine.alive_since_us`)."""
        return next(machine for machine in self.machines if machine.ip == ip).alive_since_us

    def record(self, name: str, *places: bytes) -> None:
        """A fault happens there."""
        where = " ".join([place.decode() for place in places])
        self.history.append((self.world.now_us, name, where))
        self.world.count_fault(name, where)

    def running(self, random: Random) -> Machine | None:
        """Some machine on which a process works."""
        able = [m for m in self.machines if m.process is not None and not m.process.frozen]
        return random.choice(able) if able else None

    def all_up(self) -> bool:
        """Whether all nodes have been up for a while."""
        now_us = self.world.now_us
        return all(
            machine.process is not None
            and not machine.process.frozen
            and now_us - max(machine.started_us, self.returned_us) >= _SETTLED_US
            for machine in self.machines
        )

    def connection(self, random: Random) -> SimConnection | None:
        """Some connection, of the bus or of a client."""
        able = self.network.live(messages=random.random() < 0.7) or self.network.live()
        return random.choice(able) if able else None

    def bring_back(self, machine: Machine) -> None:
        """Start a machine; the others meet it again in case it has another node ID now."""
        machine.start()
        self.world.at(REPAIR_US, self.repair.run)
