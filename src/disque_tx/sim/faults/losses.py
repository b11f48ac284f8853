"""Nodes that are lost for good, with all they have, and new ones in their places."""

from __future__ import annotations

from random import Random

from disque_tx.messages.records import ACKED, WAIT_REPL
from disque_tx.sim.faults.targets import Targets
from disque_tx.sim.machines.machine import Machine
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


def jobs_lacking_copies(machines: list[Machine]) -> set[bytes]:
    """IDs of the jobs that fewer nodes have than were asked for, or than there are. Jobs that are
    done for some node, and those whose client still waits for copies, are none of them."""
    nodes = [machine.process.node for machine in machines if machine.process is not None]
    held: dict[bytes, int] = {}
    wanted: dict[bytes, int] = {}
    apart: set[bytes] = set()
    taking = sum(not node.membership.leaving for node in nodes)
    for node in nodes:
        for job in node.jobs.table.values():
            if job.state in (ACKED, WAIT_REPL) or job.retry_s == 0:
                apart.add(job.id)
            else:
                held[job.id] = held.get(job.id, 0) + 1
                wanted[job.id] = min(int(job.repl), taking)
    return {job_id for job_id, count in held.items() if count < wanted[job_id]} - apart
