"""Nodes that lose all they have: for good, with new ones in their places, or at a restart."""

from __future__ import annotations

from random import Random

from disque_tx.sim.faults.targets import Targets
from disque_tx.sim.machines.copies import (
    held_jobs,
    hosts_of_jobs,
    jobs_held_by_ours,
    jobs_lacking_copies,
)
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.world.network import End


def one_lost(targets: Targets, random: Random) -> End | None:
    """One machine is gone, and its disk, if all have been up for a while and every job has all its
    copies. Later an empty one comes in its place, with another ID; perhaps before anybody suspects
    that it is gone."""
    if not targets.all_up() or jobs_lacking_copies(targets.machines):
        return None
    machine = random.choice(targets.machines)
    targets.record("one_lost", machine.ip)
    targets.copies_lost += len(held_jobs(machine))
    _lose(machine)
    return lambda: targets.bring_back(machine)


def one_lost_of_mixed(targets: Targets, random: Random) -> End | None:
    """The same in a cluster with originals, which make no copies: those jobs need not have all
    their copies that only originals hold. Jobs of which no other node has a copy afterwards are
    left to them."""
    machines = targets.machines
    if not targets.all_up() or jobs_lacking_copies(machines) & jobs_held_by_ours(machines):
        return None
    machine = random.choice(machines)
    targets.record("one_lost_of_mixed", machine.ip)
    before = jobs_held_by_ours(machines)
    _lose(machine)
    targets.left_to_originals |= before - jobs_held_by_ours(machines)
    return lambda: targets.bring_back(machine)


def host_lost(targets: Targets, random: Random) -> End | None:
    """All machines of one host are gone, and their disks, if all have been up for a while, every
    job has all its copies, and none has them there alone. Later empty ones come in their places."""
    if not targets.daemons or not targets.all_up() or jobs_lacking_copies(targets.machines):
        return None
    members = random.choice(targets.daemons).members
    host = members[0].host
    if any(hosts == {host} for hosts in hosts_of_jobs(targets.machines).values()):
        return None
    targets.record("host_lost", host)
    for machine in members:
        _lose(machine)

    def end() -> None:
        for machine in members:
            targets.bring_back(machine)

    return end


def _lose(machine: Machine) -> None:
    machine.kill(power=True)
    machine.disk.wipe()
    machine.lose_memory()


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
