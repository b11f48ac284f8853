"""When a node counts as failing, and when as failed (cluster protocol, sections 8.4 and 8.6).

One node alone cannot tell a dead peer from a broken connection, so there are two steps:

1. PFAIL: this node's own opinion, after a PING went unanswered for the node time-out.
2. FAIL: a majority of the cluster, this node included, holds that opinion at the same time. Nodes
   that joined after the peer was last seen have never known it and have no vote: so a node that
   was lost is found to have failed although another one has come in its place.

A PONG clears both at once. Everything here decides on one entry and knows no table.
"""

from __future__ import annotations

from collections.abc import Iterable

from mypy_extensions import i64

from disque_tx.messages.nodes import FAIL, HANDSHAKE, PFAIL, NodeEntry

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


def voters(entry: NodeEntry, nodes: Iterable[NodeEntry]) -> i64:
    """How many of these nodes can know whether the node fails: the members, itself included, but
    for those that joined after it last answered here, and do not report on it."""
    seen_ms = entry.pong_received_ms
    count: i64 = 0
    for other in nodes:
        if not other.flags & HANDSHAKE:
            if seen_ms == 0 or other.created_ms <= seen_ms or other.id in entry.reports:
                count += 1
    return count


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
    entry.failed_ms = now_ms


def clear_failure(entry: NodeEntry) -> bool:
    """The node answered, so it does not fail; returns whether it was thought to."""
    news = failing(entry)
    entry.flags &= ~_FAILING
    return news
