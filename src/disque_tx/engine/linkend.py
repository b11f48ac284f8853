"""One end of a connection to another node: what the node needs of it, and who does the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mypy_extensions import i64

from disque_tx.engine.hotsocket import RECEIVE_SOME, SocketOwner, send_now
from disque_tx.messages.nodes import Link, NodeEntry
from disque_tx.wire.bus.parser import STRANGER_BYTES_MAX, BusParser
from disque_tx.wire.bus.writer import BusWriter


class LinkConnection(SocketOwner, Protocol):
    """The connection itself."""

    @property
    def paused(self) -> bool:
        """The socket takes nothing now."""

    def local_ip(self) -> bytes:
        """The address of this end."""

    def close(self) -> None:
        """Close it, after what was sent."""

    def drop(self, why: str) -> None:
        """Close it now, because of what the other side did; it is lost then."""

    def overflowed(self) -> None:
        """The other side does not read: close it now."""

    def faulty(self, error: Exception) -> None:
        """A message met a fault of this program: close it now."""


class LinkEnd:
    """``entry``: the node that we connected to, ``None`` when the other side connected. ``link``:
    the connection as the node knows it, while it is up. ``trusted``: a known node has sent a
    message on it. ``peer_ip``: where the other end is. ``recv`` and ``send``: receive and send at
    once what the socket has and takes; ``None`` when only the connection can. ``room``: bytes to
    receive next.
    """

    __slots__ = (
        "connection",
        "entry",
        "link",
        "parser",
        "peer_ip",
        "recv",
        "room",
        "send",
        "trusted",
        "writer",
    )

    def __init__(
        self,
        connection: LinkConnection,
        entry: NodeEntry | None,
        peer_ip: bytes,
        writer: BusWriter,
    ) -> None:
        self.connection: LinkConnection = connection
        self.entry: NodeEntry | None = entry
        self.link: Link | None = None
        self.peer_ip: bytes = peer_ip
        self.trusted: bool = False
        self.parser: BusParser = BusParser(STRANGER_BYTES_MAX)
        self.writer: BusWriter = writer
        self.recv: Callable[[int], bytes] | None = None
        self.send: Callable[[bytes], int] | None = None
        self.room: i64 = RECEIVE_SOME

    def flush(self) -> None:
        """Send what the writer holds."""
        send_now(self.send, self.writer.take(), self.connection)
