"""Our own links to other nodes: asking for connections, with backoff, and dropping them.

Cluster protocol, sections 2, 8.4 and 8.7. Making a link takes time, and what it was made for may be
gone by then: the node was forgotten, or lives elsewhere. Connections that fail are repeated less
and less often, up to every two seconds, with some jitter so that many nodes do not connect at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, trait

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.nodes import NOADDR, Link, NodeEntry

_RETRY_MS_MIN: Final = 100
_RETRY_MS_MAX: Final = 2_000
_DOUBLINGS_MAX: Final = 10
_JITTER: Final = 0.25


@trait
class LinkWatcher:
    """Who needs to know which nodes can be reached."""

    def links_changed(self) -> None:
        """Nodes may have come or gone; ten times a second, and when one shows what it can do."""
        raise NotImplementedError

    def link_lost(self, link: Link) -> None:
        """A link broke, of whichever side."""


class Links:
    """What is wanted goes to ``connects`` and ``hangups`` of the outbox; times as everywhere.

    ``random``: a number in [0, 1) per call.
    """

    __slots__ = ("_membership", "_outbox", "_random", "_moved")

    def __init__(self, membership: Membership, outbox: Outbox, random: Callable[[], float]) -> None:
        self._membership: Membership = membership
        self._outbox: Outbox = outbox
        self._random: Callable[[], float] = random
        #: Nodes whose address changed while a connection to the old one was being made.
        self._moved: set[NodeEntry] = set()

    def call(self, entry: NodeEntry, now_ms: i64) -> None:
        """Ask for a link to the node, unless one is being made or it is too early for the next
        try."""
        if entry.connecting or now_ms < entry.retry_ms:
            return
        entry.connecting = True
        if entry.ping_sent_ms == 0:
            entry.ping_sent_ms = now_ms
        self._outbox.connects.append(entry)

    def up(self, entry: NodeEntry, link: Link) -> bool:
        """Record that the link is made; ``False`` if it has become superfluous, and will be
        closed."""
        entry.connecting = False
        moved = entry in self._moved
        self._moved.discard(entry)
        listed = self._membership.nodes.get(entry.id) is entry
        if moved or entry.link is not None or not listed:
            self.close(link)
            return False
        entry.link = link
        return True

    def failed(self, entry: NodeEntry, now_ms: i64, node_timeout_ms: i64) -> None:
        """The link cannot be made."""
        entry.connecting = False
        if entry in self._moved:
            self._moved.discard(entry)
        else:
            self._back_off(entry, now_ms, node_timeout_ms)

    def lost(self, link: Link, now_ms: i64, node_timeout_ms: i64) -> None:
        """A link broke, of whichever side; one on which no message ever came counts as a
        failure."""
        entry = link.entry
        if entry is not None and entry.link is link:
            entry.link = None
            if not link.peer_id:
                self._back_off(entry, now_ms, node_timeout_ms)

    def _back_off(self, entry: NodeEntry, now_ms: i64, node_timeout_ms: i64) -> None:
        entry.attempts = min(entry.attempts + 1, _DOUBLINGS_MAX)
        longest_ms: i64 = min(max(node_timeout_ms // 8, _RETRY_MS_MIN), _RETRY_MS_MAX)
        wait_ms: i64 = min(i64(_RETRY_MS_MIN) << entry.attempts, longest_ms)
        entry.retry_ms = now_ms + wait_ms + int(self._random() * _JITTER * int(wait_ms))

    def close(self, link: Link) -> None:
        """Have a link closed, of whichever side."""
        self._outbox.hangups.append(link)

    def hang_up(self, entry: NodeEntry) -> None:
        """Drop our link to the node, if there is one."""
        link = entry.link
        if link is not None:
            entry.link = None
            self.close(link)

    def drop(self, entry: NodeEntry) -> None:
        """Take a node out of the table, and its link down."""
        self._membership.remove(entry)
        self.hang_up(entry)

    def readdress(self, entry: NodeEntry, ip: bytes, port: i64, bus_port: i64) -> None:
        """Connect to the node at another address from now on, at once (section 8.7)."""
        entry.ip = ip
        entry.port = port
        entry.bus_port = bus_port
        entry.flags &= ~NOADDR
        self.reset_backoff(entry)
        if entry.connecting:
            self._moved.add(entry)
        self.hang_up(entry)
        self._membership.refresh()
        self._membership.changed = True

    def lose_address(self, entry: NodeEntry) -> None:
        """Another node answers at this node's address (section 7.1 B)."""
        entry.flags |= NOADDR
        entry.ip = b""
        entry.port = 0
        entry.bus_port = 0
        self.hang_up(entry)
        self._membership.changed = True

    def renew(self, entry: NodeEntry | None, later: Link) -> None:
        """A node was reached on ``later``, though that link was made for another one. It takes its
        own link for replaced now, if that is older, and what comes on it for late: make a new one.
        """
        if entry is not None and entry.link is not None and entry.link.epoch < later.epoch:
            self.hang_up(entry)

    def reset_backoff(self, entry: NodeEntry) -> None:
        """The node is alive: end the backoff of earlier failures."""
        entry.attempts = 0
        entry.retry_ms = 0
