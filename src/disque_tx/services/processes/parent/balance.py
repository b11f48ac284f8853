"""Which process serves a new connection: one with the fewest, or nearly so.

The parent accepts all connections and passes each one on. The kernel's own ways are uneven where it
matters, with few connections. Of eight connections to four processes that share a port by
SO_REUSEPORT, one process often gets four or five, and another one none, because the kernel decides
by a hash; of eight at a listening socket that all wait at with EPOLLEXCLUSIVE, one process gets
nearly all.

Among equals, chance decides. Programs often open connections for producers and consumers in turn:
dealt out in order, all producers would be at one of two processes, and all consumers at the other.
Once every process has some connections, it may also get one more than the fewest, so that the two
connections of a pair are not always at different processes, between which every job would move.
"""

from __future__ import annotations

import random
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from disque_tx.services.processes.parent.supervision import Child

#: Connections that may wait while no process can take one.
WAITING_MAX: Final = 1_000
#: From so many clients each on, one more or less makes little difference.
_ENOUGH: Final = 4


class BalanceTarget:
    """A process that takes connections. ``passed``: how many were passed to it. ``load``: how many
    clients it had when it last reported, and ``received`` how many had reached it by then."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.passed = 0
        self.received = 0
        self.load = 0

    @property
    def clients(self) -> int:
        """How many it has, as far as is known."""
        return self.load + self.passed - self.received


class Balance:
    """Passes connections on. While no process can take one, they wait. ``choose``: chooses by
    chance."""

    def __init__(
        self, choose: Callable[[Sequence[BalanceTarget]], BalanceTarget] = random.choice
    ) -> None:
        self._choose = choose
        self._targets: dict[int, BalanceTarget] = {}
        self._waiting: deque[tuple[int, socket.socket]] = deque()
        self._closed = False

    def add(self, children: dict[int, Child]) -> None:
        """Let these child processes, by number, take connections; waiting connections are given
        first."""
        for number, child in children.items():
            known = self._targets.get(number)
            if known is None or known.child is not child:
                self._targets[number] = BalanceTarget(child)
        waiting, self._waiting = self._waiting, deque()
        for entrance, sock in waiting:
            self.give(entrance, sock)

    def remove(self, number: int) -> None:
        """Give the process no more connections."""
        self._targets.pop(number, None)

    def report(self, number: int, clients: int, received: int) -> None:
        """How many clients a process has, and how many connections have reached it."""
        target = self._targets.get(number)
        if target is not None:
            target.load = clients
            target.received = received

    def give(self, entrance: int, sock: socket.socket) -> None:
        """Pass on a connection that was accepted at this entrance."""
        if self._targets:
            target = self._target()
            target.passed += 1
            target.child.send(["client", entrance], sock)
        elif len(self._waiting) < WAITING_MAX and not self._closed:
            self._waiting.append((entrance, sock))
        else:
            sock.close()

    def _target(self) -> BalanceTarget:
        fewest = min(target.clients for target in self._targets.values())
        most = fewest + 1 if fewest >= _ENOUGH else fewest
        return self._choose([one for one in self._targets.values() if one.clients <= most])

    def close(self) -> None:
        """Close what still waits, and what comes."""
        self._closed = True
        self._targets.clear()
        while self._waiting:
            self._waiting.popleft()[1].close()
