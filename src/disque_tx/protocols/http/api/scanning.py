"""The jobs of a queue by their state, whether they are in the queue or not."""

from __future__ import annotations

from typing import Any, Final

from disque_tx.protocols.http.api.jobs import SHOWN
from disque_tx.protocols.http.api.values import ROOT, TEXT, array, pairs, schema, text, url
from disque_tx.protocols.http.exchange import Exchange
from disque_tx.protocols.http.routes import Parameter, Route

#: ``active``: in the hands of a client, delayed, or in backoff.
_STATES: Final = ("any", "wait-repl", "active", "queued", "acked")
_COUNT_MAX: Final = 1_000
_FOUND: Final = schema(**SHOWN["properties"], url=TEXT)


async def scan(exchange: Exchange) -> dict[str, Any]:
    """JSCAN."""
    cursor, state = exchange.number("cursor"), str(exchange.word("state"))
    words = [b"JSCAN", b"%d" % cursor, b"COUNT", b"%d" % exchange.number("count")]
    words += [b"QUEUE", exchange.path["queue"], b"REPLY", b"all"]
    if state != "any":
        words += [b"STATE", state.encode()]
    after, found = await exchange.call(*words)
    jobs = [pairs(job) for job in found]
    for job in jobs:
        job["url"] = url("jobs", job["id"].encode())
    return {"jobs": jobs, "cursor": None if after == b"0" else text(after)}


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
