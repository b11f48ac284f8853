"""What an idle cluster says to itself, simulated: bytes on the bus per node and second.

Needs nothing but the package; the same figures come out on every machine. Prints Markdown.
"""

from __future__ import annotations

import sys

from disque_tx.sim.machines.interfaces import MachineSettings
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.world.network import Network
from disque_tx.sim.world.world import World

SIZES = (3, 10, 25, 50, 100)
_SECOND = 1_000_000
_MEASURED_S = 60
_PORT = 7711


def idle_bytes(nodes: int) -> float:
    """Bytes per node and second of ``nodes`` that know each other and have nothing to do."""
    world = World(nodes)
    network = Network(world)
    settings = MachineSettings(node_timeout_ms=15_000)
    machines = [
        Machine(world, network, b"10.0.%d.%d" % divmod(n, 250), _PORT, settings)
        for n in range(nodes)
    ]
    for machine in machines:
        machine.start()
    first = machines[0].process
    assert first is not None
    for machine in machines[1:]:
        node = first.node
        node.cluster.meet_resolved(machine.ip, _PORT)
    while not all(m.process and m.process.node.membership.size == nodes for m in machines):
        world.run_for(_SECOND)
        if world.now_us > 600 * _SECOND:
            raise SystemExit(f"{nodes} nodes did not find each other")
    world.run_for(60 * _SECOND)
    before = world.counters["bus.bytes"]
    world.run_for(_MEASURED_S * _SECOND)
    return (world.counters["bus.bytes"] - before) / nodes / _MEASURED_S


def main() -> int:
    """The table; exit status 1 when it grows faster than the number of nodes."""
    print("| nodes | bytes per node and second | per node and second and other node |")
    print("|---|---|---|")
    rows = []
    for nodes in SIZES:
        rows.append((nodes, idle_bytes(nodes)))
        print(f"| {nodes} | {rows[-1][1]:,.0f} | {rows[-1][1] / (nodes - 1):,.0f} |", flush=True)
    (few, little), (many, much) = rows[0], rows[-1]
    return 0 if much / little <= many / few else 1


if __name__ == "__main__":
    sys.exit(main())
