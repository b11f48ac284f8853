"""Jobs with a text in them: in their ID, key, task, arguments, or the reason of a failure."""

from __future__ import annotations

import json
from typing import Final

from disque_tx.plugins import QUEUE_BYTES_MAX
from disque_tx.protocols.http.api.base.values import NODES, NUMBER, ROOT, array, schema, text
from disque_tx.protocols.http.api.jobs.scanning import FOUND, STATES
from disque_tx.protocols.http.api.jobs.walking import met, next_of, nodes_in_order, shown, start_of
from disque_tx.protocols.http.server.asking import SCOPE, ask
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.streaming import listing

#: Questions of one request, each of which looks at 2,000 jobs or a quarter of a mebibyte at most;
#: and found jobs after which it ends.
_QUESTIONS: Final = 20
_ENOUGH: Final = 20
_ATTEMPTS_MAX: Final = 1_000_000


async def search(exchange: Exchange) -> Reply:
    """FIND, of one node after the other."""
    forms = _forms(exchange.word("text") or "")
    filters = (str(exchange.word("state")).encode(), b"%d" % exchange.number("attempts"))
    queue = (exchange.word("queue") or "").encode()
    nodes, sources = await nodes_in_order(exchange)
    number, after = start_of(str(exchange.word("cursor")), len(nodes))
    node, seen, ids = nodes[number], 0, list[bytes]()
    for question in range(_QUESTIONS):
        if question or exchange.slices.busy:
            await exchange.slices.turn()
        answers = (await ask(exchange, node, b"FIND", after, *filters, queue, *forms)).answers
        after, looked, _total, found = answers.get(node, (b"0", 0, 0, []))
        seen += looked
        ids += found
        if after == b"0" or len(ids) >= _ENOUGH:
            break
    ids = await met(exchange, nodes, number, ids, sources)
    after = next_of(number, after, len(nodes))
    rest = {"cursor": None if after == b"0" else text(after), "seen": seen, **sources.sources()}
    return Reply(listing("jobs", shown(exchange, node, ids), rest))


def _forms(words: str) -> list[bytes]:
    """The text in lower case, and as it stands in JSON, where that differs."""
    if not words.strip():
        raise bad_request("text must not be empty.")
    lower = words.strip().lower()
    return list(dict.fromkeys((lower.encode(), json.dumps(lower)[1:-1].encode())))


def searching_routes() -> list[Route]:
    """The one operation."""
    return [
        Route(
            "GET", f"{ROOT}/search", search, "Jobs with a text in their ID, key, body, or the"
            " reason of a failure: a part of a walk over all jobs, until cursor is null",
            (
                Parameter("text", "The text, in any case of letters", required=True),
                Parameter("state", "Only jobs in this state", default="any", choices=STATES),
                Parameter("queue", "Only jobs of this queue", longest=QUEUE_BYTES_MAX),
                Parameter(
                    "attempts", "Returned or delivered again as often at least", "integer", 0, 0,
                    _ATTEMPTS_MAX,
                ),
                Parameter("cursor", "Of the answer before", default="0"),
                SCOPE,
            ),
            answer=schema(
                jobs=array(FOUND), cursor={"type": ["string", "null"]}, seen=NUMBER, **NODES
            ),
            costly=True,
        ),
    ]  # fmt: skip
