"""Nodes that lose all they have: for good, with new ones in their places, or at a restart."""

from __future__ import annotations

from random import Random

from disque_tx.sim.faults.targets import Targets
from disque_tx.sim.machines.copies import jobs_lacking_copies
from disque_tx.sim.world.network import End


def one_lost(targets: Targets, random: Random) -> End | None:
    """One machine is gone, and its disk, if all have been up for a while and every job has all its
    copies. Later an empty one comes in its place, with another ID."""
    if not targets.all_up() or jobs_lacking_copies(targets.machines):
        return None
    machine = random.choice(targets.machines)
    targets.record("one_lost", machine.ip)
    machine.kill(power=True)
    machine.disk.wipe()
    machine.lose_memory()
    return lambda: targets.bring_back(machine)


def one_started_empty(targets: Targets, random: Random) -> End | None:
    """One node is started again, with its ID and without jobs, if all have been up for a while and
    every job has all its copies."""
    if not targets.all_up() or jobs_lacking_copies(targets.machines):
        return None
    machine = random.choice(targets.machines)
    targets.record("one_started_empty", machine.ip)
    machine.kill(power=False)
    machine.lose_memory()
    return machine.start
