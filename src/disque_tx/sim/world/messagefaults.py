"""Faults beyond those of TCP: messages of the cluster bus are lost, duplicated and reordered.

What arrives late may come on the next connection between the same two. But a process never gets
what was sent to the one before it: no network could do that.
"""

from __future__ import annotations

import struct
from typing import Final

from disque_tx.messages.bustypes import type_name
from disque_tx.sim.world.connection import SimConnection
from disque_tx.sim.world.world import World

#: Length and type in the header of a message.
_HEADER: Final = struct.Struct(">4xI4xH")
_SOON_US_MAX: Final = 20_000
_LATE_US_MAX: Final = 5_000_000
#: From one address to another, on a connection to this port; whether the side that connected sends.
_Way = tuple[bytes, bytes, int, bool]


class MessageFaults:
    """Writes messages to connections. ``rate``: which part of them something happens to.
    ``reliable``: nothing happened to any of them so far."""

    def __init__(self, world: World) -> None:
        self.rate = 0.0
        self.reliable = True
        self._world = world
        self._random = world.random("messages")
        self._latest: dict[_Way, SimConnection] = {}
        self._held: dict[_Way, list[tuple[int, bytes]]] = {}
        self._starts: dict[bytes, int] = {}

    def connected(self, connection: SimConnection) -> None:
        """From now on this is the connection for what comes late."""
        way = _way(connection)
        self._latest[way] = connection
        for made_us, message in self._held.pop(way, []):
            self._later(way, message, made_us, _LATE_US_MAX)

    def forget(self, ip: bytes) -> None:
        """The process at ``ip`` is gone, and gets nothing that comes late."""
        self._starts[ip] = self._starts.get(ip, 0) + 1
        for way in [way for way in self._held if way[1] == ip]:
            del self._held[way]

    def write(self, connection: SimConnection, data: bytes) -> None:
        """Send messages, which must be whole."""
        counters = self._world.counters
        counters["bus.bytes"] += len(data)
        size = len(data)
        start = kept = 0
        while start < size:
            length, kind = _HEADER.unpack_from(data, start)
            name = type_name(kind)
            counters[f"bus.{name}"] += 1
            end = start + length
            if self.rate and self._random.random() < self.rate:
                connection.out.push(data[kept:start])
                self._mistreat(connection, name, data[start:end])
                kept = end
            start = end
        connection.out.push(data[kept:] if kept else data)

    def _mistreat(self, connection: SimConnection, name: str, message: bytes) -> None:
        self.reliable = False
        fate = self._random.choice(("dropped", "duplicated", "overtaken"))
        self._world.counters[f"bus.{name}.{fate}"] += 1
        self._world.count_fault(f"message_{fate}", connection.serial, name)
        if fate == "duplicated":
            connection.out.push(message)
        if fate != "dropped":
            longest_us = self._random.choice((_SOON_US_MAX, _LATE_US_MAX))
            self._later(_way(connection), message, self._world.now_us, longest_us)

    def _later(self, way: _Way, message: bytes, made_us: int, longest_us: int) -> None:
        start = self._starts.get(way[1], 0)
        self._world.at(
            self._random.randint(1, longest_us),
            lambda: self._repeat(way, message, made_us, start),
        )

    def _repeat(self, way: _Way, message: bytes, made_us: int, start: int) -> None:
        if self._starts.get(way[1], 0) != start:
            return
        connection = self._latest[way]
        if connection.open and not connection.out.broken:
            self._world.record_transit(self._world.now_us - made_us)
            connection.out.push(message)
        else:
            self._held.setdefault(way, []).append((made_us, message))


def _way(connection: SimConnection) -> _Way:
    return (connection.local_ip, connection.peer_ip, connection.port, connection.caller)
