"""When a node counts as failing, and when as failed (cluster protocol, sections 8.4 and 8.6).

One node alone cannot tell a dead peer from a broken connection, so there are two steps:

1. PFAIL: this node's own opinion, after a PING went unanswered for the node time-out.
2. FAIL: a majority of the cluster, this node included, holds that opinion at the same time. Nodes
   that joined after the peer was last seen have never known it and have no vote: so a node that
   was lost is found to have failed although another one has come in its place.

Others may not know the peer though they joined before: it was lost before they could meet it. They
never report it, neither as failing nor as well. So this node's opinion suffices when nobody has
contradicted it for ten time-outs, while it is in touch with a majority of those that have a vote.
When another node answers at the address of the peer, it is not cut off, and all have a vote.

A PONG clears both at once. Everything here decides on one entry and knows no table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.nodes import FAIL, HANDSHAKE, MYSELF, NOADDR, PFAIL, NodeEntry

#: Node time-outs after which a suspicion that nobody has contradicted suffices.
UNCONTRADICTED: Final = 10

_FAILING = PFAIL | FAIL


def failing(entry: NodeEntry) -> bool:
    """The node is suspected or known to be down."""
    return entry.flags & _FAILING != 0


def overdue(entry: NodeEntry, now_ms: i64, node_timeout_ms: i64) -> bool:
    """Whether a PING to the node went unanswered for so long that it becomes suspected now."""
    waiting = entry.ping_sent_ms != 0 and now_ms - entry.ping_sent_ms > node_timeout_ms
    return waiting and not failing(entry)


def link_is_stale(entry: NodeEntry, now_ms: i64, node_timeout_ms: i64) -> bool:
    """The link is old enough to have worked, yet no PONG comes on it: a new one may work."""
    link = entry.link
    if link is None or entry.ping_sent_ms == 0:
        return False
    return (
        now_ms - link.created_ms > node_timeout_ms
        and entry.pong_received_ms <= entry.ping_sent_ms  # after a restart both are the same
        and now_ms - entry.ping_sent_ms > node_timeout_ms // 2
    )


def _has_vote(entry: NodeEntry, other: NodeEntry) -> bool:
    """Whether the other node can know if the first one fails: it is a member that did not join
    after that one last answered here, or it reports on it."""
    if other.flags & HANDSHAKE:
        return False
    seen_ms = entry.pong_received_ms
    return seen_ms == 0 or other.created_ms <= seen_ms or other.id in entry.reports


def voters(entry: NodeEntry, nodes: Iterable[NodeEntry]) -> i64:
    """How many of these nodes can know whether the node fails, itself included."""
    count: i64 = 0
    for other in nodes:
        if _has_vote(entry, other):
            count += 1
    return count


def majority_answers(entry: NodeEntry, nodes: Iterable[NodeEntry], since_ms: i64) -> bool:
    """A majority of those that have a vote on the suspected node, this one included, has answered
    since then. All members have one if the address of the node is another's."""
    replaced = entry.flags & NOADDR != 0
    size: i64 = 0
    answering: i64 = 0
    for other in nodes:
        if _has_vote(entry, other) or (replaced and not other.flags & HANDSHAKE):
            size += 1
            if other.flags & MYSELF or other.pong_received_ms >= since_ms:
                answering += 1
    return answering >= size // 2 + 1


def majority_agrees(entry: NodeEntry, size: i64, now_ms: i64, node_timeout_ms: i64) -> bool:
    """A majority of ``size`` nodes, this one included, finds that the suspected node fails.

    Reports older than twice the time-out no longer count and are dropped.
    """
    if entry.flags & _FAILING != PFAIL:
        return False
    oldest_ms = now_ms - 2 * node_timeout_ms
    entry.reports = {who: when for who, when in entry.reports.items() if when >= oldest_ms}
    return len(entry.reports) + 1 >= size // 2 + 1


def mark_failed(entry: NodeEntry, now_ms: i64) -> None:
    """From now on the node counts as failed."""
    entry.flags = (entry.flags & ~PFAIL) | FAIL
    entry.suspected_ms = 0
    entry.failed_ms = now_ms


def clear_failure(entry: NodeEntry) -> bool:
    """The node answered, so it does not fail; returns whether it was thought to."""
    news = failing(entry)
    entry.flags &= ~_FAILING
    entry.suspected_ms = 0
    return news
