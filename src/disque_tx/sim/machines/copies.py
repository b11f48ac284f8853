"""Which jobs have all the copies that they are to have."""

from __future__ import annotations

from collections.abc import Iterator

from disque_tx.core.jobs.job import Job
from disque_tx.messages.records import ACKED, WAIT_REPL
from disque_tx.sim.machines.machine import Machine


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


def held_jobs(machine: Machine) -> set[bytes]:
    """IDs of the jobs of which this machine has a copy that is to be delivered again."""
    return {job.id for _, job in _copies([machine])}


def jobs_held_by_ours(machines: list[Machine]) -> set[bytes]:
    """IDs of the jobs of which a node of ours has a copy that is to be delivered again."""
    ours = [machine for machine in machines if machine.settings.features]
    return {job.id for _, job in _copies(ours)}


def jobs_believed_of_originals(machines: list[Machine]) -> set[bytes]:
    """IDs of the jobs of which a node of ours takes an original for a holder that has none. An
    original that was asked for a copy and did not confirm it cannot be asked whether it has it."""
    originals = {
        machine.process.node.id: machine.process.node.jobs
        for machine in machines
        if machine.process is not None and not machine.settings.features
    }
    ours = [machine for machine in machines if machine.settings.features]
    return {
        job.id
        for _, job in _copies(ours)
        if any(originals[node].get(job.id) is None for node in job.nodes if node in originals)
    }


def hosts_of_jobs(machines: list[Machine]) -> dict[bytes, set[bytes]]:
    """The hosts of the nodes that have copies of a job, for jobs with REPLICATE 2 or more that are
    to be delivered again."""
    hosts: dict[bytes, set[bytes]] = {}
    for machine, job in _copies(machines):
        if job.repl > 1:
            hosts.setdefault(job.id, set()).add(machine.host)
    return hosts


def _copies(machines: list[Machine]) -> Iterator[tuple[Machine, Job]]:
    for machine in machines:
        if machine.process is not None:
            for job in machine.process.node.jobs.table.values():
                if job.state not in (ACKED, WAIT_REPL) and job.retry_s > 0:
                    yield machine, job
