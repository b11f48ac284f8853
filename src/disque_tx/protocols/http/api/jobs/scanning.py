"""The jobs of a queue by their state, whether they are in the queue or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from disque_tx.protocols.http.api.base.bodies import SHOWN_BODY, Bodies
from disque_tx.protocols.http.api.base.values import ROOT, TEXT, array, pairs, schema, text, url
from disque_tx.protocols.http.api.jobs.jobs import SHOWN
from disque_tx.protocols.http.server.exchange import Exchange, Reply
from disque_tx.protocols.http.server.routes import Parameter, Route
from disque_tx.protocols.http.server.slices import Share
from disque_tx.protocols.http.server.streaming import listing

#: ``active``: in the hands of a client, delayed, or in backoff.
_STATES: Final = ("any", "wait-repl", "active", "queued", "acked")
_COUNT_MAX: Final = 1_000
#: Jobs that one command looks for.
SCAN_COUNT: Final = 20
_FOUND: Final = schema(**{**SHOWN_BODY, **SHOWN["properties"]}, url=TEXT)


async def scan(exchange: Exchange) -> Reply:
    """JSCAN, and SHOW of what it finds."""
    ids, after = await _found(exchange)
    return Reply(
        listing("jobs", _shown(exchange, ids), {"cursor": None if after == b"0" else text(after)})
    )


async def _found(exchange: Exchange) -> tuple[list[bytes], bytes]:
    """The IDs of jobs, and the cursor to go on with. Rare jobs are not looked for without end: the
    command passes over so many others for each that is asked for."""
    state, count = str(exchange.word("state")), exchange.number("count")
    after, ids = b"%d" % exchange.number("cursor"), list[bytes]()
    words = [b"QUEUE", exchange.path["queue"]]
    if state != "any":
        words += [b"STATE", state.encode()]
    for asked in range(0, count, SCAN_COUNT):
        if asked or exchange.slices.busy:
            await exchange.slices.turn()
        part = b"%d" % min(SCAN_COUNT, count - len(ids))
        after, found = await exchange.call(b"JSCAN", after, b"COUNT", part, *words)
        ids += [status.text for status in found]
        if after == b"0" or len(ids) >= count:
            break
    return ids, after


async def _shown(exchange: Exchange, ids: list[bytes]) -> AsyncIterator[dict[str, Any]]:
    """These jobs, as far as they are still there."""
    share, bodies, view = Share(exchange.slices), Bodies(), exchange.host.view
    for job_id in ids:
        known = view.body(job_id, 0)
        await share.spend(known[1] if known is not None else 0)
        found = await exchange.call(b"SHOW", job_id)
        if found is None:
            continue
        body = found.pop()
        values = pairs(found[:-1])
        if isinstance(body, bytes):
            bodies.put(values, body, len(body))
        else:
            values["body"] = None
        yield {**values, "url": url("jobs", job_id)}


def scanning_routes() -> list[Route]:
    """The one operation."""
    return [
        Route(
            "GET", f"{ROOT}/queues/{{queue}}/jobs", scan, "Jobs of a queue as this node knows"
            " them, also those that are not in its list: some at a time, until cursor is null",
            (
                Parameter("state", "Only jobs in this state", default="any", choices=_STATES),
                Parameter(
                    "count", "About so many jobs; fewer, even none, if they are rare among all jobs"
                    " of the node", "integer", 100, 1, _COUNT_MAX,
                ),
                Parameter("cursor", "Of the answer before", "integer", 0, 0, 2**63 - 1),
            ),
            answer=schema(jobs=array(_FOUND), cursor={"type": ["string", "null"]}),
        ),
    ]  # fmt: skip
