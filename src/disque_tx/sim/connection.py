"""One end of a simulated TCP connection, as programs use it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from disque_tx.sim.pipe import Pipe

if TYPE_CHECKING:
    from disque_tx.sim.network import Network


def _nothing(*_arguments: object) -> None:
    """Nobody looks at this connection yet."""


class Connection:
    """One end of a connection. ``on_data`` and ``on_lost`` are set by its owner at once.

    ``caller``: this is the end that connected. ``port``: where it connected to. ``open``: this side
    neither closed it nor heard of its end. ``carries_messages``: those of the cluster bus.
    ``sent_us``: when the bytes received last were written. ``out``: the direction to the other
    end. ``other``: that end.
    """

    other: Connection
    out: Pipe

    def __init__(
        self, network: Network, serial: int, local_ip: bytes, peer_ip: bytes, port: int
    ) -> None:
        self.local_ip = local_ip
        self.peer_ip = peer_ip
        self.port = port
        self.serial = serial
        self.caller = False
        self.open = True
        self.carries_messages = False
        self.sent_us = -1
        self.on_data: Callable[[bytes], None] = _nothing
        self.on_lost: Callable[[], None] = _nothing
        self._network = network
        self._told = False

    @property
    def unread_bytes(self) -> int:
        """Bytes that were written here and that the other side has not read."""
        return self.out.size

    def write(self, data: bytes) -> None:
        """Send bytes; to a connection that has ended nothing can be said, which is then noticed."""
        if not self.open or not data:
            return
        if self.carries_messages:
            self._network.messages.write(self, data)
        else:
            self.out.push(data)
        if self.out.broken and not self._told:
            self._told = True
            self._network.refuse(self)

    def close(self) -> None:
        """Hang up, after what was written; :attr:`on_lost` is not called."""
        if self.open:
            self.open = False
            self.out.end()
            self._network.tidy(self)

    def abort(self) -> None:
        """Hang up at once; some of what was written may not arrive."""
        self.out.lose_tail()
        self.close()

    def take(self, sent_us: int, data: bytes) -> None:
        """Bytes arrived."""
        self.sent_us = sent_us
        self._network.world.trace(
            "data", self.serial, self.local_ip.decode(), len(data), zlib.crc32(data)
        )
        self.on_data(data)

    def lose(self) -> None:
        """This side hears that the connection is gone."""
        if self.open:
            self.open = False
            self.out.broken = True
            self._network.world.trace("lost", self.serial, self.local_ip.decode())
            self._network.tidy(self)
            self.on_lost()

    def vanish(self) -> None:
        """The program at this end is no more: nobody is to be told of anything here."""
        self.open = False
        self.on_data = self.on_lost = _nothing
        self._network.tidy(self)
