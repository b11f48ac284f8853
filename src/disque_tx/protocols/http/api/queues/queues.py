"""Queues: lists, one, peek, pause."""

from __future__ import annotations

from collections.abc import AsyncIterator
from heapq import nlargest, nsmallest
from typing import Any, Final

import attrs

from disque_tx.plugins import QUEUE_BYTES_MAX, QueueFigures
from disque_tx.protocols.http.api.base.bodies import SHOWN_BODY, queued_jobs
from disque_tx.protocols.http.api.base.holders import queued
from disque_tx.protocols.http.api.base.values import (
    FLAG,
    NODES,
    NUMBER,
    REAL,
    ROOT,
    TEXT,
    array,
    schema,
    take_flag,
    text,
    url,
)
from disque_tx.protocols.http.api.queues.queuelists import (
    counts_of,
    joined_queue,
    members,
    queues_of,
)
from disque_tx.protocols.http.server.asking import SCOPE, Asked, ask, scope_of, several, source
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import Problem, bad_request
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import COMPARISONS_PER_BYTE, Share
from disque_tx.protocols.http.server.streaming import listing
from disque_tx.text.globs import NamePattern, escaped

_PAGE_MAX: Final = 1_000
_OFFSET_MAX: Final = 100_000
_PEEK_MAX: Final = 1_000
_PAUSES: Final = ("none", "in", "out", "all")
_ORDERS: Final = ("asc", "desc")
_SORTS: Final = ("name", "queued", "oldest_s", "blocked", "jobs_in", "jobs_out")
_QUEUE: Final = schema(
    name=TEXT, url=TEXT, queued=NUMBER, oldest_s=REAL, age_s=NUMBER, idle_s=NUMBER, blocked=NUMBER,
    jobs_in=NUMBER, jobs_out=NUMBER, import_rate=NUMBER, pause=TEXT, delayed=NUMBER, backoff=NUMBER,
    in_flight=NUMBER, dead=NUMBER, in_per_s=REAL, out_per_s=REAL, loaded=NUMBER,
)  # fmt: skip
_FIGURES: Final = {field.name for field in attrs.fields(QueueFigures)}
_PLACE: Final = schema(
    node=TEXT, process=NUMBER, queued=NUMBER, oldest_s=REAL, blocked=NUMBER, pause=TEXT,
    delayed=NUMBER, backoff=NUMBER, in_flight=NUMBER, loaded=NUMBER,
)  # fmt: skip
_ONE: Final = schema(
    **_QUEUE["properties"],
    **NODES,
    places=array(_PLACE),
    paused_by={"type": ["string", "null"]},
    paused_at_s={"type": ["number", "null"]},
)

_NONE = b"none"


def queue_value(queue: QueueFigures, counts: dict[str, Any]) -> dict[str, Any]:
    """A queue as JSON. ``counts``: the members of ``QueueCounts``."""
    return {
        "name": text(queue.name),
        **members(queue),
        **counts,
        "url": url("queues", queue.name),
    }


