"""The jobs of a queue by their state, whether they are in the queue or not."""

from __future__ import annotations

from typing import Final

from disque_tx.protocols.http.api.base.bodies import SHOWN_BODY
from disque_tx.protocols.http.api.base.values import NODES, ROOT, TEXT, array, schema, text
from disque_tx.protocols.http.api.jobs.jobs import SHOWN
from disque_tx.protocols.http.api.jobs.walking import met, next_of, nodes_in_order, shown, start_of
from disque_tx.protocols.http.server.asking import SCOPE, ask
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.streaming import listing

#: ``active``: in flight, delayed, or in backoff.
STATES: Final = ("any", "wait-repl", "active", "queued", "acked")
_COUNT_MAX: Final = 1_000
#: Jobs that one command looks for.
SCAN_COUNT: Final = 20
#: A job as walks over jobs describe it.
FOUND: Final = schema(**{**SHOWN_BODY, **SHOWN["properties"]}, url=TEXT)


async def scan(exchange: Exchange) -> Reply:
    """JSCAN, and SHOW of what it finds: of one node after the other. A job that several of them
    know is listed once, as the one knows it that has to do with it."""
    nodes, sources = await nodes_in_order(exchange)
    number, cursor = start_of(str(exchange.word("cursor")), len(nodes))
    ids, after = await _found(exchange, nodes[number], cursor)
    ids = await met(exchange, nodes, number, ids, sources)
    after = next_of(number, after, len(nodes))
    return Reply(
        listing(
            "jobs",
            shown(exchange, nodes[number], ids),
            {"cursor": None if after == b"0" else text(after), **sources.sources()},
        )
    )


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


def scanning_routes() -> list[Route]:
    """The one operation."""
    return [
        Route(
            "GET", f"{ROOT}/queues/{{queue}}/jobs", scan, "Jobs of a queue, also those that"
            " are not in its list: some at a time, until cursor is null",
            (
                Parameter("state", "Only jobs in this state", default="any", choices=STATES),
                Parameter(
                    "count", "About so many jobs; fewer, even none, if they are rare among all jobs"
                    " of the node", "integer", 100, 1, _COUNT_MAX,
                ),
                Parameter("cursor", "Of the answer before", default="0"),
                SCOPE,
            ),
            answer=schema(jobs=array(FOUND), cursor={"type": ["string", "null"]}, **NODES),
        ),
    ]  # fmt: skip
