"""The name under which nodes find each other, as the name servers of this world answer it.

Unless it lies, the answer lists the addresses of all nodes that run. Each lie lasts as long as a
fault does:

- ``silent``: no answer comes, until whoever asks gives up;
- ``empty``: the name has no addresses;
- ``partial``: some of the nodes are missing;
- ``stale``: addresses that nodes had at any time are listed as well, and not those of nodes that
  run for a few seconds only;
- ``foreign``: the nodes of another cluster are listed as well;
- ``crowded``: there are a thousand more addresses, which are none of a node: at some of them
  connections are refused, at others nothing answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET
from disque_tx.core.nodes.discovery import ADDRESSES_MAX, Place
from disque_tx.sim.machines.interfaces import Answer, NameLookup
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.world.world import World

LIES: Final = ("silent", "empty", "partial", "stale", "foreign", "crowded")
_ANSWER_US: Final = (1_000, 200_000)
#: As long as a client of name servers tries in all, in proportion to the interval of these nodes.
SILENCE_US: Final = 3_000_000
_NEW_US: Final = 5_000_000
#: Addresses at which there never was a node.
_CROWD: Final = [b"10.200.%d.%d" % divmod(number, 250) for number in range(ADDRESSES_MAX)]


class NameService(NameLookup):
    """``machines``: whose nodes the name is for; ``others``: those of another cluster. ``lies``:
    those that are told now. ``honest_us``: since when there is none."""

    def __init__(self, world: World, machines: list[Machine], others: list[Machine]) -> None:
        self.machines = machines
        self.others = others
        self.lies: list[str] = []
        self.honest_us = world.now_us
        self._world = world
        self._random = world.random("names")
        #: Every address that a node ever had.
        self._former: dict[Place, None] = {}
        self._port = machines[0].port
        for host in _CROWD[::2]:
            machines[0].network.abandon(host, self._port + BUS_PORT_OFFSET)

    def begin(self, lie: str) -> None:
        """Lie from now on."""
        self.lies.append(lie)

    def end(self, lie: str) -> None:
        """Stop that."""
        self.lies.remove(lie)
        if not self.lies:
            self.honest_us = self._world.now_us

    def look_up(self, done: Callable[[Answer], None]) -> None:
        if "silent" in self.lies:
            self._world.at(SILENCE_US, lambda: done("no name server answers"))
        else:
            self._world.at(self._random.randint(*_ANSWER_US), lambda: done(self._answer()))

    def _answer(self) -> Answer:
        if "silent" in self.lies:
            return "no name server answers"
        found = self._places(self.machines)
        self._former |= dict.fromkeys(found)
        if "empty" in self.lies:
            found = []
        if "partial" in self.lies:
            found = self._random.sample(found, len(found) // 2)
        if "stale" in self.lies:
            now_us = self._world.now_us
            old = [m for m in self.machines if now_us - m.started_us >= _NEW_US]
            found = [*self._former, *self._places(old)]
        if "foreign" in self.lies:
            found += self._places(self.others)
        if "crowded" in self.lies:
            found += [(host, self._port, 0) for host in _CROWD]
        found = list(dict.fromkeys(found))
        self._random.shuffle(found)
        return found or "it has no addresses"

    def _places(self, machines: list[Machine]) -> list[Place]:
        return [(m.host, m.port, 0) for m in machines if m.process is not None]


class OtherName(NameLookup):
    """The same name, as the nodes of the other cluster look it up: it never fails, and always lists
    the nodes of both."""

    def __init__(self, world: World, names: NameService) -> None:
        self._world = world
        self._names = names
        self._random = world.random("other names")

    def look_up(self, done: Callable[[Answer], None]) -> None:
        self._world.at(self._random.randint(*_ANSWER_US), lambda: done(self._answer()))

    def _answer(self) -> Answer:
        names = self._names
        found = [m for m in (*names.machines, *names.others) if m.process is not None]
        return [(machine.host, machine.port, 0) for machine in found]
