"""Who had a copy of a job when its client was answered."""

from __future__ import annotations

from functools import partial

from disque_tx.sim.interfaces import Running
from disque_tx.sim.machine import Machine


class Copies:
    """Who had a copy of a job when a node answered its client. ``seen``: ID of a job for which no
    client waits any more → who had a copy then; ``down``: who did not run then; ``reached``: the
    hosts, all addresses of nodes, that the node which answered could reach before that turn and
    after it."""

    def __init__(self) -> None:
        self.reached: dict[bytes, frozenset[bytes]] = {}
        self._hosts: dict[bytes, frozenset[bytes]] = {}
        self.seen: dict[bytes, frozenset[bytes]] = {}
        self.down: dict[bytes, frozenset[bytes]] = {}
        self._waiting: dict[bytes, dict[bytes, None]] = {}

    def watch(self, machines: list[Machine], share_hosts: bool) -> None:
        """Examine every turn in which the client of a job is answered. ``share_hosts``: several
        machines are on one host."""
        for machine in machines:
            machine.on_turn.append(partial(self._turn, machines, share_hosts))

    def _turn(self, machines: list[Machine], share_hosts: bool, process: Running) -> None:
        waiting = process.node.waiters.copies
        before = self._waiting.get(process.ip, {})
        hosts = reachable_hosts(process) if share_hosts else frozenset()
        steady = hosts & self._hosts.get(process.ip, frozenset())
        self._hosts[process.ip] = hosts
        if not before and not waiting:
            return
        for job_id in before:
            if job_id not in waiting:
                self.seen[job_id] = self.holders(machines, job_id)
                self.reached[job_id] = steady
                self.down[job_id] = frozenset(m.ip for m in machines if m.process is None)
        self._waiting[process.ip] = dict.fromkeys(waiting)

    @staticmethod
    def holders(machines: list[Machine], job_id: bytes) -> frozenset[bytes]:
        """The machines that have a copy now."""
        return frozenset(
            machine.ip
            for machine in machines
            if machine.process is not None
            and (job := machine.process.node.jobs.get(job_id)) is not None
            and not job.dummy
        )


def reachable_hosts(process: Running) -> frozenset[bytes]:
    """The addresses of the nodes that a node could send copies to now."""
    reachable = process.node.membership.reachable
    return frozenset(entry.ip for entry in reachable if entry.link is not None)
