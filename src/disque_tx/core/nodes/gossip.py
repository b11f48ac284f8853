"""Which nodes to ping, and what to gossip about others (cluster protocol, sections 8.4 and 8.5).

Every PING, PONG and MEET carries entries on a few random nodes, so that news reaches all nodes
without any node sending to all. Failing nodes come first: a majority can only agree on what was
reported. They are included even while there is no link to them, or no address; other nodes are not,
since what this node knows of them may be out of date.

``random``: a number in [0, 1) per call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.core.nodes.failure import failing
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.bus import Gossip, GossipEntry
from disque_tx.messages.limits import U16_MAX, U32_MAX
from disque_tx.messages.nodes import HANDSHAKE, MYSELF, NOADDR, NodeEntry

#: How many random nodes compete for the PING of each second.
CANDIDATES: Final = 5
_ENTRIES_MIN: Final = 3
_DRAWS_PER_ENTRY: Final = 3


def draw(entries: list[NodeEntry], random: Callable[[], float]) -> NodeEntry:
    """Any one of the entries, of which there must be one."""
    return entries[int(random() * len(entries))]


def longest_silent(entries: list[NodeEntry], random: Callable[[], float]) -> NodeEntry | None:
    """Of some random nodes that could be pinged, the one whose last PONG is the oldest."""
    best: NodeEntry | None = None
    for _ in range(CANDIDATES):
        entry = draw(entries, random)
        if entry.link is None or entry.ping_sent_ms != 0 or entry.flags & (MYSELF | HANDSHAKE):
            continue
        if best is None or entry.pong_received_ms < best.pong_received_ms:
            best = entry
    return best


def silent(entry: NodeEntry, now_ms: i64, node_timeout_ms: i64) -> bool:
    """The node must be pinged: nothing came from it for half the time-out."""
    if entry.link is None or entry.ping_sent_ms != 0:
        return False
    never = entry.pong_received_ms == 0
    return never or now_ms - entry.pong_received_ms > node_timeout_ms // 2


def selection(entries: list[NodeEntry], random: Callable[[], float]) -> list[NodeEntry]:
    """The nodes that the next message has entries on; ``entries`` is the whole table.

    The more nodes there are, the more failing ones are included at once. Of healthy nodes a few are
    enough: otherwise the traffic of an idle cluster would grow with the square of its size.
    """
    fresh: i64 = len(entries) - 2
    wanted: i64 = min(max(_ENTRIES_MIN, len(entries) // 10), fresh)
    draws: i64 = _DRAWS_PER_ENTRY * wanted
    well: i64 = 0
    chosen: list[NodeEntry] = []
    while draws > 0 and fresh > 0 and len(chosen) < wanted:
        draws -= 1
        entry = draw(entries, random)
        if entry.flags & MYSELF or (draws > 2 * wanted and not failing(entry)):
            continue
        if not _worth_gossiping(entry):
            fresh -= 1
        elif entry not in chosen and (failing(entry) or well < _ENTRIES_MIN):
            chosen.append(entry)
            fresh -= 1
            if not failing(entry):
                well += 1
    return chosen


def _worth_gossiping(entry: NodeEntry) -> bool:
    if entry.flags & HANDSHAKE:
        return False
    if entry.flags & NOADDR:
        return failing(entry)
    return entry.link is not None or entry.connecting or failing(entry)


def news(kind: i64, membership: Membership, random: Callable[[], float]) -> Gossip:
    """A PING, PONG or MEET, by ``kind``, with gossip on others."""
    chosen = selection(list(membership.nodes.values()), random)
    return Gossip(kind, [described(entry, membership.unix_ms) for entry in chosen])


def described(entry: NodeEntry, unix_ms: i64) -> GossipEntry:
    """The gossip on a node; ``unix_ms``: the wall clock when the steady clock was zero."""
    row = GossipEntry(entry.id, entry.ip, entry.port, entry.flags & U16_MAX)
    row.ping_sent_ms = _unix_ms(entry.ping_sent_ms, unix_ms)
    row.pong_received_ms = _unix_ms(entry.pong_received_ms, unix_ms)
    row.bus_port = entry.bus_port
    return row


def _unix_ms(steady_ms: i64, unix_ms: i64) -> i64:
    return (steady_ms + unix_ms) & U32_MAX if steady_ms else 0