class Pattern(NamePattern):
    """A glob pattern for names of queues."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern, QUEUE_BYTES_MAX)

    def cost(self, name: bytes) -> int:
        """What comparing a name costs at most, in bytes that are looked at."""
        compared = 0 if self.everything else self.size * min(len(name), QUEUE_BYTES_MAX)
        return compared // COMPARISONS_PER_BYTE


async def list_queues(exchange: Exchange) -> Reply:
    """A page of the queues. Rows of several nodes are joined first, of which few are under way at
    a time."""
    if not several(exchange):
        return await _listed(exchange)
    exchange.slices.enter()
    try:
        return await _listed(exchange)
    finally:
        exchange.slices.leave()


async def _listed(exchange: Exchange) -> Reply:
    """Only as many queues as the page needs are kept while they are looked at."""
    wanted, share = Pattern(exchange.word("match") or "*"), Share(exchange.slices)
    sort, limit, offset = exchange.word("sort"), exchange.number("limit"), exchange.number("offset")
    kept: list[QueueFigures] = []
    choose = nlargest if exchange.word("order") == "desc" else nsmallest

    def key(queue: QueueFigures) -> Any:
        return queue.name if sort == "name" else (getattr(queue, str(sort)), queue.name)

    total = 0
    unsorted: list[QueueFigures] = []
    scope, sources = scope_of(exchange), Asked()
    async for some in queues_of(exchange, scope, sources):
        for queue in some:
            await share.spend(wanted.cost(queue.name))
            if wanted.matches(queue.name):
                unsorted.append(queue)
        if len(unsorted) > max(_PAGE_MAX, len(kept)):
            total += len(unsorted)
            kept, unsorted = choose(offset + limit, kept + unsorted, key=key), []
    total += len(unsorted)
    page = choose(offset + limit, kept + unsorted, key=key)[offset:]
    after = {"total": total, **sources.sources()}
    if not several(exchange):
        return Reply(listing("queues", _rows(exchange, page), after))
    counts, counted = await counts_of(exchange, scope, [queue.name for queue in page])
    sources.miss(counted)
    after.update(sources.sources())
    return Reply(listing("queues", _counted(page, counts), after))


async def _counted(
    queues: list[QueueFigures], counts: list[dict[str, Any]]
) -> AsyncIterator[dict[str, Any]]:
    for queue, counted in zip(queues, counts, strict=False):
        yield queue_value(queue, counted)


async def _rows(exchange: Exchange, queues: list[QueueFigures]) -> AsyncIterator[dict[str, Any]]:
    share = Share(exchange.slices)
    for queue in queues:
        await share.spend(2 * len(queue.name))
        yield queue_value(queue, attrs.asdict(exchange.host.view.counts(queue.name)))


async def one_queue(exchange: Exchange) -> dict[str, Any]:
    """One queue, who paused it, and what of it is where."""
    name, scope = exchange.path["queue"], scope_of(exchange)
    asked = await ask(exchange, scope, b"QUEUE", name)
    rows = {node: row for node, row in asked.answers.items() if row is not None}
    if not rows:
        raise Problem(404, "NOQUEUE", f"There is no such queue{_unless(asked)}.")
    (counts,), counted = await counts_of(exchange, scope, [name])
    asked.miss(counted)
    who, at_s = max((row[-2:] for row in rows.values()), key=lambda said: said[1])
    return {
        **queue_value(joined_queue(list(rows.values())), counts),
        "paused_by": text(who) if who else None,
        "paused_at_s": at_s if who else None,
        "places": places(exchange, {node: joined_queue([row]) for node, row in rows.items()}),
        **asked.sources(),
    }


def _unless(asked: Asked) -> str:
    missing = len(asked.missing)
    if missing == 1:
        return ", unless at a node that does not answer"
    return f", unless at one of {missing} nodes that do not answer" if missing else ""


def places(exchange: Exchange, found: dict[bytes, QueueFigures]) -> list[dict[str, Any]]:
    """What of a queue is at which node."""
    return [
        {
            **source(exchange, node),
            **{name: getattr(figures, name) for name in _PLACE["properties"].keys() & _FIGURES},
        }
        for node, figures in found.items()
    ]


async def peek(exchange: Exchange) -> Reply:
    """Jobs from either end of the queue."""
    count = exchange.number("count")
    signed = -count if exchange.word("from") == "newest" else count
    places, asked = await queued(exchange, exchange.path["queue"], signed)
    return Reply(listing("jobs", queued_jobs(exchange, places), asked.sources()))


async def pause_queue(exchange: Exchange) -> dict[str, Any]:
    """PAUSE, or the policy ``pause``, which is kept."""
    values, queue = exchange.json(), exchange.path["queue"]
    wanted = values.get("pause")
    if wanted not in _PAUSES:
        raise bad_request(f"pause must be one of {', '.join(_PAUSES)}.")
    words = [wanted.encode(), b"BCAST" if take_flag(values, "everywhere") else b"PROCESSES"]
    if take_flag(values, "kept"):
        await keep_pause(exchange, queue, wanted.encode())
        words = [b"STATE"]
    status = await exchange.call(b"PAUSE", queue, *words)
    return {"pause": text(status.text)}


def queue_routes() -> list[Route]:
    """All operations on queues."""
    queue = f"{ROOT}/queues/{{queue}}"
    return [
        Route(
            "GET", f"{ROOT}/queues", list_queues, "The queues of the daemon",
            (
                SCOPE,
                Parameter("match", "A glob pattern for names", default="*"),
                Parameter("sort", "By which figure", default="name", choices=_SORTS),
                Parameter("order", "Smallest or largest first", default="asc", choices=_ORDERS),
                Parameter("limit", "Queues at most", "integer", 100, 1, _PAGE_MAX),
                Parameter("offset", "Queues to leave out", "integer", 0, 0, _OFFSET_MAX),
            ),
            answer=schema(total=NUMBER, queues=array(_QUEUE), **NODES),
        ),
        Route(
            "GET", queue, one_queue, "A queue, and what of it is at which process", (SCOPE,),
            answer=_ONE, errors=(404,),
        ),
        Route(
            "GET", f"{queue}/peek", peek, "Look at queued jobs without fetching them",
            (
                Parameter("count", "Jobs at most", "integer", 10, 1, _PEEK_MAX),
                Parameter("from", "Which end", default="oldest", choices=("oldest", "newest")),
                SCOPE,
            ),
            answer=schema(jobs=array(schema(id=TEXT, queue=TEXT, url=TEXT, **SHOWN_BODY)), **NODES),
        ),
        Route(
            "POST", f"{queue}/pause", pause_queue, "Pause the queue, or go on",
            body=schema(pause={"enum": list(_PAUSES)}, everywhere=FLAG, kept=FLAG),
            answer=schema(pause=TEXT),
        ),
    ]  # fmt: skip


async def keep_pause(exchange: Exchange, name: bytes, wanted: bytes) -> None:
    """Pause a queue on all nodes, also on those that join later, until this is called again.

    What PAUSE said is ended, and with ``none`` what policies say as well: one of other queues, too,
    holds for them only.
    """
    pattern = escaped(name)
    if wanted == _NONE:
        await exchange.call(b"QPOLICY", b"DEL", pattern, b"pause")
    if wanted != _NONE or await _in_force(exchange, name) != _NONE:
        await exchange.call(b"QPOLICY", b"SET", pattern, b"pause", wanted)
    await exchange.call(b"PAUSE", name, _NONE, b"BCAST")


async def _in_force(exchange: Exchange, name: bytes) -> bytes:
    """The pause that policies say."""
    rows = await exchange.call(b"QPOLICY", b"GET", name)
    return next((bytes(value) for setting, value, _ in rows if setting == b"pause"), _NONE)
