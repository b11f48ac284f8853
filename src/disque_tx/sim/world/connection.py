"""A simulated TCP connection: its two ends, as programs use them, and its two directions."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final

from disque_tx.sim.world.world import Timer, World

#: What one read returns at most.
READ_BYTES_MAX: Final = 64 * 1024
_ODD: Final = 0.1
_ODD_US_MAX: Final = 300
#: Stands in the queue where the connection ends: there is no other empty piece.
_END: Final = b""
#: A message of the bus: type, ID of its job, a number.
MessageKey = tuple[int, bytes, int]


class Medium:
    """What connections need of the network that they are part of."""

    world: World
    random: Random

    def transit_us(self, src_ip: bytes, ip: bytes, size: int) -> int:
        """How long this number of bytes takes."""
        raise NotImplementedError

    def is_cut(self, src_ip: bytes, ip: bytes) -> bool:
        """Whether nothing gets from one address to the other."""
        raise NotImplementedError

    def is_frozen(self, ip: bytes) -> bool:
        """Whether the program at this address reads nothing."""
        raise NotImplementedError

    def refuse(self, connection: SimConnection) -> None:
        """Something was written to an end that is gone."""
        raise NotImplementedError

    def tidy(self, connection: SimConnection) -> None:
        """An end of the connection was closed."""
        raise NotImplementedError

    def write_messages(self, connection: SimConnection, data: bytes) -> None:
        """Send messages of the cluster bus, which must be whole."""
        raise NotImplementedError


class ByteStream:
    """One direction, from ``source`` to ``sink``. ``size``: bytes on their way.

    Bytes come out as they went in: in order, each once, in pieces that have nothing to do with
    those that were written. Bytes may only come late, and the last ones may never come.

    ``dead``: nothing comes out any more, and neither end notices. ``broken``: what is written is
    lost; what was written before, and the end of the connection, still comes.
    """

    def __init__(self, network: Medium, source: SimConnection, sink: SimConnection) -> None:
        self.size = 0
        self.dead = False
        self.broken = False
        self._network = network
        self._world = network.world
        self._random = network.random
        self._source = source
        self._sink = sink
        #: Arrival, time of writing, bytes.
        self._queue: deque[tuple[int, int, bytes]] = deque()
        self._last_us = 0
        self._stalled_until_us = 0
        self._timer: Timer | None = None
        self._waited = False

    # -- what the source does ----------------------------------------------------------------

    def push(self, data: bytes) -> None:
        """Send bytes on their way; lost when the pipe is broken."""
        if self.broken or not data:
            return
        self.size += len(data)
        source, sink = self._source, self._sink
        self._append(self._network.transit_us(source.local_ip, sink.local_ip, len(data)), data)

    def end(self, delay_us: int = 0) -> None:
        """The sink notices the end of the connection, after all bytes."""
        if not self.broken:
            self.broken = True
            if self.dead:
                self._queue.clear()
            source, sink = self._source, self._sink
            self._append(
                delay_us + self._network.transit_us(source.local_ip, sink.local_ip, 0), _END
            )

    def lose_tail(self) -> None:
        """Bytes that did not arrive yet are lost, from some place on."""
        if self.broken:
            return
        keep = self._random.randint(0, len(self._queue))
        while len(self._queue) > keep:
            self.size -= len(self._queue.pop()[2])

    def stall(self, us: int) -> None:
        """Let no bytes out for this time."""
        self._stalled_until_us = self._world.now_us + us

    def kick(self) -> None:
        """Something that held bytes back may be over."""
        if self._timer is None and self._queue:
            at_us = max(self._queue[0][0], self._stalled_until_us)
            self._timer = self._world.at(max(0, at_us - self._world.now_us), self._arrive)

    def _append(self, delay_us: int, data: bytes) -> None:
        now_us = self._world.now_us
        self._last_us = max(self._last_us, now_us + delay_us)
        self._queue.append((self._last_us, now_us, data))
        self.kick()

    # -- what the sink notices ---------------------------------------------------------------

    def _held(self) -> bool:
        """Whether something keeps bytes from coming out; :meth:`kick` is called when it ends."""
        if self._network.is_frozen(self._sink.local_ip):
            return True
        if self.broken and not self._queue[0][2]:
            return False  # found out here, without a message
        return self.dead or self._network.is_cut(self._source.local_ip, self._sink.local_ip)

    def _arrive(self) -> None:
        self._timer = None
        if not self._sink.open:
            self._queue.clear()
            self.size = 0
            return
        if self._world.now_us < self._stalled_until_us:
            self.kick()
            return
        if self._held():
            return
        odd = self._random.random()
        if odd < _ODD and not self._waited:
            self._waited = True  # more comes along
            self._timer = self._world.at(self._random.randint(1, _ODD_US_MAX), self._arrive)
            return
        self._waited = False
        if not self._queue[0][2]:
            self._queue.clear()
            self._sink.lose()
            return
        sent_us, data = self._read(odd > 1 - _ODD)
        self._sink.take(sent_us, data)
        self.kick()

    def _read(self, split: bool) -> tuple[int, bytes]:
        """What arrived by now, or the beginning of it."""
        queue = self._queue
        now_us = self._world.now_us
        if self._source.carries_messages:
            self._world.record_transit(now_us - queue[0][1])
        sent_us = 0
        pieces: list[bytes] = []
        size = 0
        while queue and queue[0][0] <= now_us and queue[0][2]:
            _, sent_us, piece = queue.popleft()
            pieces.append(piece)
            size += len(piece)
            if size >= READ_BYTES_MAX:
                break
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        place = self._random.randrange(1, size) if split and size > 1 else READ_BYTES_MAX
        if place < size:
            later_us = now_us + self._random.randint(1, _ODD_US_MAX)
            queue.appendleft((later_us, sent_us, data[place:]))
            data = data[:place]
        self.size -= len(data)
        return sent_us, data


def _nothing(*_arguments: object) -> None:
    """Ignore what a connection reports until its owner has set the callbacks."""


class SimConnection:
    """One end of a connection. ``on_data`` and ``on_lost`` are set by its owner at once.

    ``caller``: this is the end that connected. ``port``: where it connected to. ``open``: this side
    neither closed it nor noticed its end. ``carries_messages``: those of the cluster bus.
    ``messages``: those sent here and not received yet. ``sent_us``: when the bytes received last
    were written. ``out``: the direction to the other end. ``other``: that end.
    """

    other: SimConnection
    out: ByteStream

    def __init__(
        self, network: Medium, serial: int, local_ip: bytes, peer_ip: bytes, port: int
    ) -> None:
        self.local_ip = local_ip
        self.peer_ip = peer_ip
        self.port = port
        self.serial = serial
        self.caller = False
        self.open = True
        self.carries_messages = False
        self.sent_us = -1
        self.messages: deque[MessageKey] = deque()
        self.on_data: Callable[[bytes], None] = _nothing
        self.on_lost: Callable[[], None] = _nothing
        self._network = network
        self._refused = False

    @property
    def unread_bytes(self) -> int:
        """Bytes that were written here and that the other side has not read."""
        return self.out.size

    def write(self, data: bytes) -> None:
        """Send bytes; on a connection that has ended they are lost, and this side notices later."""
        if not self.open or not data:
            return
        if self.carries_messages:
            self._network.write_messages(self, data)
        else:
            self.out.push(data)
        if self.out.broken and not self._refused:
            self._refused = True
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
        """Let this side notice that the connection is gone."""
        if self.open:
            self.open = False
            self.out.broken = True
            self._network.world.trace("lost", self.serial, self.local_ip.decode())
            self._network.tidy(self)
            self.on_lost()

    def vanish(self) -> None:
        """The program at this end is gone: nothing is reported to it any more."""
        self.open = False
        self.on_data = self.on_lost = _nothing
        self._network.tidy(self)
