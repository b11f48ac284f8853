"""The end of a run: the operator repairs, and consumers on every node take what is left.

Everything is done as people do it: by commands to the nodes. Where the shape says so, nodes that
are leaving go on with it: no client is theirs any more, and those of the others get their jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import hiredis

from disque_tx.sim.actors import QUEUES, do_deed, note_deliveries
from disque_tx.sim.clients import LOST, SimClient
from disque_tx.sim.operating import pause
from disque_tx.sim.operator import Operator

if TYPE_CHECKING:
    from disque_tx.sim.machine import Machine
    from disque_tx.sim.run import Run

_DRAIN_US: Final = 400_000
_AGAIN_US: Final = 5_000_000


class Healing:
    """One desk per node, with a client that only talks to it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._operator = Operator(run.machines)
        self._desks = [Desk(run, machine) for machine in run.machines]

    def meet(self) -> None:
        """The first node meets all others."""
        for machine in self._run.machines[1:]:
            self._desks[0].order(b"CLUSTER", b"MEET", machine.ip, b"%d" % machine.port)

    def begin(self) -> None:
        """Repair now and every few seconds, and drain."""
        leaving = self._leaving()
        for desk in self._desks:
            for queue in QUEUES:
                desk.release(queue)
            if desk.machine not in leaving:
                desk.order(b"CLUSTER", b"LEAVING", b"no")
        self._repair()
        for machine in self._run.machines:
            if machine not in leaving:
                Drain(self._run, machine)

    def _leaving(self) -> list[Machine]:
        """Those that are not called back; at least one node stays."""
        if not self._run.shape.stay_leaving:
            return []
        leaving = [m for m, node in self._run.nodes() if node.membership.leaving]
        return leaving if len(leaving) < len(self._run.machines) else leaving[1:]

    def _repair(self) -> None:
        run = self._run
        if not run.over:
            self._operator.look()
            run.world.at(_AGAIN_US, self._repair)


class Desk:
    """Orders to one node, one after the other, repeated until they are heard."""

    def __init__(self, run: Run, machine: Machine) -> None:
        self.machine = machine
        self._run = run
        self._client = SimClient(run, f"desk-{machine.ip.decode()}", machine, run.password)
        self._orders: list[Callable[[], None]] = []

    def order(self, *words: bytes) -> None:
        """Say this as soon as all before it was said."""
        self._add(lambda: self._client.ask(self._said, *words))

    def release(self, queue: bytes) -> None:
        """Pause the queue no longer; said in its turn."""
        self._add(lambda: pause(self._run, self._client, queue, b"none", False, self._said))

    def _add(self, say: Callable[[], None]) -> None:
        self._orders.append(say)
        if len(self._orders) == 1:
            say()

    def _said(self, reply: Any) -> None:
        if reply is not LOST:
            self._orders.pop(0)
        if self._orders:
            self._orders[0]()


class Drain:
    """Takes and acknowledges everything on one node, until the run is over."""

    def __init__(self, run: Run, machine: Machine) -> None:
        self._run = run
        self._client = SimClient(run, f"drain-{machine.ip.decode()}", machine, run.password)
        self._take()

    def _take(self) -> None:
        if self._run.over:
            return
        words = [b"GETJOB", b"NOHANG", b"WITHCOUNTERS", b"COUNT", b"100", b"FROM", *QUEUES]
        self._client.ask(self._took, *words)

    def _took(self, reply: Any) -> None:
        if reply is None or reply is LOST or isinstance(reply, hiredis.ReplyError):
            self._run.world.at(_DRAIN_US, self._take)
            return
        ids = note_deliveries(self._run, self._client, reply)
        do_deed(self._run, self._client, b"ACKJOB", ids, lambda _: self._take())
