"""The jobs of a queue by their state, whether they are in the queue or not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.protocols.http.api.base.bodies import BEGINNING, BODY_MAX, SHOWN_BODY, Bodies
from disque_tx.protocols.http.api.base.holders import Place, bodies, holders
from disque_tx.protocols.http.api.base.values import (
    NODES,
    ROOT,
    TEXT,
    array,
    pairs,
    schema,
    text,
    url,
)
from disque_tx.protocols.http.api.jobs.jobs import SHOWN
from disque_tx.protocols.http.server.asking import (
    CLUSTER,
    SCOPE,
    Asked,
    ask,
    chosen_scope,
    process_numbers,
    several,
    source,
)
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.protocols.http.server.streaming import listing

#: ``active``: in flight, delayed, or in backoff.
_STATES: Final = ("any", "wait-repl", "active", "queued", "acked")
_COUNT_MAX: Final = 1_000
#: Jobs that one command looks for.
SCAN_COUNT: Final = 20
_FOUND: Final = schema(**{**SHOWN_BODY, **SHOWN["properties"]}, url=TEXT)


#: Of one node: its place, and where its scan goes on.
_CURSOR: Final = re.compile(r"(?:([0-9]{1,3})\.)?([0-9]{1,20})")


async def scan(exchange: Exchange) -> Reply:
    """JSCAN, and SHOW of what it finds: of one node after the other. A job that several of them
    know is listed once, as the one knows it that has to do with it."""
    nodes, sources = await _nodes(exchange)
    number, cursor = _start(str(exchange.word("cursor")), len(nodes))
    node = nodes[number]
    ids, after = await _found(exchange, node, cursor)
    if len(nodes) > 1:
        known, asked = await holders(exchange, ids)
        sources.miss(asked)
        ids = [job_id for job_id, at in zip(ids, known, strict=True) if at[:1] == [node]]
        after = _next(number, after, len(nodes))
    return Reply(
        listing(
            "jobs",
            _shown(exchange, node, ids),
            {"cursor": None if after == b"0" else text(after), **sources.sources()},
        )
    )


async def _nodes(exchange: Exchange) -> tuple[list[bytes], Asked]:
    """The nodes, in order; one that is away now has a place, too."""
    scope = chosen_scope(exchange)
    asked = await ask(exchange, scope, b"LATENCY")
    if scope == CLUSTER:
        return sorted({*asked.answers, *asked.missing}), asked
    numbers = process_numbers(exchange)
    if not numbers:
        return list(asked.answers), asked
    return sorted(numbers, key=lambda node: numbers[node]), asked


def _start(word: str, count: int) -> tuple[int, bytes]:
    """The place of the node whose scan goes on, and its cursor."""
    match = _CURSOR.fullmatch(word)
    number = int(match[1] or 0) if match else count
    if match is None or number >= count or int(match[2]) >= 1 << 64:
        raise bad_request("cursor must be 0, or that of another answer.")
    return number, match[2].encode()


def _next(number: int, after: bytes, count: int) -> bytes:
    """The cursor of all nodes behind that of one."""
    if after == b"0":
        number += 1
    return b"0" if number == count else b"%d.%s" % (number, after)


async def _found(exchange: Exchange, node: bytes, after: bytes) -> tuple[list[bytes], bytes]:
    """The IDs of jobs, and the cursor to go on with. Rare jobs are not looked for without end: the
    command passes over a limited number of others for each that is asked for. A process that is
    away is passed over."""
    state, count = str(exchange.word("state")), exchange.number("count")
    ids = list[bytes]()
    words = [exchange.path["queue"]]
    if state != "any":
        words.append(state.encode())
    for asked in range(0, count, SCAN_COUNT):
        if asked or exchange.slices.busy:
            await exchange.slices.turn()
        part = b"%d" % min(SCAN_COUNT, count - len(ids))
        answers = (await ask(exchange, node, b"JOBS", after, part, *words)).answers
        after, found = next(iter(answers.values()), (b"0", []))
        ids += [status.text for status in found]
        if after == b"0" or len(ids) >= count:
            break
    return ids, after


async def _shown(
    exchange: Exchange, node: bytes, ids: list[bytes]
) -> AsyncIterator[dict[str, Any]]:
    """Jobs with these IDs that still exist, with their bodies cut. A limited number is asked for at
    once, because the bodies may be long."""
    share, shown = Share(exchange.slices), Bodies()
    of = source(exchange, node) if several(exchange) else {}
    places = [Place(node, job_id) for job_id in ids]
    async for body in bodies(exchange, places, BODY_MAX, BEGINNING):
        job_id = body.place.job_id
        await share.spend(0)
        answers = (await ask(exchange, node, b"OUTLINE", job_id)).answers
        found = next(iter(answers.values()), None)
        if found is None:
            continue
        values = pairs(found)
        shown.put(values, body.beginning, body.size)
        yield {**values, **of, "url": url("jobs", job_id)}


def scanning_routes() -> list[Route]:
    """The one operation."""
    return [
        Route(
            "GET", f"{ROOT}/queues/{{queue}}/jobs", scan, "Jobs of a queue, also those that"
            " are not in its list: some at a time, until cursor is null",
            (
                Parameter("state", "Only jobs in this state", default="any", choices=_STATES),
                Parameter(
                    "count", "About so many jobs; fewer, even none, if they are rare among all jobs"
                    " of the node", "integer", 100, 1, _COUNT_MAX,
                ),
                Parameter("cursor", "Of the answer before", default="0"),
                SCOPE,
            ),
            answer=schema(jobs=array(_FOUND), cursor={"type": ["string", "null"]}, **NODES),
        ),
    ]  # fmt: skip
