"""Who changed what lately, and notes, which mark a moment in charts."""

from __future__ import annotations

from typing import Any, Final

from disque_tx.protocols.http.api.base.newest import newest
from disque_tx.protocols.http.api.base.values import (
    NODES,
    NUMBER,
    ROOT,
    TEXT,
    array,
    schema,
    take_bytes,
    text,
)
from disque_tx.protocols.http.server.asking import SCOPE, source
from disque_tx.protocols.http.server.exchange import Exchange, Parameter
from disque_tx.protocols.http.server.routes import Route

_LIMIT_MAX: Final = 1_000
_ACTION: Final = schema(
    at_ms=NUMBER,
    command=TEXT,
    who=TEXT,
    what=TEXT,
    refused=TEXT,
    jobs={"type": ["integer", "null"]},
    node=TEXT,
    process=NUMBER,
)


async def actions(exchange: Exchange) -> dict[str, Any]:
    """ACTIONS, the newest of all nodes first."""
    limit = exchange.number("limit")
    found = await newest(exchange, b"ACTIONS", limit)
    rows = [{**action(row), **source(exchange, node)} for node, row in found.each()]
    rows.sort(key=lambda row: -row["at_ms"])
    return {"actions": rows[:limit], **found.asked.sources()}


def action(row: list[Any]) -> dict[str, Any]:
    """A row of ACTIONS."""
    at_ms, command, who, what, refused, jobs = row
    texts = {"command": command, "who": who, "what": what, "refused": refused}
    counted = {"jobs": None if jobs < 0 else jobs}
    return {"at_ms": at_ms, **{name: text(value) for name, value in texts.items()}, **counted}


async def note(exchange: Exchange) -> dict[str, Any]:
    """NOTE."""
    await exchange.call(b"NOTE", take_bytes(exchange.json(), "text"))
    return {"noted": True}


def action_routes() -> list[Route]:
    """All operations on actions."""
    return [
        Route(
            "GET", f"{ROOT}/actions", actions, "Who changed how the nodes work lately",
            (Parameter("limit", "At most so many", "integer", 100, 1, _LIMIT_MAX), SCOPE),
            answer=schema(actions=array(_ACTION), **NODES),
        ),
        Route(
            "POST", f"{ROOT}/notes", note, "Mark this moment in the charts, such as a deploy",
            body=schema(text=TEXT, text_base64=TEXT),
            answer=schema(noted={"type": "boolean"}),
        ),
    ]  # fmt: skip
