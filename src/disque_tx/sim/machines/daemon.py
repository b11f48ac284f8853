"""The processes of one daemon, which are machines that share a host and its clocks, and what their
parent does.

It lets them find each other, ends those that are surplus when they are empty, and removes what
these wrote. When one process is wanted, the first one stays; a real daemon would start another one
in its place, at the port of the daemon, which is to the others one more node that joins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from disque_tx.core.node import Node
from disque_tx.engine.processes import Emptying, jobs_left, mark_path, nodes_known, reaches
from disque_tx.errors import LocalError
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.machines.process import NODES, Process

_REPORT_US: Final = 1_000_000
#: As long as a process does not reach the others.
_JOINING_REPORT_US: Final = 50_000
#: A process that still does not reach the others is used all the same.
_PATIENCE_US: Final = 10_000_000
_MARK: Final = mark_path(NODES)


class Daemon:
    """``members``: its processes, in the order of their numbers, at first all of them wanted.
    ``on_lowered``: called when the last one that is surplus has ended for good."""

    def __init__(self, members: list[Machine]) -> None:
        self.members = members
        self._world = members[0].world
        self.on_lowered: Callable[[], None] = _ignore
        self._wanted = len(members)
        self._emptying: dict[Machine, Emptying] = {}
        for machine in members:
            machine.joins = True
            machine.clocks.agree(members[0].clocks)
            machine.on_start.append(self._started)
        self._world.at(_JOINING_REPORT_US, self._look)

    @property
    def is_lowered(self) -> bool:
        """Whether there are fewer processes than at first, and none is surplus any more."""
        return self._wanted < len(self.members) and not self._emptying

    def set_count(self, count: int) -> None:
        """Start the daemon again with this number of processes. Those beyond it that have files are
        started, too, and end when they are empty."""
        self._world.trace("processes", self.members[0].host.decode(), count)
        for machine in self.members:
            machine.stop()
        self._wanted = count
        self._emptying.clear()
        for number, machine in enumerate(self.members, 1):
            if number <= count:
                machine.removed = False
            elif not machine.removed:
                self._emptying[machine] = Emptying(self._now_s())
            machine.start()

    def _now_s(self) -> float:
        return self._world.now_us / 1_000_000

    # -- in the turns of the processes -------------------------------------------------------

    def _started(self, machine: Machine) -> None:
        process = machine.process
        if process is not None:
            process.feed(lambda: self._begin(machine, process))

    def _begin(self, machine: Machine, process: Process) -> None:
        """Leave the cluster, or cancel the leave begun when there were fewer processes."""
        membership = process.node.membership
        if machine in self._emptying:
            if not membership.leaving:
                machine.disk.create(_MARK)
                membership.set_leaving(True)
        elif machine.disk.exists(_MARK):
            membership.set_leaving(False)
            machine.disk.remove(_MARK)

    def _learn(self, process: Process, others: dict[bytes, Machine]) -> None:
        """Use what the parent knows of the other processes: meet those that are not known."""
        node = process.node
        membership = node.membership
        membership.siblings = list(others)
        for node_id, machine in others.items():
            if node_id not in membership.nodes:
                node.cluster.meet_resolved(machine.host, machine.port)

    # -- the parent --------------------------------------------------------------------------

    def _running(self) -> dict[Machine, Process]:
        found = {machine: machine.process for machine in self.members}
        return {
            machine: process
            for machine, process in found.items()
            if process is not None and not process.frozen
        }

    def _look(self) -> None:
        """Read the reports of all processes, and pass them on."""
        running = self._running()
        joining = False
        for machine, process in running.items():
            others = {one.node.id: other for other, one in running.items() if other is not machine}
            process.feed(partial(self._learn, process, others))
            late = self._world.now_us - machine.started_us >= _PATIENCE_US
            if late or all(reaches(process.node, node_id) for node_id in others):
                process.server.joining = False
            joining = joining or process.server.joining
        for machine, emptying in list(self._emptying.items()):
            if machine in running and self._may_end(running, machine, emptying):
                self._retire(machine)
        self._world.at(_JOINING_REPORT_US if joining else _REPORT_US, self._look)

    def _may_end(
        self, running: dict[Machine, Process], machine: Machine, emptying: Emptying
    ) -> bool:
        node = running[machine].node
        wanted = self.members[: self._wanted]
        others = [nodes_known(running[one].node) if one in running else 0 for one in wanted]
        return emptying.may_end(jobs_left(node), nodes_known(node), others, self._now_s())

    def _retire(self, machine: Machine) -> None:
        node_id = machine.identities[-1]
        if not machine.retire():
            machine.start()
            return
        del self._emptying[machine]
        for process in self._running().values():
            process.feed(partial(_forget, process.node, node_id))
        if not self._emptying:
            self.on_lowered()


def _ignore() -> None:
    """Ignore the report: nothing here acts on it."""


def _forget(node: Node, node_id: bytes) -> None:
    try:
        node.cluster.forget(node_id)
    except LocalError:
        pass  # it was never known here
