"""The lookups of a simulated process: what the service for discovery is to the daemon.

The name is looked up at the start and then every interval, from the beginning of one lookup to that
of the next, as :meth:`Discovery.pause_s` says; what is found goes to the node in a turn.
"""

from __future__ import annotations

from typing import Final

from disque_tx.sim.machines.interfaces import Answer, NameLookup, Running

#: The source, as it stands in the configuration.
SOURCE: Final = "dns:nodes"


class NameWatch:
    """Of one process, until it ends."""

    def __init__(self, process: Running, names: NameLookup) -> None:
        self._process = process
        self._names = names
        self._world = process.world
        self._random = process.world.random(f"lookups {process.machine.name}")
        self._due_us = 0
        process.feed(self._look)

    def _look(self) -> None:
        pause_s = self._process.node.cluster.discovery.pause_s(self._random.random())
        self._due_us = self._world.now_us + int(pause_s * 1_000_000)
        self._names.look_up(lambda answer: self._process.feed(lambda: self._found(answer)))

    def _found(self, answer: Answer) -> None:
        node = self._process.node
        if isinstance(answer, str):
            node.cluster.discovery.failed(SOURCE, answer)
        else:
            node.cluster.discovery.found(SOURCE, answer, node.now_ms)
        wait_us = max(self._due_us - self._world.now_us, 0)
        self._world.at(wait_us, lambda: self._process.feed(self._look))
