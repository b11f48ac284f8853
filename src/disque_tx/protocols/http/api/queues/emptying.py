"""Emptying queues: ending their jobs, and moving them to other queues."""

from __future__ import annotations

from typing import Any, Final

from disque_tx.protocols.http.api.base.values import (
    FLAG,
    NUMBER,
    ROOT,
    TEXT,
    array,
    schema,
    take_flag,
    take_ids,
    take_queue,
)
from disque_tx.protocols.http.api.queues.counts import NODES, nodes_value
from disque_tx.protocols.http.server.exchange import Exchange, whole
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import IDS_BODY_BYTES, Route

_STATES: Final = ("queued", "delayed", "backoff", "in-hand", "loaded", "any")
_COUNT_MAX: Final = 2**53 - 1


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
    """QMOVE."""
    values = exchange.json()
    words = [b"QMOVE", exchange.path["queue"], take_queue(values, "to")]
    if take_flag(values, "dead"):
        words.append(b"DEAD")
    if values.get("count") is not None:
        words += [b"COUNT", b"%d" % whole("count", values["count"], 1, _COUNT_MAX)]
    if values.get("ids") is not None:
        words += [b"ID", *take_ids(values)]
    return {"count": await exchange.call(*words)}


def emptying_routes() -> list[Route]:
    """Both operations."""
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
            "POST", f"{queue}/move", move, "Move jobs of this node to another queue",
            body=schema(to=TEXT, to_base64=TEXT, count=NUMBER, ids=array(TEXT), dead=FLAG),
            body_max=IDS_BODY_BYTES, answer=schema(count=NUMBER), errors=(409, 503, 507),
        ),
    ]  # fmt: skip
