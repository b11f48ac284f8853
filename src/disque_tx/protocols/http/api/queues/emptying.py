"""Emptying queues: ending their jobs, and moving them to other queues."""

from __future__ import annotations

from typing import Any, Final

from disque_tx.errors import CommandError
from disque_tx.protocols.http.api.base.holders import at_one, holders
from disque_tx.protocols.http.api.base.values import (
    FLAG,
    NODES,
    NUMBER,
    ROOT,
    TEXT,
    array,
    nodes_value,
    schema,
    take_flag,
    take_ids,
    take_queue,
)
from disque_tx.protocols.http.server.asking import SCOPE, ask, chosen_scope, several
from disque_tx.protocols.http.server.exchange import Exchange, whole
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import IDS_BODY_BYTES, Route

_STATES: Final = ("queued", "delayed", "backoff", "in-flight", "loaded", "any")
_COUNT_MAX: Final = 2**53 - 1
#: Jobs that a process is asked to move at a time: copies of them are made within the second.
_MOVED: Final = 100


async def flush(exchange: Exchange) -> dict[str, Any]:
    """QFLUSH. The name of the queue is needed twice: a request that was meant for something else,
    and reached this path by a name with ``..``, say, has no such body."""
    values = exchange.json()
    if "queue" not in values and "queue_base64" not in values:
        raise bad_request(
            'A flush needs the name of the queue in the body as well, as in {"queue": "mail"}.'
        )
    if take_queue(values, "queue") != exchange.path["queue"]:
        raise bad_request("The queue in the body is another one than in the path.")
    states = values.get("states", ["queued"])
    if not isinstance(states, list) or not 0 < len(states) <= len(_STATES):
        raise bad_request("states must be an array of at least one state.")
    words = [b"QFLUSH", exchange.path["queue"], b"WITHDETAILS"]
    for state in states:
        if state not in _STATES:
            raise bad_request(f"A state must be one of {', '.join(_STATES)}.")
        words += [b"STATE", state.encode()]
    words.append(b"CLUSTER" if take_flag(values, "everywhere") else b"PROCESSES")
    reply = await exchange.call(*words)
    return {"count": reply[b"flushed"], **nodes_value(reply)}


async def move(exchange: Exchange) -> dict[str, Any]:
    """QMOVE, at one node after the other."""
    values = exchange.json()
    words = [exchange.path["queue"], take_queue(values, "to")]
    if take_flag(values, "dead"):
        words.append(b"DEAD")
    count = whole(
        "count", _COUNT_MAX if values.get("count") is None else values["count"], 1, _COUNT_MAX
    )
    ids = take_ids(values) if values.get("ids") is not None else None
    if not several(exchange):
        chosen = [] if ids is None else [b"ID", *ids]
        return {"count": await exchange.call(b"QMOVE", *words, b"COUNT", b"%d" % count, *chosen)}
    parts = await (_waiting(exchange) if ids is None else _by_holder(exchange, ids))
    moved = 0
    for node, most, chosen in parts:
        wanted = min(most, count - moved)
        if wanted <= 0:
            break
        try:
            some = (*words, b"COUNT", b"%d" % wanted, *chosen)
            moved += await at_one(exchange, node, b"MOVE", *some)
        except CommandError:
            if not moved:
                raise
            break
    return {"count": moved}


async def _waiting(exchange: Exchange) -> list[tuple[bytes, int, list[bytes]]]:
    """The jobs in the queue: some at a time, of each node as many as it has now."""
    asked = await ask(exchange, chosen_scope(exchange), b"COUNTS", exchange.path["queue"])
    return [
        (node, min(_MOVED, row[0] - start), [])
        for node, (row,) in asked.answers.items()
        for start in range(0, row[0], _MOVED)
    ]


async def _by_holder(exchange: Exchange, ids: list[bytes]) -> list[tuple[bytes, int, list[bytes]]]:
    """Group the jobs by the node that holds them, in parts of limited size."""
    found, _asked = await holders(exchange, ids)
    at: dict[bytes, list[bytes]] = {}
    for job_id, nodes in zip(ids, found, strict=True):
        for node in nodes[:1]:
            at.setdefault(node, []).append(job_id)
    return [
        (node, _MOVED, [b"ID", *some[start : start + _MOVED]])
        for node, some in at.items()
        for start in range(0, len(some), _MOVED)
    ]


def emptying_routes() -> list[Route]:
    """The routes that empty a queue and that move its jobs."""
    queue = f"{ROOT}/queues/{{queue}}"
    return [
        Route(
            "POST", f"{queue}/flush", flush, "End the jobs of a queue",
            body={
                **schema(
                    queue=TEXT, queue_base64=TEXT, states=array({"enum": list(_STATES)}),
                    everywhere=FLAG,
                ),
                "oneOf": [{"required": ["queue"]}, {"required": ["queue_base64"]}],
            },
            answer=schema(count=NUMBER, **NODES),
        ),
        Route(
            "POST", f"{queue}/move", move, "Move jobs to another queue", (SCOPE,),
            body=schema(to=TEXT, to_base64=TEXT, count=NUMBER, ids=array(TEXT), dead=FLAG),
            body_max=IDS_BODY_BYTES, answer=schema(count=NUMBER), errors=(409, 503, 507),
        ),
    ]  # fmt: skip
