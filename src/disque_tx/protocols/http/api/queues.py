"""Queues of this node: lists, one, peek, pause."""

from __future__ import annotations

from fnmatch import translate
from heapq import nlargest, nsmallest
from re import compile as compiled
from typing import Any, Final

import attrs

from disque_tx.protocols.http.api.slices import QUEUES_PER_SLICE, all_queues, pause
from disque_tx.protocols.http.api.values import (
    FLAG,
    NUMBER,
    REAL,
    ROOT,
    TEXT,
    array,
    job_value,
    schema,
    take_flag,
    text,
    url,
)
from disque_tx.protocols.http.exchange import Exchange
from disque_tx.protocols.http.problems import Problem, bad_request
from disque_tx.protocols.http.routes import Parameter, Route
from disque_tx.services.interfaces import IHost, QueueFigures

_PATTERN_MAX: Final = 256
_NAME_MAX: Final = 1_024
_PAGE_MAX: Final = 1_000
_OFFSET_MAX: Final = 100_000
_PEEK_MAX: Final = 1_000
_PAUSES: Final = ("none", "in", "out", "all")
_ORDERS: Final = ("asc", "desc")
_SORTS: Final = ("name", "queued", "oldest_s", "blocked", "jobs_in", "jobs_out")
_QUEUE: Final = schema(
    name=TEXT, url=TEXT, queued=NUMBER, oldest_s=REAL, age_s=NUMBER, idle_s=NUMBER, blocked=NUMBER,
    jobs_in=NUMBER, jobs_out=NUMBER, import_rate=NUMBER, pause=TEXT, delayed=NUMBER, backoff=NUMBER,
    in_hand=NUMBER, dead=NUMBER, in_per_s=REAL, out_per_s=REAL, loaded=NUMBER,
)  # fmt: skip
_ONE: Final = schema(
    **_QUEUE["properties"],
    paused_by={"type": ["string", "null"]},
    paused_at_s={"type": ["number", "null"]},
)


def queue_value(host: IHost, queue: QueueFigures) -> dict[str, Any]:
    """A queue as JSON."""
    values = {**attrs.asdict(queue), **attrs.asdict(host.view.counts(queue.name))}
    values["name"] = text(queue.name)
    return {**values, "url": url("queues", queue.name)}


def matching(pattern: str) -> Any:
    """A function that tells whether a name of bytes matches a glob pattern."""
    if len(pattern) > _PATTERN_MAX:
        raise bad_request(f"A pattern has {_PATTERN_MAX} characters at most.")
    match = compiled(translate(pattern)).match
    return lambda name: len(name) <= _NAME_MAX and match(text(name)) is not None


async def list_queues(exchange: Exchange) -> dict[str, Any]:
    """A page of the queues. Only as many as the page needs are kept while they are looked at."""
    wanted = matching(exchange.word("match") or "*")
    sort, limit, offset = exchange.word("sort"), exchange.number("limit"), exchange.number("offset")
    kept: list[QueueFigures] = []
    choose = nlargest if exchange.word("order") == "desc" else nsmallest

    def key(queue: QueueFigures) -> Any:
        return queue.name if sort == "name" else (getattr(queue, str(sort)), queue.name)

    total = 0
    unsorted: list[QueueFigures] = []
    async for some in all_queues(exchange.host):
        unsorted += [queue for queue in some if wanted(queue.name)]
        if len(unsorted) > max(_PAGE_MAX, len(kept)):
            total += len(unsorted)
            kept, unsorted = choose(offset + limit, kept + unsorted, key=key), []
    total += len(unsorted)
    kept = choose(offset + limit, kept + unsorted, key=key)
    values: list[dict[str, Any]] = []
    for number, queue in enumerate(kept[offset:]):
        if number % QUEUES_PER_SLICE == QUEUES_PER_SLICE - 1:
            await pause(exchange.host)
        values.append(queue_value(exchange.host, queue))
    return {"total": total, "queues": values}


def _queue(exchange: Exchange) -> QueueFigures:
    queue = exchange.host.view.queue(exchange.path["queue"])
    if queue is None:
        raise Problem(404, "NOQUEUE", "This node has no such queue.")
    return queue


async def one_queue(exchange: Exchange) -> dict[str, Any]:
    """One queue, and who paused it."""
    queue = _queue(exchange)
    words = await exchange.call(b"QSTAT", queue.name, b"WITHPAUSE")
    said = dict(zip(words[::2], words[1::2], strict=True)) if words else {}
    who = said.get(b"paused-by")
    return {
        **queue_value(exchange.host, queue),
        "paused_by": text(who) if who else None,
        "paused_at_s": said[b"paused-at"] if who else None,
    }


async def peek(exchange: Exchange) -> dict[str, Any]:
    """QPEEK."""
    count = exchange.number("count")
    signed = -count if exchange.word("from") == "newest" else count
    jobs = await exchange.call(b"QPEEK", exchange.path["queue"], b"%d" % signed)
    return {"jobs": [job_value(job) for job in jobs]}


async def pause_queue(exchange: Exchange) -> dict[str, Any]:
    """PAUSE."""
    values = exchange.json()
    wanted = values.get("pause")
    if wanted not in _PAUSES:
        raise bad_request(f"pause must be one of {', '.join(_PAUSES)}.")
    words = [b"BCAST"] if take_flag(values, "everywhere") else []
    status = await exchange.call(b"PAUSE", exchange.path["queue"], wanted.encode(), *words)
    return {"pause": text(status.text)}


def queue_routes() -> list[Route]:
    """All operations on queues."""
    queue = f"{ROOT}/queues/{{queue}}"
    return [
        Route(
            "GET", f"{ROOT}/queues", list_queues, "The queues of this node",
            (
                Parameter("match", "A glob pattern for names", default="*"),
                Parameter("sort", "By which figure", default="name", choices=_SORTS),
                Parameter("order", "Smallest or largest first", default="asc", choices=_ORDERS),
                Parameter("limit", "Queues at most", "integer", 100, 1, _PAGE_MAX),
                Parameter("offset", "Queues to leave out", "integer", 0, 0, _OFFSET_MAX),
            ),
            answer=schema(total=NUMBER, queues=array(_QUEUE)),
        ),
        Route("GET", queue, one_queue, "A queue on this node", answer=_ONE, errors=(404,)),
        Route(
            "GET", f"{queue}/peek", peek, "Look at queued jobs without fetching them",
            (
                Parameter("count", "Jobs at most", "integer", 10, 1, _PEEK_MAX),
                Parameter("from", "Which end", default="oldest", choices=("oldest", "newest")),
            ),
            answer=schema(jobs=array({"type": "object"})),
        ),
        Route(
            "POST", f"{queue}/pause", pause_queue, "Pause the queue, or go on",
            body=schema(pause={"enum": list(_PAUSES)}, everywhere=FLAG),
            answer=schema(pause=TEXT),
        ),
    ]  # fmt: skip
