"""The end of a run: the operator repairs, and consumers on every node take what is left.

Nearly everything is done as people do it: by commands to the nodes. Where the shape says so, nodes
that are leaving stay so: no client uses them any more, and clients of the others get their jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import hiredis

from disque_tx.sim.actors.actors import QUEUES, record_deliveries, send_job_request
from disque_tx.sim.actors.clients import LOST, SimClient
from disque_tx.sim.actors.operator import pause
from disque_tx.sim.machines.repair import MembershipRepair
from disque_tx.sim.stage.workload import DEAD_QUEUE
from disque_tx.sim.stage.workloads import COPY_QUEUE

if TYPE_CHECKING:
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage


_DRAIN_US: Final = 400_000
_AGAIN_US: Final = 5_000_000


class Healing:
    """Repairs the cluster through one client per node."""

    def __init__(self, run: Stage) -> None:
        self._run = run
        self._membership = MembershipRepair(run.machines)
        self._orders = [NodeOrders(run, machine) for machine in run.machines]

    def meet(self) -> None:
        """The first node meets all others."""
        for machine in self._run.machines[1:]:
            self._orders[0].order(b"CLUSTER", b"MEET", machine.host, b"%d" % machine.port)

    def begin(self) -> None:
        """Repair now and every few seconds, and drain."""
        leaving = self._leaving()
        for orders in self._orders:
            for queue in QUEUES:
                orders.release(queue)
            if orders.machine not in leaving:
                orders.order(b"CLUSTER", b"LEAVING", b"no")
        self._repair()
        for machine in self._run.machines:
            if machine not in leaving:
                NodeDrainer(self._run, machine)

    def _leaving(self) -> list[Machine]:
        """Nodes that stay in the leaving state; at least one node is not among them."""
        if not self._run.shape.stay_leaving:
            return []
        leaving = [m for m, node in self._run.nodes() if node.membership.leaving]
        return leaving if len(leaving) < len(self._run.machines) else leaving[1:]

    def _repair(self) -> None:
        run = self._run
        if not run.over:
            self._membership.run()
            run.world.at(_AGAIN_US, self._look_again)

    def _look_again(self) -> None:
        """A PAUSE that a node passed on may reach another one after that one was released."""
        for orders in self._orders:
            orders.release_paused()
        self._repair()


class NodeOrders:
    """Commands to one node, one after the other, repeated until they are answered."""

    def __init__(self, run: Stage, machine: Machine) -> None:
        self.machine = machine
        self._run = run
        self._client = SimClient(run, f"desk-{machine.ip.decode()}", machine, run.password)
        self._orders: list[Callable[[], None]] = []

    def order(self, *words: bytes) -> None:
        """Send this command once all before it were answered."""
        self._add(lambda: self._client.ask(self._answered, *words))

    def release(self, queue: bytes) -> None:
        """Resume the queue, once all commands before were answered."""
        self._add(lambda: pause(self._run, self._client, queue, b"none", False, self._answered))

    def release_paused(self) -> None:
        """Resume the queues that are paused by command, if nothing is under way."""
        process = self.machine.process
        if process is None or self._orders:
            return
        for name in QUEUES:
            queue = process.node.queues.get(name)
            if queue is not None and queue.paused_by_command:
                self.release(name)

    def _add(self, send: Callable[[], None]) -> None:
        self._orders.append(send)
        if len(self._orders) == 1:
            send()

    def _answered(self, reply: Any) -> None:
        if reply is not LOST:
            self._orders.pop(0)
        if self._orders:
            self._orders[0]()


class NodeDrainer:
    """Takes and acknowledges everything on one node, until the run is over."""

    def __init__(self, run: Stage, machine: Machine) -> None:
        self._run = run
        self._client = SimClient(run, f"drain-{machine.ip.decode()}", machine, run.password)
        self._take()

    def _take(self) -> None:
        if self._run.over:
            return
        words = [
            b"GETJOB",
            b"NOHANG",
            b"WITHCOUNTERS",
            b"COUNT",
            b"100",
            b"FROM",
            *QUEUES,
            DEAD_QUEUE,
            COPY_QUEUE,
        ]
        self._client.ask(self._drained, *words)

    def _drained(self, reply: Any) -> None:
        if reply is None or reply is LOST or isinstance(reply, hiredis.ReplyError):
            self._run.world.at(_DRAIN_US, self._take)
            return
        ids = record_deliveries(self._run, self._client, reply)
        send_job_request(self._run, self._client, b"ACKJOB", ids, lambda _: self._take())
