"""Counts of queues, at this node or at all nodes: lists, one queue, and figures for autoscalers."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.protocols.http.api.base.values import (
    NODES,
    NUMBER,
    REAL,
    ROOT,
    TEXT,
    array,
    member_name,
    nodes_value,
    schema,
    text,
    url,
)
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.protocols.http.server.streaming import listing

_PAGE_MAX: Final = 1_000
#: A name is quoted, and written twice.
_READING: Final = 4
#: Names of queues are a part of cursors.
CURSOR_BYTES: Final = 4 * 1024
_SORTS: Final = ("queued", "oldest", "name", "rate")
_CLUSTER: Final = Parameter(
    "cluster", "1: the sums of all nodes that answer within a second", "integer", 0, 0, 1
)
_COUNTS: Final = {
    "queued": NUMBER, "delayed": NUMBER, "backoff": NUMBER, "in_flight": NUMBER, "dead": NUMBER,
    "blocked_clients": NUMBER, "oldest_ms": NUMBER, "in_per_s": REAL, "out_per_s": REAL,
    "loaded": NUMBER,
}  # fmt: skip


def cluster_words(exchange: Exchange) -> list[bytes]:
    """Who is asked: all nodes, or all processes of this daemon."""
    return [b"CLUSTER" if exchange.number(_CLUSTER.name) else b"PROCESSES"]


def _counts(reply: dict[bytes, Any]) -> dict[str, Any]:
    values = {member_name(name): value for name, value in reply.items()}
    counts = {name: values[name] for name in _COUNTS}
    for rate in ("in_per_s", "out_per_s"):
        counts[rate] = float(counts[rate])
    return counts


def _row(exchange: Exchange, name: bytes, reply: dict[bytes, Any]) -> dict[str, Any]:
    pause = exchange.host.view.pause(name)
    return {"name": text(name), "url": url("counts", name), **_counts(reply), "pause": pause}


async def count_queue(exchange: Exchange) -> dict[str, Any]:
    """QCOUNT."""
    name = exchange.path["queue"]
    reply = await exchange.call(b"QCOUNT", name, *cluster_words(exchange))
    return {**_row(exchange, name, reply), **nodes_value(reply)}


async def list_counts(exchange: Exchange) -> Reply:
    """QLIST."""
    words = [b"QLIST", b"SORT", str(exchange.word("sort")).encode()]
    words += [b"COUNT", b"%d" % exchange.number("limit")]
    pattern, cursor = exchange.word("match"), exchange.word("cursor")
    if pattern is not None:
        words += [b"MATCH", pattern.encode()]
    if cursor is not None:
        words += [b"CURSOR", _decoded(cursor)]
    reply = await exchange.call(*words, *cluster_words(exchange))
    after = reply[b"cursor"]
    more = None if after == b"0" else urlsafe_b64encode(after).decode()
    rows = _rows(exchange, reply[b"queues"])
    return Reply(listing("queues", rows, {"cursor": more, **nodes_value(reply)}))


async def _rows(
    exchange: Exchange, replies: list[dict[bytes, Any]]
) -> AsyncIterator[dict[str, Any]]:
    share = Share(exchange.slices)
    for reply in replies:
        await share.spend(_READING * len(reply[b"name"]))
        yield _row(exchange, reply[b"name"], reply)


def _decoded(cursor: str) -> bytes:
    """A cursor of the node: names of queues, which may be any bytes, are a part of it."""
    try:
        return urlsafe_b64decode(cursor.encode())
    except ValueError:
        raise bad_request("cursor must be that of another answer.") from None


async def scale(exchange: Exchange) -> dict[str, Any]:
    """What an autoscaler needs; a queue that does not exist is an empty one."""
    reply = await exchange.call(b"QCOUNT", exchange.path["queue"], *cluster_words(exchange))
    counts = _counts(reply)
    ready, rate = counts["queued"], counts["out_per_s"]
    return {
        "ready": ready,
        "in_flight": counts["in_flight"],
        "rate": rate,
        "expected_drain_seconds": 0.0 if not ready else round(ready / rate, 3) if rate else None,
    }


def count_routes() -> list[Route]:
    """All counts."""
    counted = {"name": TEXT, "url": TEXT, **_COUNTS, "pause": TEXT}
    return [
        Route(
            "GET", f"{ROOT}/counts", list_counts, "Queues with their counts, in order, by pages",
            (
                Parameter("match", "A glob pattern for names"),
                Parameter("sort", "Greatest first, or by name", default="queued", choices=_SORTS),
                Parameter("limit", "Queues at most", "integer", 100, 1, _PAGE_MAX),
                Parameter("cursor", "Of the page before", longest=CURSOR_BYTES),
                _CLUSTER,
            ),
            answer=schema(
                queues=array(schema(**counted)), cursor={"type": ["string", "null"]}, **NODES
            ),
        ),
        Route(
            "GET", f"{ROOT}/counts/{{queue}}", count_queue, "Where the jobs of a queue are",
            (_CLUSTER,), answer=schema(**counted, **NODES),
        ),
        Route(
            "GET", f"{ROOT}/queues/{{queue}}/scale", scale, "Figures for autoscalers", (_CLUSTER,),
            answer=schema(
                ready=NUMBER, in_flight=NUMBER, rate=REAL,
                expected_drain_seconds={"type": ["number", "null"]},
            ),
        ),
    ]  # fmt: skip
