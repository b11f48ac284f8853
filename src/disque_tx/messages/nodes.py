"""One row of the node table, its flags, and the text line that shows it.

The same line is CLUSTER NODES' answer and the nodes file's format (client protocol, section 12.1;
cluster protocol, sections 8.1 and 9).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.messages.bus import BusSink

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
    ``bus_port``: 0 when it is ``port`` + 10000. All times are those of the steady clock.
    ``ping_sent_ms``: the first unanswered PING, 0 when there is none. ``pong_received_ms``: the
    last PONG, 0 for never. ``suspected_ms``: since when this node suspects it and no other one has
    reported it as well, 0 while it does not. ``failed_ms``: when FAIL was set. ``link``: our own
    connection to it while it is up. ``connecting``: one is being made. ``attempts``: connections in
    a row that failed; ``retry_ms``: none is made before. ``reports``: ID of a node that reports
    that this one fails → when it last did. ``numbers``: it numbers its links, which the original
    does not: it runs this program. ``start``: the number of the latest link of the process that is
    accepted as this node, 0 for an original; ``start_seen_ms``: when that last sent a message.
    ``duplicate_start``: the same of another process under its ID; ``duplicate_first_ms``,
    ``duplicate_ms``, ``duplicate_ip``: since when, when last, and from where that sends;
    ``contested``: it does so now (see ``duplicateids``). ``newest_link``: the number that it gave
    of the latest link that it made to this node. ``clock_ms``: what its wall clock showed when the
    steady clock was zero, in unix milliseconds; ``clock_seen_ms``: when that was seen, 0 for never.
    ``discovered``: a handshake that discovery has begun; ``answered_by``: ID of the node that
    answered it, but is in the table already, or of another cluster.
    """

    __slots__ = (
        "id",
        "ip",
        "port",
        "flags",
        "ping_sent_ms",
        "pong_received_ms",
        "bus_port",
        "suspected_ms",
        "failed_ms",
        "created_ms",
        "link",
        "connecting",
        "attempts",
        "retry_ms",
        "reports",
        "numbers",
        "start",
        "start_seen_ms",
        "duplicate_start",
        "duplicate_first_ms",
        "duplicate_ms",
        "duplicate_ip",
        "contested",
        "newest_link",
        "clock_ms",
        "clock_seen_ms",
        "discovered",
        "answered_by",
    )

    def __init__(self, node_id: bytes, ip: bytes, port: i64, flags: i64, created_ms: i64) -> None:
        self.id: bytes = node_id
        self.ip: bytes = ip
        self.port: i64 = port
        self.flags: i64 = flags
        self.ping_sent_ms: i64 = 0
        self.pong_received_ms: i64 = 0
        self.bus_port: i64 = 0
        self.suspected_ms: i64 = 0
        self.failed_ms: i64 = 0
        self.created_ms: i64 = created_ms
        self.link: Link | None = None
        self.connecting: bool = False
        self.attempts: i64 = 0
        self.retry_ms: i64 = 0
        self.reports: dict[bytes, int] = {}
        self.numbers: bool = False
        self.start: i64 = 0
        self.start_seen_ms: i64 = 0
        self.duplicate_start: i64 = 0
        self.duplicate_first_ms: i64 = 0
        self.duplicate_ms: i64 = 0
        self.duplicate_ip: bytes = b""
        self.contested: bool = False
        self.newest_link: i64 = 0
        self.clock_ms: i64 = 0
        self.clock_seen_ms: i64 = 0
        self.discovered: bool = False
        self.answered_by: bytes = b""

    @property
    def connected(self) -> bool:
        """Our own link to it is up."""
        return self.link is not None

    @property
    def ready(self) -> bool:
        """Whether it takes what our own link to it brings, and can answer: a node that numbers its
        links has made one to this node. Until then it may not know this one, and drops messages."""
        return self.link is not None and (self.newest_link != 0 or not self.numbers)

    def line(self, unix_ms: i64) -> bytes:
        """The node as one line of text, line end included.

        ``unix_ms``: the wall clock when the steady clock was zero.
        """
        up = self.connected or self.flags & MYSELF != 0
        return b"%s %s:%d %s %d %d %s\n" % (
            self.id,
            self.ip,
            self.port,
            flags_text(self.flags),
            self.ping_sent_ms + unix_ms if self.ping_sent_ms else 0,
            self.pong_received_ms + unix_ms if self.pong_received_ms else 0,
            b"connected" if up else b"disconnected",
        )


class Link:
    """One connection of the bus.

    ``sink``: where messages sent on it go. ``entry``: the node that we connected to; ``None`` when
    the other side connected. ``peer_id``: the node ID that the other side uses, empty until a node
    that we know has sent a message. ``peer_ip``, ``local_ip``: its two ends. ``created_ms``: steady
    clock, when it was up. ``epoch``, ``serial``: its number among all links of this node, and how
    many numbered messages were sent on it (see ``messages.bus``). ``number``: the other side's
    number of a link that it made, 0 if it gave none. ``features``: what it can do besides what the
    original can, see ``messages.bus``; 0 until it has shown that. ``ignored``: the other side is
    another process than the node whose ID it uses.
    """

    __slots__ = (
        "sink",
        "entry",
        "peer_id",
        "peer_ip",
        "local_ip",
        "created_ms",
        "epoch",
        "serial",
        "number",
        "features",
        "ignored",
    )

    def __init__(
        self,
        sink: BusSink,
        entry: NodeEntry | None,
        peer_ip: bytes,
        local_ip: bytes,
        created_ms: i64,
        epoch: i64,
    ) -> None:
        self.sink: BusSink = sink
        self.entry: NodeEntry | None = entry
        self.peer_id: bytes = b""
        self.peer_ip: bytes = peer_ip
        self.local_ip: bytes = local_ip
        self.created_ms: i64 = created_ms
        self.epoch: i64 = epoch
        self.serial: i64 = 0
        self.number: i64 = 0
        self.features: i64 = 0
        self.ignored: bool = False


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
