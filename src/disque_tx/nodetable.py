"""One row of the node table, its flags, and the text line that shows it.

The same line is CLUSTER NODES' answer and the nodes file's format (client protocol, section 12.1;
cluster protocol, sections 8.1 and 9).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

PFAIL: Final = 1
FAIL: Final = 2
MYSELF: Final = 4
HANDSHAKE: Final = 8
NOADDR: Final = 16
MEET: Final = 32
LEAVING: Final = 128

#: In the order in which they are written.
_FLAG_NAMES: Final = (
    (MYSELF, b"myself"),
    (PFAIL, b"fail?"),
    (FAIL, b"fail"),
    (HANDSHAKE, b"handshake"),
    (NOADDR, b"noaddr"),
    (LEAVING, b"leaving"),
)
_NO_FLAGS: Final = b"noflags"


class NodeEntry:
    """What is known of one node of the cluster (cluster protocol, section 1.2).

    ``id``: 40 bytes. ``ip``: normal text form, empty while unknown. ``port``: for clients.
    ``ping_sent_ms``: unix time of the unanswered PING, 0 when there is none. ``pong_received_ms``:
    unix time, 0 for never. ``created_ms``: steady clock. ``connected``: our own link to it is up.
    """

    __slots__ = (
        "id",
        "ip",
        "port",
        "flags",
        "ping_sent_ms",
        "pong_received_ms",
        "created_ms",
        "connected",
    )

    def __init__(self, node_id: bytes, ip: bytes, port: i64, flags: i64, created_ms: i64) -> None:
        self.id: bytes = node_id
        self.ip: bytes = ip
        self.port: i64 = port
        self.flags: i64 = flags
        self.ping_sent_ms: i64 = 0
        self.pong_received_ms: i64 = 0
        self.created_ms: i64 = created_ms
        self.connected: bool = False

    def line(self) -> bytes:
        """The node as one line of text, line end included."""
        up = self.connected or self.flags & MYSELF != 0
        return b"%s %s:%d %s %d %d %s\n" % (
            self.id,
            self.ip,
            self.port,
            flags_text(self.flags),
            self.ping_sent_ms,
            self.pong_received_ms,
            b"connected" if up else b"disconnected",
        )


def flags_text(flags: i64) -> bytes:
    """The names of the flags that have one, joined by commas, or ``noflags``."""
    names = [name for bit, name in _FLAG_NAMES if flags & bit]
    return b",".join(names) if names else _NO_FLAGS


def parse_flags(text: bytes) -> int:
    """The inverse of :func:`flags_text`, in any case; ``ValueError`` names an unknown word."""
    by_name = {name: bit for bit, name in _FLAG_NAMES}
    by_name[_NO_FLAGS] = 0
    flags = 0
    for word in text.split(b","):
        bit = by_name.get(word.lower())
        if bit is None:
            raise ValueError(f"unknown flag {word.decode('latin-1')!r}")
        flags |= bit
    return flags
