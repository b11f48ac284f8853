"""The end of a run: the operator repairs, and consumers on every node take what is left.

Everything is done as people do it: by commands to the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import hiredis

from disque_tx.sim.actors import QUEUES, note_deliveries
from disque_tx.sim.clients import LOST, SimClient
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
        for desk in self._desks:
            for queue in QUEUES:
                desk.order(b"PAUSE", queue, b"none")
            desk.order(b"CLUSTER", b"LEAVING", b"no")
        self._repair()
        for machine in self._run.machines:
            Drain(self._run, machine)

    def _repair(self) -> None:
        run = self._run
        if not run.over:
            self._operator.look()
            run.world.at(_AGAIN_US, self._repair)


class Desk:
    """Orders to one node, one after the other, repeated until they are heard."""

    def __init__(self, run: Run, machine: Machine) -> None:
        self.machine = machine
        self._client = SimClient(run, f"desk-{machine.ip.decode()}", machine)
        self._orders: list[tuple[bytes, ...]] = []

    def order(self, *words: bytes) -> None:
        """Say this as soon as all before it was said."""
        self._orders.append(words)
        if len(self._orders) == 1:
            self._say()

    def _say(self) -> None:
        self._client.ask(self._said, *self._orders[0])

    def _said(self, reply: Any) -> None:
        if reply is not LOST:
            self._orders.pop(0)
        if self._orders:
            self._say()


class Drain:
    """Takes and acknowledges everything on one node, until the run is over."""

    def __init__(self, run: Run, machine: Machine) -> None:
        self._run = run
        self._client = SimClient(run, f"drain-{machine.ip.decode()}", machine)
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
        self._client.ask(lambda _: self._take(), b"ACKJOB", *ids)
