"""Requests that look at queues, empty them, and wait for the end of jobs, with their values.

Only nodes of disque-tx have these commands; others refuse them as unknown. The functions become
methods of the clients as those of :mod:`disque_tx.client.requests.encoding` do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from disque_tx.client.requests import replies
from disque_tx.client.requests.encoding import Name, Request, Word, encoded
from disque_tx.client.requests.replies import MalformedReply, Named

#: For how long a node waits for the answers of others, with some more for its own work.
_CLUSTER_S = 2.0


@attrs.frozen
class QueueCounts:
    """Where the jobs of a queue are, at one node or in the cluster, by QCOUNT and QLIST.

    ``backoff``: waiting for another attempt. ``in_flight``: fetched and not acknowledged. ``dead``:
    dead letters. ``oldest_ms``: for how long the first job has been queued, 0 without one.
    ``in_per_s``, ``out_per_s``: the mean of ten seconds. ``loaded``: from the log, since a restart,
    and not queued again yet; 0 from nodes that do not count them.
    """

    name: str
    queued: int
    delayed: int
    backoff: int
    in_flight: int
    dead: int
    blocked_clients: int
    oldest_ms: int
    in_per_s: float
    out_per_s: float
    loaded: int = 0


@attrs.frozen
class CountedQueue:
    """One queue. ``nodes``: how many are counted; ``nodes_missing``: the IDs of those that are
    not."""

    counts: QueueCounts
    nodes: int
    nodes_missing: tuple[str, ...]


@attrs.frozen
class QueuePage:
    """A page of QLIST. ``cursor``: for the next page, ``None`` on the last one."""

    queues: tuple[QueueCounts, ...]
    cursor: bytes | None
    nodes: int
    nodes_missing: tuple[str, ...]


@attrs.frozen
class Flushed:
    """What QFLUSH did. ``jobs``: how many are gone. ``nodes_missing``: the IDs of nodes whose jobs
    may still be there."""

    jobs: int
    nodes: int
    nodes_missing: tuple[str, ...]


# -- requests ------------------------------------------------------------------------------------


def queue_counts(queue: Name, cluster: bool = False) -> Request[CountedQueue]:
    """QCOUNT: how many jobs of a queue there are, and where.

    ``cluster``: at all nodes that answer within a second, not only at this one.
    """
    name = encoded(queue)
    words: list[Word] = ["QCOUNT", name, *_cluster(cluster)]
    shown = name.decode("utf-8", "surrogateescape")
    return Request(tuple(words), lambda reply: counted(shown, reply), _wait_s(cluster), True)


def list_queues(
    match: Name | None = None,
    sort: str = "queued",
    count: int = 100,
    cursor: bytes | None = None,
    cluster: bool = False,
) -> Request[QueuePage]:
    """QLIST: a page of queues, with their counts.

    ``match``: a glob. ``sort``: queued, oldest, name or rate. ``count``: up to 1000 queues.
    ``cursor``: of the page before. ``cluster``: of all nodes; further pages are only to be had by
    name then.
    """
    words: list[Word] = ["QLIST", "SORT", sort, "COUNT", count]
    if match is not None:
        words += ("MATCH", encoded(match))
    if cursor is not None:
        words += ("CURSOR", cursor)
    words += _cluster(cluster)
    return Request(tuple(words), page, None, True)


def flush_queue(queue: Name, states: Iterable[str] = (), cluster: bool = False) -> Request[Flushed]:
    """QFLUSH: end the jobs of a queue, as if they had been acknowledged.

    ``states``: queued (if none is named), delayed, backoff, in-flight, loaded,
    any. ``cluster``: at all nodes
    that answer within a second.
    """
    words: list[Word] = ["QFLUSH", encoded(queue), "WITHDETAILS", *_cluster(cluster)]
    for state in states:
        words += ("STATE", state)
    return Request(tuple(words), flushed, None)


def wait_job(job_id: Name, timeout_ms: int = 0) -> Request[str | None]:
    """WAITJOB: wait until a job has ended; returns ``acked``, ``deleted``, ``expired`` or ``dead``,
    and ``None`` after ``timeout_ms``, 0 for as long as it takes.

    :raises UnknownJob: this node has no copy.
    """
    words: tuple[Word, ...] = ("WAITJOB", job_id)
    if timeout_ms:
        words += ("TIMEOUT", timeout_ms)
    return Request(words, ending, timeout_ms / 1000 if timeout_ms else None, True)


def _cluster(cluster: bool) -> list[Word]:
    return ["CLUSTER"] if cluster else []


def _wait_s(cluster: bool) -> float:
    return _CLUSTER_S if cluster else 0.0


# -- replies -------------------------------------------------------------------------------------


def counted(name: str, reply: Any) -> CountedQueue:
    """QCOUNT."""
    of = Named(reply)
    return CountedQueue(_counts(name, of), *_nodes(of))


def page(reply: Any) -> QueuePage:
    """QLIST."""
    of = Named(reply)
    cursor = of("cursor", replies.data)
    return QueuePage(of("queues", _rows), None if cursor == b"0" else cursor, *_nodes(of))


def flushed(reply: Any) -> Flushed:
    """QFLUSH with WITHDETAILS."""
    of = Named(reply)
    return Flushed(of("flushed", replies.integer), *_nodes(of))


def ending(reply: Any) -> str | None:
    """WAITJOB."""
    how = replies.optional(reply, replies.text)
    return None if how is None else how.lower()


def _rows(reply: Any) -> tuple[QueueCounts, ...]:
    rows = [Named(row) for row in replies.array(reply)]
    return tuple([_counts(row("name", replies.text), row) for row in rows])


def _counts(name: str, of: Named) -> QueueCounts:
    return QueueCounts(
        name=name,
        queued=of("queued", replies.integer),
        delayed=of("delayed", replies.integer),
        backoff=of("backoff", replies.integer),
        in_flight=of("in-flight", replies.integer),
        dead=of("dead", replies.integer),
        blocked_clients=of("blocked-clients", replies.integer),
        oldest_ms=of("oldest-ms", replies.integer),
        in_per_s=of("in-per-s", _rate),
        out_per_s=of("out-per-s", _rate),
        loaded=of("loaded", replies.integer) if "loaded" in of else 0,
    )


def _nodes(of: Named) -> tuple[int, tuple[str, ...]]:
    return of("nodes", replies.integer), of("nodes-missing", replies.texts)


def _rate(reply: Any) -> float:
    digits = replies.data(reply)
    if not digits.replace(b".", b"", 1).isdigit():
        raise MalformedReply("a rate", reply)
    return float(digits)
