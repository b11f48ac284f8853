"""Clusters whose nodes find each other by a name: their settings, and the other cluster whose nodes
look up the same name.
"""

from __future__ import annotations

from typing import Final

import attrs

from disque_tx.messages.bustypes import CAN_BULK, CAN_LOADED, CAN_NAME, CAN_QUERY
from disque_tx.sim.machines.interfaces import MachineSettings
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.machines.names import NameService, OtherName
from disque_tx.sim.world.network import Network
from disque_tx.sim.world.world import World

#: How often nodes look up the name. Within three times this they are one cluster.
INTERVAL_MS: Final = 5_000
_FORGET_MS: Final = 15_000
_PORT: Final = 7711
_NAME: Final = b"ours"
#: A mark of a password, and another one.
_MARKS: Final = (1, 2)
#: Name and mark of the other cluster: it differs in one of them, or in both.
_OTHERS: Final = ((b"theirs", _MARKS[0]), (_NAME, _MARKS[1]), (b"", 0))


def named(settings: MachineSettings) -> MachineSettings:
    """The settings of nodes that know nothing of each other but the name."""
    return attrs.evolve(
        settings,
        cluster=(_NAME, _MARKS[0]),
        discovery_ms=INTERVAL_MS,
        forget_after_ms=_FORGET_MS,
    )


def with_place(world: World, settings: MachineSettings, number: int) -> MachineSettings:
    """The same for the node with this number, which may announce its address or leave it to the
    others to see where it connects from."""
    return attrs.evolve(settings, announces=world.random(f"announces {number}").random() < 0.5)


def strangers(world: World, network: Network, settings: MachineSettings) -> list[Machine]:
    """One or two machines whose nodes are a cluster of their own."""
    random = world.random("strangers")
    other = attrs.evolve(
        settings,
        appendonly=False,
        cluster=random.choice(_OTHERS),
        features=CAN_BULK | CAN_QUERY | CAN_LOADED | CAN_NAME,
    )
    return [
        Machine(world, network, b"10.9.0.%d" % (number + 1), _PORT, other)
        for number in range(random.choice((1, 2)))
    ]


def give_names(world: World, machines: list[Machine], others: list[Machine]) -> NameService:
    """The name under which the machines of either cluster find each other."""
    names = NameService(world, machines, others)
    for machine in machines:
        machine.names = names
    for machine in others:
        machine.names = OtherName(world, names)
    return names
